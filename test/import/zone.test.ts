/** Times without a zone. Source: contract, import 1.5. */

import { describe, expect, test } from "bun:test";
import { emptyCounts, formatWarnings } from "../../src/import/counts.ts";
import { comparedRecordsMax, LocalTimes } from "../../src/import/format-reader.ts";
import { mapRecord } from "../../src/import/map/formats.ts";
import { toTime } from "../../src/import/map/time.ts";
import { getZone } from "../../src/import/map/zone.ts";

const now = Date.UTC(2026, 0, 1) * 1_000;
const cases: readonly (readonly [
  value: string | number,
  zone: string,
  iso: string,
  hasLocalNumbers?: true,
])[] = [
  ["2024-05-01 10:00:00", "Europe/Berlin", "2024-05-01T08:00:00.000Z"],
  ["2024-01-01T10:00:00.5", "Europe/Berlin", "2024-01-01T09:00:00.500Z"],
  ["2024-05-01 10:00:00Z", "Europe/Berlin", "2024-05-01T10:00:00.000Z"],
  ["2024-05-01 10:00:00 UTC", "Europe/Berlin", "2024-05-01T10:00:00.000Z"],
  ["2024-05-01 10:00:00+02:00", "America/New_York", "2024-05-01T08:00:00.000Z"],
  ["2024-10-27 02:30:00", "Europe/Berlin", "2024-10-27T00:30:00.000Z"],
  ["2024-03-31 02:30:00", "Europe/Berlin", "2024-03-31T01:30:00.000Z"],
  ["2024-11-03 01:30:00", "America/New_York", "2024-11-03T05:30:00.000Z"],
  ["2024-05-01", "+05:30", "2024-04-30T18:30:00.000Z"],
  ["20240501100000", "-03:00", "2024-05-01T13:00:00.000Z"],
  [1714557600, "Europe/Berlin", "2024-05-01T10:00:00.000Z"],
  ["1714557600", "Europe/Berlin", "2024-05-01T10:00:00.000Z"],
  [1714557600, "Europe/Berlin", "2024-05-01T08:00:00.000Z", true],
  ["2024", "+00:00", "2024-01-01T00:00:00.000Z"],
  ["2024122", "+00:00", "2024-05-01T00:00:00.000Z"],
];
for (const [value, name, iso, hasLocalNumbers] of cases)
  test(`${value} in ${name}${hasLocalNumbers ? ", local" : ""}`, () => {
    const zone = { toInstant: getZone(name)!, hasLocalNumbers: hasLocalNumbers === true };
    const micros = toTime(value, now, zone);
    expect(typeof micros === "number" ? new Date(micros / 1_000).toISOString() : micros).toBe(iso);
  });

test("a number of four digits is no year", () => expect(toTime(2024, now)).toBe("timestamp_out_of_range"));

for (const name of ["", "Mars/Phobos", "+15:00", "+05:60", "5", "Europe/Berlin; x"])
  test(`${name} is no zone`, () => expect(getZone(name)).toBeUndefined());

describe("local times of Mixpanel are noticed", () => {
  const utc = 1_760_000_000;
  const record = (shiftSeconds: number, delaySeconds = 0, more = {}) => ({
    event: "e",
    properties: { time: utc + shiftSeconds, mp_processing_time_ms: (utc + delaySeconds) * 1_000, ...more },
  });
  const getWarning = (records: ReturnType<typeof record>[]) => {
    const times = new LocalTimes(now);
    for (const each of records) times.add(each);
    return times.warning;
  };
  const many = (count: number, make: (at: number) => ReturnType<typeof record>) =>
    Array.from({ length: count }, (_, at) => make(at));

  test("when all differ by the same quarters of an hour", () => {
    expect(getWarning(many(5, (at) => record(7_200, at)))).toEqual(["mixpanel_local_time +02:00", 5]);
    expect(getWarning(many(5, () => record(-9_900)))).toEqual(["mixpanel_local_time -02:45", 5]);
    const api = record(3_600, 0, {
      mp_processing_time_ms: undefined,
      $mp_api_timestamp_ms: String(utc * 1_000),
    });
    expect(getWarning([api])).toEqual(["mixpanel_local_time +01:00", 1]);
  });

  test("not when there is no difference, another one, or nothing to compare with", () => {
    expect(getWarning(many(5, (at) => record(0, at)))).toBeUndefined();
    expect(getWarning([record(7_200), record(3_600)])).toBeUndefined();
    expect(getWarning([record(7_200), record(0)])).toBeUndefined();
    expect(getWarning([record(480)])).toBeUndefined();
    expect(getWarning([record(-15 * 3_600)])).toBeUndefined();
    expect(getWarning([record(7_200, 0, { mp_processing_time_ms: null })])).toBeUndefined();
  });

  test("by the first records alone", () => {
    const first = many(comparedRecordsMax, () => record(7_200));
    expect(getWarning([...first, record(0)])).toEqual(["mixpanel_local_time +02:00", comparedRecordsMax]);
    expect(getWarning([...first.slice(1), record(0)])).toBeUndefined();
  });

  test("the warning names the option", () => {
    const warnings = { "mixpanel_local_time +02:00": 5, matomo_time_reference_missing: 1, other: 1 };
    expect(formatWarnings({ ...emptyCounts(), warnings })).toEqual([
      "The times of the first 5 records differ from Mixpanel's UTC times by +02:00: they seem to be local times. " +
        "Load such a project with --timezone ZONE.",
      expect.stringContaining("1 visit has neither firstActionTimestamp"),
      "other",
    ]);
  });
});

test("Matomo's times without a time of the visit are reported", () => {
  const visit = {
    idSite: "1",
    idVisit: "2",
    visitorId: "v",
    actionDetails: [{ type: "action", timestamp: 1714564800 }],
  };
  expect(mapRecord("matomo", visit).warnings).toEqual(["matomo_time_reference_missing"]);
  expect(mapRecord("matomo", { ...visit, serverTimestamp: 1714557600 }).warnings).toEqual([]);
});
