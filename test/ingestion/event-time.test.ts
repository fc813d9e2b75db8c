import { describe, expect, test } from "bun:test";
import { eventTime, sendTime } from "../../src/ingestion/event-time.ts";
import { normalize } from "../../src/ingestion/normalize.ts";
import { parseInstant } from "../../src/lib/timestamp.ts";
import { facts, item, noon, stored, warningTypes } from "./support.ts";

const day = (time: string) => `2026-11-21T${time}Z`;
const micros = (time: string) => parseInstant(day(time))!;
const hour = 3_600_000_000;
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
const vectors: Vector[] = [
  {
    name: "the client's clock is 5 s ahead: within what a delivery takes",
    timestamp: day("11:59:55"),
    sentAt: day("12:00:05"),
    expected: micros("11:59:55"),
  },
  { name: "60 s ahead", timestamp: day("11:00:00"), sentAt: day("12:01:00"), expected: micros("11:00:00") },
  { name: "60 s behind", timestamp: day("11:00:00"), sentAt: day("11:59:00"), expected: micros("11:00:00") },
  { name: "61 s ahead", timestamp: day("11:00:00"), sentAt: day("12:01:01"), expected: micros("10:58:59") },
  {
    name: "more than 60 s behind",
    timestamp: day("11:00:00"),
    sentAt: day("11:58:59.999999"),
    expected: micros("11:01:00") + 1,
  },
  {
    name: "an own time to the digit",
    timestamp: day("11:00:00.123456"),
    sentAt: day("11:59:59.999"),
    expected: micros("11:00:00") + 123_456,
  },
  { name: "a year", timestamp: "2025", expected: parseInstant("2025-01-01")!, warning: "guessed_timestamp" },
  {
    name: "an ordinal date",
    timestamp: "2026300",
    expected: parseInstant("2026-300")!,
    warning: "guessed_timestamp",
  },
  {
    name: "a calendar date as a number",
    timestamp: 20261120,
    expected: parseInstant("2026-11-20")!,
    warning: "guessed_timestamp",
  },
  ...[0, "0", -1, 1234, "1234", 2026, "1970", 631_151_999, "1234567", 86_400_000].map((timestamp) => ({
    name: `digits of a time before 1990: ${JSON.stringify(timestamp)}`,
    timestamp,
    expected: noon,
    warning: "ignored_invalid_timestamp",
  })),
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
    timestamp: iso(noon + 24 * hour),
    expected: noon,
    warning: "event_timestamp_in_future",
  },
  { name: "22 h ahead", timestamp: iso(noon + 22 * hour), expected: noon + 22 * hour },
  {
    name: "year 99999",
    timestamp: "99999-01-01T00:00:00Z",
    expected: noon,
    warning: "ignored_invalid_timestamp",
  },
  { name: "not a date", timestamp: "not a date", expected: noon, warning: "ignored_invalid_timestamp" },

  { name: "nothing", expected: noon },
  { name: "null", timestamp: null, offset: null, expected: noon },
  { name: "exactly 23 h ahead", timestamp: iso(noon + 23 * hour), expected: noon + 23 * hour },
  {
    name: "offset beside a timestamp",
    timestamp: day("01:00:00"),
    offset: 5_000,
    expected: micros("11:59:55"),
  },
  { name: "offset beside nonsense", timestamp: "nonsense", offset: 5_000, expected: micros("11:59:55") },
  { name: "offset 0", timestamp: day("01:00:00"), offset: 0, expected: noon },
  {
    name: "an offset that is text",
    timestamp: day("01:00:00"),
    offset: "5000",
    expected: micros("01:00:00"),
    warning: "invalid_offset",
  },
  {
    name: "an offset into the future",
    offset: -24 * 3_600_000,
    expected: noon,
    warning: "event_timestamp_in_future",
  },
  { name: "an absurd offset", offset: 1e300, expected: noon, warning: "ignored_invalid_timestamp" },
  {
    name: "skew moves it into the future",
    timestamp: day("12:00:00"),
    sentAt: "2026-11-19T12:00:00Z",
    expected: noon,
    warning: "event_timestamp_in_future",
  },
  { name: "seconds as a number", timestamp: noon / 1e6 - 60, expected: noon - 60_000_000 },
  { name: "milliseconds as a number", timestamp: noon / 1e3 - 60_000, expected: noon - 60_000_000 },
  { name: "a boolean", timestamp: true, expected: noon, warning: "ignored_invalid_timestamp" },
  { name: "an object", timestamp: {}, expected: noon, warning: "ignored_invalid_timestamp" },
  { name: "an empty text", timestamp: "", expected: noon, warning: "ignored_invalid_timestamp" },
  { name: "before the year 0", timestamp: -1e14, expected: noon, warning: "ignored_invalid_timestamp" },
  { name: "the year 1", timestamp: "0001-01-01T00:00:00Z", expected: -62_135_596_800_000_000 },
  {
    name: "a naive time is UTC",
    timestamp: "2026-11-21T11:00:00.123456",
    expected: micros("11:00:00") + 123_456,
  },
];

describe("the time of an event", () => {
  for (const { name, timestamp, offset, sentAt, ignore, expected, warning } of vectors) {
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
      { name: "in the near future", timestamp: iso(noon + hour), expected: noon + hour },
      {
        name: "in the future, as given",
        timestamp: "2030-01-01T00:00:00Z",
        expected: Date.UTC(2030, 0) * 1_000,
        warning: "event_timestamp_in_future",
      },
      { name: "missing", expected: noon, warning: "historical_event_without_timestamp" },
      { name: "null", timestamp: null, expected: noon, warning: "historical_event_without_timestamp" },
      { name: "unreadable", timestamp: "last year", expected: noon, warning: "ignored_invalid_timestamp" },
      {
        name: "of no year that can be stored",
        timestamp: 1e300,
        expected: noon,
        warning: "ignored_invalid_timestamp",
      },
    ] as Vector[]) {
      test(name, () => {
        for (const claims of [{}, { offset: 5_000 }, { properties: { $ignore_sent_at: true } }]) {
          for (const sentAtMicros of [undefined, noon - hour, noon + 30 * 24 * hour]) {
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
    expect(eventTime(Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, noon, undefined)).toEqual({
      micros: noon,
      warning: "ignored_invalid_timestamp",
    });
  });
});

describe("the send time of a request", () => {
  for (const [name, claims, expected] of [
    ["ISO 8601 in the body", [day("11:00:00"), "1795262400000"], micros("11:00:00")],
    ["milliseconds in the query", [undefined, "1795262400000"], noon],
    ["ISO 8601 in the query", [undefined, day("11:00:00")], micros("11:00:00")],
    ["an unreadable body gives way", ["soon", "1795262400000"], noon],
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
