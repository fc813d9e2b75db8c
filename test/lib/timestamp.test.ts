import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { isDateOfDigits, parseInstant, parseNumericTime } from "../../src/lib/timestamp.ts";

const morning = Date.UTC(2026, 10, 21, 2, 31, 7) * 1_000;
const dayMicros = Date.UTC(2026, 10, 21) * 1_000;
const hour = 3_600_000_000;

const readable: [string, number][] = [
  ["2026-11-21T02:31:07Z", morning],
  ["2026-11-21T02:31:07z", morning],
  ["2026-11-21t02:31:07", morning],
  ["2026-11-21 02:31:07", morning],
  ["2026-11-21T02:31:07.5Z", morning + 500_000],
  ["2026-11-21T02:31:07,5Z", morning + 500_000],
  ["2026-11-21T02:31:07.123456Z", morning + 123_456],
  ["2026-11-21T02:31:07.123456789Z", morning + 123_456],
  ["2026-11-21T02:31:07.000001", morning + 1],
  ["2026-11-21T02:31:07.028548+00:00", morning + 28_548],
  ["2026-11-21T05:31:07+03:00", morning],
  ["2026-11-21T05:31:07+0300", morning],
  ["2026-11-21T05:31:07+03", morning],
  ["2026-11-20T21:01:07-05:30", morning],
  ["2026-11-21 05:31:07.5 +0300", morning + 500_000],
  ["2026-11-21 02:31:07 UTC", morning],
  ["2026-11-21 02:31:07.5 utc", morning + 500_000],
  ["2026-11-21T02:31:07GMT", morning],
  ["2026-11-21 02:31:07 Z", morning],
  ["2026-11-20 21:31:07 EST", morning],
  ["2026-11-21 02:31:07.123456789 +0000 UTC", morning + 123_456],
  ["2026-11-21 03:31:07 +0100 CET", morning],
  ["2026-11-21T02:31", morning - 7_000_000],
  ["2026-11-21T02:31Z", morning - 7_000_000],
  ["2026-11-21", dayMicros],
  ["2026/11/21", dayMicros],
  ["2026/11/21 02:31:07", morning],
  ["20261121T023107Z", morning],
  ["20261121T023107.25+0100", morning - hour + 250_000],
  ["20261121T0231", morning - 7_000_000],
  ["20261121T02Z", dayMicros + 2 * hour],
  ["20261121T02:31:07Z", morning],
  ["2026-11-21T023107Z", morning],
  ["20261121", dayMicros],
  ["2026-11-21T02", dayMicros + 2 * hour],
  ["2026-11-21 02Z", dayMicros + 2 * hour],
  ["2026-11-21T05+03", dayMicros + 2 * hour],
  ["2026-11-21T05+03:00", dayMicros + 2 * hour],
  ["2026-11-21T05:31:07\u221203:00", morning + 6 * hour],
  ["2026-11-21T02.5", dayMicros + 2.5 * hour],
  ["2026-11-21T02:31,5Z", dayMicros + 2 * hour + 31.5 * 60_000_000],
  ["2026-11-21T24", dayMicros + 24 * hour],
  ["2026-W47-6", dayMicros],
  ["2026W476", dayMicros],
  ["2026-W47-6T02:31:07Z", morning],
  ["2026W476T023107Z", morning],
  ["2026-w47-6 02:31:07", morning],
  ["2026-W47", dayMicros - 5 * 24 * hour],
  ["2026-W01-1", Date.UTC(2025, 11, 29) * 1_000],
  ["2026-W53-7", Date.UTC(2027, 0, 3) * 1_000],
  ["2020-W53-7", Date.UTC(2021, 0, 3) * 1_000],
  ["2026-325", dayMicros],
  ["2026-325T02:31:07Z", morning],
  ["2026325T023107Z", morning],
  ["2024-366", Date.UTC(2024, 11, 31) * 1_000],
  ["2026-11", Date.UTC(2026, 10, 1) * 1_000],
  ["+002026-11-21T02:31:07Z", morning],
  ["2026325", dayMicros],
  ["2024366", Date.UTC(2024, 11, 31) * 1_000],
  ["2026", Date.UTC(2026, 0, 1) * 1_000],
  [" 1990 ", Date.UTC(1990, 0, 1) * 1_000],
  ["19900101", Date.UTC(1990, 0, 1) * 1_000],
  ["631152000", Date.UTC(1990, 0, 1) * 1_000],
  ["  2026-11-21T02:31:07Z\n", morning],
  ["2026-11-21T24:00:00Z", dayMicros + 24 * hour],
  ["2026-12-31T23:59:60Z", Date.UTC(2027, 0, 1) * 1_000],
  ["2024-02-29T00:00:00Z", Date.UTC(2024, 1, 29) * 1_000],
  ["2000-02-29", Date.UTC(2000, 1, 29) * 1_000],
  ["1970-01-01T00:00:00Z", 0],
  ["1969-12-31T23:59:59.999999Z", -1],
  ["0000-01-01T00:00:00Z", -62_167_219_200_000_000],
  ["9999-12-31T23:59:59Z", 253_402_300_799_000_000],
  ["Sat, 21 Nov 2026 02:31:07 GMT", morning],
  ["Sat, 21 Nov 2026 03:31:07 +0100", morning],
  ["21 Nov 2026 02:31", morning - 7_000_000],
  ["20 Nov 2026 21:31:07 EST", morning],
  ["Sat Nov 21 2026 03:31:07 GMT+0100 (Central European Standard Time)", morning],
  ["Sat Nov 21 2026 02:31:07 GMT", morning],
  ["Sat Nov 21 02:31:07 UTC 2026", morning],
  ["Sat Nov 21 02:31:07 2026", morning],
  ["Fri Nov 20 21:31:07 EST 2026", morning],
  ["2026-11-21T03:31:07+01:00[Europe/Berlin]", morning],
  ["2026-11-21T02:31:07.5Z[UTC][u-ca=gregory]", morning + 500_000],
  [String(morning / 1e6), morning],
  [String(morning / 1e3), morning],
  ["1795228267.25", 1_795_228_267_250_000],
];

