import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { computeInsight } from "../../../src/events/compute-query.ts";
import { UnknownQueryError } from "../../../src/events/event-filters.ts";
import {
  comparedRange,
  getBuckets,
  getRange,
  lastBuckets,
} from "../../../src/events/insights/trend-range.ts";
import type { Json, JsonObject } from "../../../src/lib/json.ts";
import { TestStores } from "../../support/event-store.ts";

const now = Date.UTC(2026, 10, 21, 12, 30);
const hour = 3_600_000;
const day = 24 * hour;

let stores: TestStores;
beforeAll(async () => {
  stores = await TestStores.open();
  await stores.load([
    { event: "call", distinctId: "a", time: now - hour, properties: { flag: "x", response: "test", ms: 10 } },
    {
      event: "call",
      distinctId: "a2",
      time: now - hour,
      properties: { flag: "x", response: "test", ms: 30 },
    },
    { event: "call", distinctId: "b", time: now - day, properties: { flag: "x", response: true, ms: 20 } },
    {
      event: "call",
      distinctId: "b",
      time: now - day,
      properties: { flag: "y", response: "test", $set: { plan: "paid" } },
    },
    { event: "call", distinctId: "c", time: now - 40 * day, properties: { flag: "x" } },
    { event: "other", distinctId: "a", time: now - hour, properties: { flag: "x" } },
    {
      event: "call",
      distinctId: "z",
      project: 2,
      time: now - hour,
      properties: { flag: "x", response: "test" },
    },
    // 23:30 UTC is the next day in Berlin.
    { event: "late", distinctId: "d", time: Date.UTC(2026, 10, 19, 23, 30) },
    { event: "$identify", distinctId: "a", time: now, properties: { $anon_distinct_id: "a2" } },
  ]);
  await stores.mirror.follow();
});
afterAll(() => stores[Symbol.asyncDispose]());

async function trends(query: JsonObject, timezone = "UTC") {
  const request = { projectId: 1, query: { kind: "TrendsQuery", ...query }, timezone, now };
  return (await stores.ask((store) => computeInsight(store, request))) as JsonObject[];
}
const calls = (more: JsonObject = {}) => ({ kind: "EventsNode", event: "call", ...more });

