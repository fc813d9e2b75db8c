import { beforeAll, describe, expect, test } from "bun:test";
import { computeInsight } from "../../../src/events/api/compute-query.ts";
import { UnknownQueryError } from "../../../src/events/event-filters.ts";
import type { Json, JsonObject } from "../../../src/lib/json/value.ts";
import { stores, useStores } from "../../support/use-stores.ts";

const now = Date.UTC(2026, 10, 21, 12, 30);
const hour = 3_600_000;
const day = 24 * hour;

useStores();
beforeAll(async () => {
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

  test("the previous period, of the same length, next to the current one", async () => {
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

  test("a period earlier by the requested time", async () => {
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

  test("one figure for each value of a breakdown, and one for the remaining values", async () => {
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

  test("breakdown_limit: the values after it are combined", async () => {
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
    test(`rejects ${JSON.stringify(more)} and names the part`, async () => {
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
