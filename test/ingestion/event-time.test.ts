import { describe, expect, test } from "bun:test";
import { eventTime, sendTime } from "../../src/ingestion/event-time.ts";
import { normalize } from "../../src/ingestion/normalize.ts";
import { parseInstant } from "../../src/ingestion/timestamp.ts";
import { facts, item, NOON, stored, warningTypes } from "./support.ts";

const day = (time: string) => `2026-11-21T${time}Z`;
const micros = (time: string) => parseInstant(day(time))!;
const HOUR = 3_600_000_000;
const iso = (at: number) => new Date(at / 1_000).toISOString();

interface Vector {
  name: string;
  timestamp?: unknown;
  offset?: unknown;
  sentAt?: string;
  ignore?: boolean;
  expected: number;
  warning?: string;
}

// The table of the contract (ingestion 7.4) first, our own cases after it. Now is noon.
const VECTORS: Vector[] = [
  {
    name: "the client's clock is 5 s ahead",
    timestamp: day("11:59:55"),
    sentAt: day("12:00:05"),
    expected: micros("11:59:50"),
  },
  { name: "10 s ahead", timestamp: day("11:00:00"), sentAt: day("12:00:10"), expected: micros("10:59:50") },
  { name: "10 s behind", timestamp: day("11:00:00"), sentAt: day("11:59:50"), expected: micros("11:00:10") },
  {
    name: "$ignore_sent_at",
    timestamp: day("11:00:00"),
    sentAt: day("12:00:10"),
    ignore: true,
    expected: micros("11:00:00"),
  },
  { name: "offset", offset: 5_000, sentAt: day("12:00:10"), expected: micros("11:59:55") },
  {
    name: "24 h ahead",
    timestamp: iso(NOON + 24 * HOUR),
    expected: NOON,
    warning: "event_timestamp_in_future",
  },
  { name: "22 h ahead", timestamp: iso(NOON + 22 * HOUR), expected: NOON + 22 * HOUR },
  {
    name: "year 99999",
    timestamp: "99999-01-01T00:00:00Z",
    expected: NOON,
    warning: "ignored_invalid_timestamp",
  },
  { name: "not a date", timestamp: "not a date", expected: NOON, warning: "ignored_invalid_timestamp" },

  { name: "nothing", expected: NOON },
  { name: "null", timestamp: null, offset: null, expected: NOON },
  { name: "exactly 23 h ahead", timestamp: iso(NOON + 23 * HOUR), expected: NOON + 23 * HOUR },
  {
    name: "offset beside a timestamp",
    timestamp: day("01:00:00"),
    offset: 5_000,
    expected: micros("11:59:55"),
  },
  { name: "offset beside nonsense", timestamp: "nonsense", offset: 5_000, expected: micros("11:59:55") },
  { name: "offset 0", timestamp: day("01:00:00"), offset: 0, expected: NOON },
  {
    name: "an offset that is text",
    timestamp: day("01:00:00"),
    offset: "5000",
    expected: micros("01:00:00"),
  },
  {
    name: "an offset into the future",
    offset: -24 * 3_600_000,
    expected: NOON,
    warning: "event_timestamp_in_future",
  },
  { name: "an absurd offset", offset: 1e300, expected: NOON, warning: "ignored_invalid_timestamp" },
  {
    name: "skew moves it into the future",
    timestamp: day("12:00:00"),
    sentAt: "2026-11-19T12:00:00Z",
    expected: NOON,
    warning: "event_timestamp_in_future",
  },
  { name: "seconds as a number", timestamp: NOON / 1e6 - 60, expected: NOON - 60_000_000 },
  { name: "milliseconds as a number", timestamp: NOON / 1e3 - 60_000, expected: NOON - 60_000_000 },
  { name: "a boolean", timestamp: true, expected: NOON, warning: "ignored_invalid_timestamp" },
  { name: "an object", timestamp: {}, expected: NOON, warning: "ignored_invalid_timestamp" },
  { name: "an empty text", timestamp: "", expected: NOON, warning: "ignored_invalid_timestamp" },
  { name: "before the year 0", timestamp: -1e14, expected: NOON, warning: "ignored_invalid_timestamp" },
  { name: "the year 1", timestamp: "0001-01-01T00:00:00Z", expected: -62_135_596_800_000_000 },
  {
    name: "a naive time is UTC",
    timestamp: "2026-11-21T11:00:00.123456",
    expected: micros("11:00:00") + 123_456,
  },
];