const unreadable = [
  "",
  // Digits that would mean a time before 1990.
  "0",
  "-1",
  "1",
  "1970",
  "1989",
  "0000",
  "1970001",
  "1989365",
  "2026000",
  "2026400",
  "1234567",
  "19700101",
  "19891231",
  "12345678",
  "20261340",
  "631151999",
  "631151999999",
  "2026.5",
  "+2026",
  " ",
  "not a date",
  "now",
  "99999-01-01T00:00:00Z",
  "2026-13-01",
  "2026-00-10",
  "2026-11-31",
  "2025-02-29",
  "1900-02-29",
  "2026-11-21T25:00:00Z",
  "2026-11-21T24:00:01Z",
  "2026-11-21T02:60:00Z",
  "2026-11-21T02:31:61Z",
  "2026-11-21T02:31:07.Z",
  "2026-11-21T02:31:07X",
  "2026-11-21 02:31:07 BST",
  // Which of two offsets it would be is not looked up.
  "2026-11-21T02:31:07[Europe/Berlin]",
  "2026-11-21T02:31:07Z[]",
  "2026-11-21T02:31:07Z[UTC",
  "Sat Nov 31 02:31:07 UTC 2026",
  "Sat Nov 21 02:31:07 CEST 2026",
  "2026-11-21 02:31:07 UTC+1",
  "2026-11-21 02:31:07 +0000 m=+0.1",
  "2026-11-21T02:31:07+",
  "2026-11-21T02:31:07+3",
  "2026-11-21T02:31:07+24:00",
  "2026-11-21T02:31:07+03:60",
  "2026-11-21T02:31:07+03:000",
  "2026-11-21T2",
  "2026-11-21T02.",
  "2026-11-21T02+3",
  "2026-11-21T023",
  "2026-1121",
  "202611-21",
  "20261121T25",
  "2026-W00-1",
  "2026-W54-1",
  "2021-W53-1",
  "2026-W47-0",
  "2026-W47-8",
  "2026-000",
  "2026-366",
  "2026-13",
  "2026-11-21T",
  "2026-11/21",
  "2026-1-2",
  "2o26-11-21",
  "Sat, 32 Nov 2026 02:31:07 GMT",
  "Sat, 21 Foo 2026 02:31:07 GMT",
  "Sat, 21 Nov 2026 02:31:07 XYZ",
  "1e10",
  "0x10",
  "Infinity",
  "２０２６-11-21",
  "2026-11-21T02:31:07Z".repeat(10),
];

describe("times that are read", () => {
  for (const [text, micros] of readable) test(text.trim(), () => expect(parseInstant(text)).toBe(micros));
});

describe("texts that are no times", () => {
  for (const text of unreadable) {
    test(JSON.stringify(text.slice(0, 40)), () => expect(parseInstant(text)).toBeUndefined());
  }
});

