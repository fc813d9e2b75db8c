/** The range of a trend, and its buckets. */

import { describe, expect, test } from "bun:test";
import { computeInsight } from "../../../src/events/api/compute-query.ts";
import {
  comparedRange,
  getBuckets,
  getRange,
  lastBuckets,
} from "../../../src/events/insights/trend-range.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { TestStores } from "../../support/event-store.ts";

const now = Date.UTC(2026, 10, 21, 12, 30);
const day = 86_400_000;

describe("the range of a trend", () => {
  const cases: [string, JsonObject, string, string][] = [
    ["default", {}, "2026-11-14 00:00:00", "2026-11-22 00:00:00"],
    ["days", { date_from: "-2d", date_to: "-1d" }, "2026-11-19 00:00:00", "2026-11-21 00:00:00"],
    ["a month is clamped", { date_from: "-9m" }, "2026-02-21 00:00:00", "2026-11-22 00:00:00"],
    ["start of the month", { date_from: "mStart" }, "2026-11-01 00:00:00", "2026-11-22 00:00:00"],
    [
      "last month",
      { date_from: "-1mStart", date_to: "-1mEnd" },
      "2026-10-01 00:00:00",
      "2026-11-01 00:00:00",
    ],
    ["yesterday", { date_from: "-1dStart", date_to: "-1dEnd" }, "2026-11-20 00:00:00", "2026-11-21 00:00:00"],
    ["start of the quarter", { date_from: "qStart" }, "2026-10-01 00:00:00", "2026-11-22 00:00:00"],
    [
      "the year before",
      { date_from: "-1yStart", date_to: "-1yEnd" },
      "2025-01-01 00:00:00",
      "2026-01-01 00:00:00",
    ],
    [
      "written days",
      { date_from: "2026-01-02", date_to: "2026-01-03" },
      "2026-01-02 00:00:00",
      "2026-01-04 00:00:00",
    ],
    [
      "written times",
      { date_from: "2026-01-02T03:04:05Z", date_to: "2026-01-02 04:00" },
      "2026-01-02 03:04:05",
      "2026-01-02 04:00:00",
    ],
  ];
  for (const [name, dates, from, to] of cases) {
    test(name, () => expect(getRange(dates, "day", { now, timezone: "UTC" })).toMatchObject({ from, to }));
  }

  test("a written time is the project's, unless it names a zone", () => {
    const inBerlin = (date_from: string) =>
      getRange({ date_from, date_to: "2026-08-03" }, "day", { now, timezone: "Europe/Berlin" })?.from;
    expect(inBerlin("2026-08-02T03:04:05")).toBe("2026-08-02 03:04:05");
    expect(inBerlin("2026-08-02T03:04:05Z")).toBe("2026-08-02 05:04:05");
    expect(inBerlin("2026-08-01T22:30:00-05:00")).toBe("2026-08-02 05:30:00");
    expect(inBerlin("2026-01-02T03:04:05.500Z")).toBe("2026-01-02 04:04:05");
  });

  test("days that no calendar has are no range", () => {
    for (const date_from of ["2026-02-30", "2026-02-30T00:00", "2026-13-01", "d", "-", "2026-01-02T25:00"])
      expect([date_from, getRange({ date_from }, "day", { now, timezone: "UTC" })]).toEqual([
        date_from,
        undefined,
      ]);
  });

  const all = (earliest: number, interval: "hour" | "day" | "week" | "month") =>
    getRange({ date_from: "all" }, interval, { now, timezone: "UTC", earliest });

  test("`all` starts at the first event unless that is too many buckets, else as early as possible", () => {
    for (const [earliest, interval, from, buckets] of [
      [0, "month", "1970-01-01 00:00:00", 683],
      [0, "week", "1970-01-01 00:00:00", 2969],
      [0, "day", "1972-02-19 00:00:00", 20_000],
      [0, "hour", "2024-08-10 05:00:00", 20_000],
      [Date.parse("0000-01-01"), "month", "0360-04-01 00:00:00", 20_000],
      [Date.parse("0050-03-04"), "month", "0360-04-01 00:00:00", 20_000],
      [now + 9 * day, "day", "2026-11-21 00:00:00", 1],
    ] as const) {
      const range = all(earliest, interval)!;
      expect([interval, range.from, getBuckets(range, interval).length]).toEqual([interval, from, buckets]);
    }
    expect(getRange({ date_from: "all" }, null, { now, timezone: "UTC", earliest: 0 })!.fromMs).toBe(0);
  });

  test("a written range may have as many buckets of its interval", () => {
    const written = { date_from: "1970-01-01" };
    expect(getRange(written, "month", { now, timezone: "UTC" })).toBeDefined();
    expect(getRange(written, "day", { now, timezone: "UTC" })).toBeUndefined();
  });

  test("years below 100 and hours before 1970", () => {
    const range = getRange({ date_from: "0050-01-15", date_to: "0050-02-20" }, "month", {
      now,
      timezone: "UTC",
    })!;
    expect(getBuckets(range, "month").map(({ day: start }) => start)).toEqual(["0050-01-01", "0050-02-01"]);
    const hours = getRange({ date_from: "1969-12-31 22:30", date_to: "1969-12-31 23:30" }, "hour", {
      now,
      timezone: "UTC",
    })!;
    expect(getBuckets(hours, "hour").map(({ bucket }) => bucket)).toEqual([
      "1969-12-31 22:00:00",
      "1969-12-31 23:00:00",
    ]);
  });

  test("an event of 1970 leaves a trend of all days answerable", async () => {
    await using old = await TestStores.open();
    await old.load([
      { event: "call", time: 0 },
      { event: "call", time: now - day },
    ]);
    const ask = async (interval: string) => {
      const query = {
        kind: "TrendsQuery",
        series: [{ kind: "EventsNode", event: "call" }],
        dateRange: { date_from: "all" },
        interval,
      };
      const request = { projectId: 1, query, timezone: "UTC", now };
      return (await old.ask((store) => computeInsight(store, request))) as JsonObject[];
    };
    expect((await ask("day"))[0]!.count).toBe(1);
    expect((await ask("month"))[0]!.count).toBe(2);
  });

  test("buckets of weeks begin on Monday", () => {
    const range = getRange({ date_from: "-1w" }, "week", { now, timezone: "UTC" })!;
    expect(getBuckets(range, "week").map(({ day: start }) => start)).toEqual(["2026-11-09", "2026-11-16"]);
  });

  test("weeks start on the requested day (contract, management-api 6.3)", () => {
    for (const [weekStartDay, dates, from, to, weeks] of [
      // Now is a Saturday.
      [0, { date_from: "-1w" }, "2026-11-14", "2026-11-22", ["2026-11-08", "2026-11-15"]],
      [1, { date_from: "-1w" }, "2026-11-14", "2026-11-22", ["2026-11-09", "2026-11-16"]],
      [null, { date_from: "-1w" }, "2026-11-14", "2026-11-22", ["2026-11-09", "2026-11-16"]],
      [0, { date_from: "wStart" }, "2026-11-15", "2026-11-22", ["2026-11-15"]],
      [1, { date_from: "wStart" }, "2026-11-16", "2026-11-22", ["2026-11-16"]],
      [0, { date_from: "-1wStart", date_to: "-1wEnd" }, "2026-11-08", "2026-11-15", ["2026-11-08"]],
      [1, { date_from: "-1wStart", date_to: "-1wEnd" }, "2026-11-09", "2026-11-16", ["2026-11-09"]],
      // A Sunday alone is the first day of one week, and the last of another.
      [0, { date_from: "2026-11-15", date_to: "2026-11-15" }, "2026-11-15", "2026-11-16", ["2026-11-15"]],
      [1, { date_from: "2026-11-15", date_to: "2026-11-15" }, "2026-11-15", "2026-11-16", ["2026-11-09"]],
      [0, { date_from: "1969-12-28", date_to: "1970-01-03" }, "1969-12-28", "1970-01-04", ["1969-12-28"]],
    ] as const) {
      const range = getRange(dates, "week", { now, timezone: "UTC", weekStartDay })!;
      expect([weekStartDay, dates, range.from, range.to]).toEqual([
        weekStartDay,
        dates,
        `${from} 00:00:00`,
        `${to} 00:00:00`,
      ]);
      expect(getBuckets(range, "week").map(({ day: start }) => start)).toEqual([...weeks]);
    }
    const inWeeks = (weekStartDay: 0 | 1) =>
      lastBuckets(3, "week", {}, { now, timezone: "UTC", weekStartDay });
    expect([inWeeks(0)?.from, inWeeks(1)?.from]).toEqual(["2026-11-01 00:00:00", "2026-11-02 00:00:00"]);
    const sunday = getRange({ date_from: "wStart" }, "week", { now, timezone: "UTC", weekStartDay: 0 })!;
    expect(getBuckets(comparedRange(sunday, "-1w")!, "week").map(({ day: start }) => start)).toEqual([
      "2026-11-08",
    ]);
  });
});