describe("the time of an event", () => {
  for (const { name, timestamp, offset, sentAt, ignore, expected, warning } of VECTORS) {
    test(name, () => {
      const sentAtMicros = sentAt === undefined ? undefined : parseInstant(sentAt);
      const properties = ignore ? { $ignore_sent_at: true } : {};
      const outcome = normalize(
        item({ event: "e", distinct_id: "d", timestamp, offset, properties }),
        facts({ sentAtMicros }),
      );
      expect(stored(outcome).time).toBe(expected);
      expect(warningTypes(outcome)).toEqual(warning === undefined ? [] : [warning]);
    });
  }

  describe("in a historical migration", () => {
    for (const { name, timestamp, expected, warning } of [
      { name: "is the event's own", timestamp: day("11:00:00"), expected: micros("11:00:00") },
      {
        name: "to the microsecond",
        timestamp: "2020-01-01T00:00:00.123456Z",
        expected: 1_577_836_800_123_456,
      },
      { name: "in the near future", timestamp: iso(NOON + HOUR), expected: NOON + HOUR },
      {
        name: "in the future, as given",
        timestamp: "2030-01-01T00:00:00Z",
        expected: Date.UTC(2030, 0) * 1_000,
        warning: "event_timestamp_in_future",
      },
      { name: "missing", expected: NOON, warning: "historical_event_without_timestamp" },
      { name: "null", timestamp: null, expected: NOON, warning: "historical_event_without_timestamp" },
      { name: "unreadable", timestamp: "last year", expected: NOON, warning: "ignored_invalid_timestamp" },
      {
        name: "of no year that can be stored",
        timestamp: 1e300,
        expected: NOON,
        warning: "ignored_invalid_timestamp",
      },
    ] as Vector[]) {
      test(name, () => {
        for (const claims of [{}, { offset: 5_000 }, { properties: { $ignore_sent_at: true } }]) {
          for (const sentAtMicros of [undefined, NOON - HOUR, NOON + 30 * 24 * HOUR]) {
            const sent = item({ event: "e", distinct_id: "d", timestamp, ...claims });
            const outcome = normalize(sent, facts({ isHistorical: true, sentAtMicros }));
            expect(stored(outcome).time).toBe(expected);
            expect(warningTypes(outcome)).toEqual(warning === undefined ? [] : [warning]);
          }
        }
      });
    }
  });

  test("infinite numbers, which JSON can write, are no times", () => {
    expect(eventTime(Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, NOON, undefined)).toEqual({
      micros: NOON,
      warning: "ignored_invalid_timestamp",
    });
  });
});

describe("the send time of a request", () => {
  for (const [name, claims, expected] of [
    ["ISO 8601 in the body", [day("11:00:00"), "1795262400000"], micros("11:00:00")],
    ["milliseconds in the query", [undefined, "1795262400000"], NOON],
    ["ISO 8601 in the query", [undefined, day("11:00:00")], micros("11:00:00")],
    ["an unreadable body gives way", ["soon", "1795262400000"], NOON],
    ["a number before 2021 is a counter, not a clock", [undefined, "1609459199999"], undefined],
    ["a number from 2021 on", [undefined, "1609459200000"], 1_609_459_200_000_000],
    ["zero", [0, "0"], undefined],
    ["beyond the year 9999", [1e300, "1e300"], undefined],
    ["nothing", [undefined, undefined, null], undefined],
    ["things that are no text", [{}, [], true], undefined],
  ] as [string, unknown[], number | undefined][]) {
    test(name, () => expect(sendTime(claims)).toBe(expected));
  }
});