test("agrees with Date on every millisecond that ISO 8601 can write", () => {
  const from = new Date("0000-01-01T00:00:00Z");
  const to = new Date("9999-12-31T23:59:59.999Z");
  fc.assert(
    fc.property(fc.date({ min: from, max: to, noInvalidDate: true }), (date) => {
      expect(parseInstant(date.toISOString())).toBe(date.getTime() * 1_000);
      expect(parseInstant(date.toUTCString())).toBe(Math.floor(date.getTime() / 1_000) * 1_000_000);
    }),
    { numRuns: 1_000 },
  );
});

test("reads offsets like Date", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 23 }),
      fc.integer({ min: 0, max: 59 }),
      fc.boolean(),
      (h, m, east) => {
        const zone = `${east ? "+" : "-"}${String(h).padStart(2, "0")}:${String(m).padStart(2, "0")}`;
        const text = `2026-11-21T02:31:07.125${zone}`;
        expect(parseInstant(text)).toBe(Date.parse(text) * 1_000);
      },
    ),
  );
});

test("never throws and returns only integers", () => {
  const almostTime = fc.stringMatching(/^[0-9]{4}[-/]?[0-9]{2}[-/]?[0-9]{2}[Tt ]?[0-9:.,Zz+ -]{0,20}$/);
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: "binary" }), almostTime), (text) => {
      const micros = parseInstant(text);
      expect(micros === undefined || Number.isInteger(micros)).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});

test("reads every day in its calendar, ordinal and week form alike", () => {
  const from = new Date("0001-01-01T00:00:00Z");
  const to = new Date("9998-12-31T00:00:00Z");
  fc.assert(
    fc.property(fc.date({ min: from, max: to, noInvalidDate: true }), (date) => {
      const dayMs = 86_400_000;
      const day = Math.floor(date.getTime() / dayMs) * dayMs;
      const year = date.getUTCFullYear();
      const yearText = String(year).padStart(4, "0");
      const yearStart = new Date(0).setUTCFullYear(year, 0, 1);
      const ordinal = String((day - yearStart) / dayMs + 1).padStart(3, "0");
      // ISO: a week belongs to the year of its Thursday.
      const weekday = (new Date(day).getUTCDay() + 6) % 7;
      const thursday = new Date(day + (3 - weekday) * dayMs);
      const weekYear = thursday.getUTCFullYear();
      const number =
        Math.floor((thursday.getTime() - new Date(0).setUTCFullYear(weekYear, 0, 1)) / dayMs / 7) + 1;
      const week = `${String(weekYear).padStart(4, "0")}-W${String(number).padStart(2, "0")}-${weekday + 1}`;
      const basic = new Date(day).toISOString().slice(0, 10).replaceAll("-", "");
      for (const text of [`${yearText}-${ordinal}`, week, week.replaceAll("-", ""), `${basic}T00`]) {
        expect([text, parseInstant(text)]).toEqual([text, day * 1_000]);
      }
      for (const text of [basic, `${yearText}${ordinal}`]) {
        expect([text, parseInstant(text)]).toEqual([text, year < 1990 ? undefined : day * 1_000]);
      }
    }),
    { numRuns: 1_000 },
  );
});

test("eight digits are a date where they make one, as a number too", () => {
  expect(parseNumericTime(20261121)).toBe(dayMicros);
  expect(parseNumericTime(20261340)).toBeUndefined();
  expect(parseNumericTime(20261121.5)).toBeUndefined();
});

test("no digits mean a time before 1990", () => {
  fc.assert(
    fc.property(
      fc.oneof(fc.double({ noNaN: true }), fc.integer(), fc.integer({ min: 0, max: 99_999_999 })),
      (value) => {
        for (const micros of [parseNumericTime(value), parseInstant(String(value))])
          expect(micros === undefined || micros >= Date.UTC(1990, 0, 1) * 1_000).toBe(true);
      },
    ),
  );
});

test("dates of digits alone are distinguished from other times", () => {
  for (const claim of ["2026", "2026325", "20261121", " 2026 ", 20261121])
    expect([claim, isDateOfDigits(claim)]).toEqual([claim, true]);
  for (const claim of ["2026-11", "1795228267", 2026, 1795228267, null, {}, "", "20261121T00"])
    expect([claim, isDateOfDigits(claim)]).toEqual([claim, false]);
});

test("Unix numbers are seconds or milliseconds by their size", () => {
  expect(parseNumericTime(1_795_228_267)).toBe(morning);
  expect(parseNumericTime(1_795_228_267_000)).toBe(morning);
  expect(parseNumericTime(1_795_228_267.5)).toBe(morning + 500_000);
  expect(parseNumericTime(Number.POSITIVE_INFINITY)).toBeUndefined();
  expect(parseNumericTime(Number.NaN)).toBeUndefined();
});
