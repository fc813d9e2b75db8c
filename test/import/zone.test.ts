/** Times without a zone. Source: contract, import 1.5. */

import { expect, test } from "bun:test";
import { timeOf } from "../../src/import/map/time.ts";
import { zoneOf } from "../../src/import/map/zone.ts";

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
    const zone = { toInstant: zoneOf(name)!, hasLocalNumbers: hasLocalNumbers === true };
    const micros = timeOf(value, now, zone);
    expect(typeof micros === "number" ? new Date(micros / 1_000).toISOString() : micros).toBe(iso);
  });

test("a number of four digits is no year", () => expect(timeOf(2024, now)).toBe("timestamp_out_of_range"));

for (const name of ["", "Mars/Phobos", "+15:00", "+05:60", "5", "Europe/Berlin; x"])
  test(`${name} is no zone`, () => expect(zoneOf(name)).toBeUndefined());