describe("trends", () => {
  test("total volume per day of the last week, empty days too", async () => {
    const [result] = await trends({ series: [calls()] });
    expect(result).toMatchObject({ label: "call", count: 4, action: { math: "total", order: 0 } });
    expect((result!.days as string[]).at(0)).toBe("2026-11-14");
    expect((result!.days as string[]).at(-1)).toBe("2026-11-21");
    expect(result!.data).toEqual([0, 0, 0, 0, 0, 0, 2, 2]);
    expect((result!.labels as string[]).at(-1)).toBe("21-Nov-2026");
  });

  test("unique users count persons, not distinct ids", async () => {
    const [result] = await trends({ series: [calls({ math: "dau" })], dateRange: { date_from: "-1d" } });
    expect(result!.data).toEqual([1, 1]);
  });

  test("breakdown by an event property, the largest first, with a value for those without", async () => {
    const results = await trends({
      series: [calls()],
      dateRange: { date_from: "-60d" },
      breakdownFilter: { breakdown: "response", breakdown_type: "event" },
    });
    expect(results.map(({ label, breakdown_value, count }) => [label, breakdown_value, count])).toEqual([
      ["test", "test", 3],
      ["true", "true", 1],
      ["None", "$$_posthog_breakdown_null_$$", 1],
    ]);
  });

  test("breakdown by a person property", async () => {
    const results = await trends({
      series: [calls()],
      breakdownFilter: { breakdown: "plan", breakdown_type: "person" },
    });
    expect(results.find(({ label }) => label === "paid")!.count).toBe(2);
  });

  test("filters of series and query, total and by hour", async () => {
    const filter = { key: "flag", value: ["x"], operator: "exact", type: "event" };
    const [result] = await trends({
      series: [calls({ properties: [filter] })],
      properties: {
        type: "AND",
        values: [{ type: "AND", values: [{ key: "ms", operator: "gt", value: "15", type: "event" }] }],
      },
      interval: "hour",
      dateRange: { date_from: "-3h" },
    });
    expect(result!.data).toEqual([0, 0, 1, 0]);
    expect((result!.days as string[])[0]).toBe("2026-11-21 09:00:00");
  });

  test("sums and averages of a property", async () => {
    const series = ["sum", "avg", "max"].map((math) => calls({ math, math_property: "ms" }));
    const results = await trends({ series, dateRange: { date_from: "dStart" } });
    expect(results.map(({ data }) => data)).toEqual([[40], [20], [30]]);
  });

  test("days begin in the project's time zone", async () => {
    const query = {
      series: [{ kind: "EventsNode", event: "late" }],
      dateRange: { date_from: "2026-11-19", date_to: "2026-11-20" },
    };
    expect((await trends(query))[0]!.data).toEqual([1, 0]);
    expect((await trends(query, "Europe/Berlin"))[0]!.data).toEqual([0, 1]);
  });

  test("all: from the first event on", async () => {
    const [result] = await trends({ series: [calls()], dateRange: { date_from: "all" }, interval: "month" });
    expect(result!.days).toEqual(["2026-10-01", "2026-11-01"]);
    expect(result!.data).toEqual([1, 4]);
  });

  test("the period before, of the same length, beside the current one", async () => {
    const results = await trends({
      series: [calls()],
      dateRange: { date_from: "-20d" },
      compareFilter: { compare: true },
    });
    expect(results.map((one) => [one.compare_label, one.count])).toEqual([
      ["current", 4],
      ["previous", 1],
    ]);
    const [current, previous] = results as { days: string[]; data: number[] }[];
    expect(previous!.days).toHaveLength(current!.days.length);
    expect([previous!.days[0], previous!.days.at(-1)]).toEqual(["2026-10-11", "2026-10-31"]);
    expect(await trends({ series: [calls()], compareFilter: { compare: false } })).toHaveLength(1);
  });

  test("a period that is earlier by as much as is asked for", async () => {
    const compare = async (compare_to: Json) => {
      const [, previous] = await trends({
        series: [calls()],
        compareFilter: { compare: true, compare_to },
      });
      return previous as { days: string[]; data: number[]; count: number };
    };
    const before = await compare("-40d");
    expect([before.days[0], before.days.at(-1)]).toEqual(["2026-10-05", "2026-10-12"]);
    expect([before.count, before.data.at(-1)]).toEqual([1, 1]);
    expect((await compare("1y")).days[0]).toBe("2025-11-14");
    expect((await compare("1m")).days).toHaveLength(8);
    expect((await compare(null)).days.at(-1)).toBe("2026-11-13");
    expect((await compare("-99999y")).count).toBe(0);
  });

  test.each([
    [{}, 4],
    [{ math: "dau" }, 2],
    [{ math: "sum", math_property: "ms" }, 60],
    [{ math: "avg", math_property: "ms" }, 20],
    [{ math: "max", math_property: "ms" }, 30],
    [{ math: "min", math_property: "ms" }, 10],
    [{ math: "median", math_property: "ms" }, 20],
    [{ math: "unique_session" }, 0],
  ])("one figure for the whole range: %j", async (math, figure) => {
    for (const display of ["BoldNumber", "ActionsTable", "ActionsPie", "ActionsBarValue", "WorldMap"]) {
      const [result] = await trends({ series: [calls(math)], trendsFilter: { display } });
      expect(result!.aggregated_value).toBe(figure);
    }
    const [line] = await trends({ series: [calls(math)], trendsFilter: { display: "ActionsLineGraph" } });
    expect(line).not.toHaveProperty("aggregated_value");
    const [empty] = await trends({
      series: [calls(math)],
      dateRange: { date_from: "-9d", date_to: "-8d" },
      trendsFilter: { display: "BoldNumber" },
    });
    expect(empty!.aggregated_value).toBe(0);
  });

  test("one figure for each value of a breakdown, and for the values behind the first", async () => {
    const query = {
      series: [calls({ math: "dau" })],
      trendsFilter: { display: "ActionsTable" },
      dateRange: { date_from: "-50d" },
    };
    const figures = async (more: JsonObject) =>
      (await trends({ ...query, ...more })).map((one) => [one.breakdown_value, one.aggregated_value]);
    expect(await figures({ breakdownFilter: { breakdown: "flag" } })).toEqual([
      ["x", 3],
      ["y", 1],
    ]);
    expect(await figures({ breakdownFilter: { breakdown: "flag", breakdown_limit: 1 } })).toEqual([
      ["x", 3],
      ["$$_posthog_breakdown_other_$$", 1],
    ]);
  });

  test("a cumulative display adds up; a user counts on the first day only", async () => {
    const grown = async (series: JsonObject, more: JsonObject = {}) =>
      await trends({
        series: [calls(series)],
        trendsFilter: { display: "ActionsLineGraphCumulative" },
        ...more,
      });
    const [events] = await grown({});
    expect([events!.count, events!.data]).toEqual([4, [0, 0, 0, 0, 0, 0, 2, 4]]);
    const [users] = await grown({ math: "dau" }, { dateRange: { date_from: "-41d" }, interval: "month" });
    expect([users!.count, users!.data]).toEqual([3, [1, 3]]);
    const [sum] = await grown({ math: "sum", math_property: "ms" });
    expect((sum!.data as number[]).slice(-3)).toEqual([0, 20, 60]);
    const [sessions] = await grown({ math: "unique_session" });
    expect(sessions!.count).toBe(0);
    const byFlag = await grown({ math: "dau" }, { breakdownFilter: { breakdown: "flag" } });
    expect(byFlag.map((one) => [one.breakdown_value, (one.data as number[]).slice(-2)])).toEqual([
      ["x", [1, 2]],
      ["y", [1, 1]],
    ]);
    const [others] = (
      await grown({ math: "dau" }, { breakdownFilter: { breakdown: "response", breakdown_limit: 1 } })
    ).slice(-1);
    expect((others!.data as number[]).slice(-2)).toEqual([1, 1]);
  });

  test("a node that wraps the query", async () => {
    const query = { kind: "InsightVizNode", source: { kind: "TrendsQuery", series: [calls()] } };
    const request = { projectId: 1, query, timezone: "UTC", now };
    expect(await stores.ask((store) => computeInsight(store, request))).toMatchObject([{ count: 4 }]);
  });

  test("parts that clients send along without asking for anything change nothing", async () => {
    const [result] = await trends({
      series: [calls({ math: "total", fixedProperties: null })],
      samplingFactor: null,
      formula: "",
      trendsFilter: {
        formula: null,
        formulas: [],
        formulaNodes: [{ formula: "" }].slice(1),
        smoothingIntervals: 1,
        display: "ActionsTable",
      },
      compareFilter: { compare: false, compare_to: null },
      aggregation_group_type_index: null,
      breakdownFilter: { breakdown_limit: null, breakdowns: [], breakdown_histogram_bin_count: null },
    });
    expect(result!.count).toBe(4);
    expect(await trends({ series: [{ event: "call" }], samplingFactor: 1 })).toMatchObject([{ count: 4 }]);
  });

  test("breakdown_limit: the values behind it are one", async () => {
    const results = await trends({
      series: [calls()],
      breakdownFilter: { breakdown: "flag", breakdown_limit: 1 },
    });
    expect(results.map((one) => [one.breakdown_value, one.count])).toEqual([
      ["x", 3],
      ["$$_posthog_breakdown_other_$$", 1],
    ]);
  });

  const unsupported: [string, JsonObject][] = [
    ["ActionsNode", { series: [{ kind: "ActionsNode", id: 1 }] }],
    ["breakdown_limit", { breakdownFilter: { breakdown: "flag", breakdown_limit: 0 } }],
    ["formula", { formula: "A / 2" }],
    ["samplingFactor", { samplingFactor: 0.1 }],
    ["smoothingIntervals", { trendsFilter: { smoothingIntervals: 7 } }],
    [
      "display",
      {
        trendsFilter: { display: "ActionsLineGraphCumulative" },
        series: [calls({ math: "avg", math_property: "ms" })],
      },
    ],
    ...["1x", "0d", "mStart", {}].map((compare_to): [string, JsonObject] => [
      "compare_to",
      { compareFilter: { compare: true, compare_to } },
    ]),
    ["aggregation_group_type_index", { aggregation_group_type_index: 0 }],
    ["conversionGoal", { conversionGoal: { actionId: 1 } }],
  ];
  for (const [part, more] of unsupported) {
    test(`refuses ${JSON.stringify(more)} and names the part`, async () => {
      await expect(trends({ series: [calls()], ...more })).rejects.toThrow(part);
    });
  }

  const unknown: [string, JsonObject][] = [
    ["another kind", { kind: "PathsQuery", series: [calls()] }],
    ["no series", { series: [] }],
    ["an interval", { series: [calls()], interval: "fortnight" }],
    ["a date", { series: [calls()], dateRange: { date_from: "soon" } }],
    ["a math", { series: [calls({ math: "magic" })] }],
    [
      "an operator",
      { series: [calls({ properties: [{ key: "a", operator: "resembles", value: "b", type: "event" }] })] },
    ],
    [
      "a pattern",
      { series: [calls({ properties: [{ key: "flag", operator: "regex", value: "(", type: "event" }] })] },
    ],
  ];
  for (const [name, query] of unknown) {
    test(`refuses ${name}`, async () => {
      const request = { projectId: 1, query: { kind: "TrendsQuery", ...query }, timezone: "UTC", now };
      await expect(stores.ask((store) => computeInsight(store, request))).rejects.toThrow(UnknownQueryError);
    });
  }

  test("text in a query is text and never SQL", async () => {
    const hostile = "x'; DROP TABLE events; --";
    const filter = { key: `k${hostile}/~"`, value: [hostile], operator: "exact", type: "event" };
    const results = await trends({
      series: [{ kind: "EventsNode", event: hostile, properties: [filter] }],
      breakdownFilter: { breakdown: hostile, breakdown_type: "event" },
    });
    expect(results).toEqual([]);
    expect(await stores.rows("SELECT count(*) > 0 FROM events")).toEqual([[true]]);
  });
});

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

  test("`all` goes back to the first event where its buckets are not too many, else as far as they may", () => {
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
      const query = { kind: "TrendsQuery", series: [calls()], dateRange: { date_from: "all" }, interval };
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

  test("weeks start on the day that is asked for (contract, management-api 6.3)", () => {
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
        ...[weekStartDay, dates],
        ...[`${from} 00:00:00`, `${to} 00:00:00`],
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
