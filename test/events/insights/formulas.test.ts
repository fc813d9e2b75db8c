import { beforeAll, describe, expect, test } from "bun:test";
import { computeInsight } from "../../../src/events/api/compute-query.ts";
import { UnknownQueryError } from "../../../src/events/event-filters.ts";
import { formulaLengthMax, parseFormula } from "../../../src/events/insights/formula-expression.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { stores, useStores } from "../../support/use-stores.ts";

const now = Date.UTC(2026, 10, 21, 12, 30);
const day = 86_400_000;
const hostile = "a,-b::'\"\\\u001f";

useStores();
beforeAll(async () => {
  const event = (name: string, days: number, id: string, properties: JsonObject = {}) => ({
    event: name,
    distinctId: id,
    time: now - days * day,
    properties,
  });
  await stores.load([
    event("sale", 0, "a", { browser: "Chrome", os: "Mac", price: 30 }),
    event("sale", 1, "b", { browser: "Chrome", os: "Linux", price: 10 }),
    event("sale", 1, "c", { browser: "Firefox", os: "Linux", price: 5 }),
    event("visit", 0, "a", { browser: "Chrome", os: "Mac" }),
    event("visit", 0, "b", { browser: "Chrome", os: "Linux" }),
    event("visit", 0, "c", { browser: "Safari", os: "Mac" }),
    event("visit", 0, "d", { browser: "Safari", os: "Mac" }),
    event("visit", 1, "b", { browser: "Chrome", os: "Linux" }),
    event("visit", 1, "c", { browser: "Firefox", os: "Linux" }),
    event("visit", 1, "e", { os: "Linux", plan: "x" }),
    event("visit", 3, "e", { browser: hostile }),
    event("sale", 6, "a", { browser: "Chrome", os: "Mac", price: 30 }),
    event("visit", 6, "a", { browser: "Chrome", os: "Mac", $set: { plan: "paid" } }),
  ]);
  await stores.mirror.follow();
});

async function trends(query: JsonObject) {
  const sent = { kind: "TrendsQuery", dateRange: { date_from: "-1d" }, ...query };
  const request = { projectId: 1, query: sent, timezone: "UTC", now };
  return (await stores.ask((store) => computeInsight(store, request))) as JsonObject[];
}
const series = [
  { kind: "EventsNode", event: "sale" },
  { kind: "EventsNode", event: "visit" },
];
const by = (...names: string[]) => ({
  breakdownFilter: { breakdowns: names.map((property) => ({ property, type: "event" })) },
});

describe("a breakdown by two properties", () => {
  test("one result per pair of values, largest first, with absent values", async () => {
    const results = await trends({ series: series.slice(1), ...by("browser", "os") });
    expect(results.map((one) => [one.breakdown_value, one.label, one.count])).toEqual([
      [["Chrome", "Linux"], "Chrome::Linux", 2],
      [["Safari", "Mac"], "Safari::Mac", 2],
      [["$$_posthog_breakdown_null_$$", "Linux"], "None::Linux", 1],
      [["Chrome", "Mac"], "Chrome::Mac", 1],
      [["Firefox", "Linux"], "Firefox::Linux", 1],
    ]);
  });

  test("values with any characters stay apart, and person properties mix with those of events", async () => {
    const dateRange = { date_from: "-3d", date_to: "-3d" };
    const [one] = await trends({ series: series.slice(1), dateRange, ...by("browser", "os") });
    expect(one!.breakdown_value).toEqual([hostile, "$$_posthog_breakdown_null_$$"]);
    const mixed = await trends({
      series: series.slice(0, 1),
      breakdownFilter: { breakdowns: [{ property: "plan", type: "person" }, { property: "os" }] },
    });
    expect(mixed.map((result) => [result.breakdown_value, result.count])).toContainEqual([
      ["paid", "Mac"],
      1,
    ]);
  });

  test("breakdown_limit: the combined rest is a list of placeholders", async () => {
    const query = { ...by("browser", "os"), series: series.slice(1) };
    const results = await trends({
      ...query,
      breakdownFilter: { ...query.breakdownFilter, breakdown_limit: 1 },
    });
    const other = "$$_posthog_breakdown_other_$$";
    expect(results.map((one) => [one.breakdown_value, one.count])).toEqual([
      [[other, other], 5],
      [["Chrome", "Linux"], 2],
    ]);
  });

  test("at most three, and only of trends", async () => {
    expect(await trends({ series, ...by("browser", "os", "plan") })).not.toBeEmpty();
    await expect(trends({ series, ...by("a", "b", "c", "d") })).rejects.toThrow("at most 3 properties");
    for (const kind of ["FunnelsQuery", "StickinessQuery"])
      await expect(trends({ kind, series, ...by("a", "b") })).rejects.toThrow("breakdown");
  });
});

describe("formulas", () => {
  test("replace the series, per bucket; a division by zero is 0", async () => {
    const dateRange = { date_from: "-3d" };
    const [result, ...others] = await trends({
      series,
      dateRange,
      trendsFilter: { formula: "A / B * 100" },
    });
    expect(others).toEqual([]);
    expect(result).toMatchObject({ label: "Formula (A / B * 100)", action: null, order: 0 });
    expect((result!.data as number[]).map((value) => Math.round(value * 100) / 100)).toEqual([
      0, 0, 66.67, 25,
    ]);
    expect(result!.count).toBeCloseTo(91.67, 2);
    expect((result!.days as string[]).at(-1)).toBe("2026-11-21");
  });

  test("several with names: formulaNodes before formulas before formula", async () => {
    const trendsFilter: JsonObject = {
      formula: "A",
      formulas: ["A", "B"],
      formulaNodes: [{ formula: "a+b", custom_name: "Both" }, { formula: "-(A - B) % 2" }],
    };
    const labels = async (filter: JsonObject) =>
      (await trends({ series, trendsFilter: filter })).map(({ label, data }) => [label, data]);
    expect(await labels(trendsFilter)).toEqual([
      ["Both", [5, 5]],
      ["Formula (-(A - B) % 2)", [1, 1]],
    ]);
    expect(await labels({ ...trendsFilter, formulaNodes: [] })).toEqual([
      ["Formula (A)", [2, 1]],
      ["Formula (B)", [3, 4]],
    ]);
    expect(await labels({ formula: "A", formulas: [] })).toEqual([["Formula (A)", [2, 1]]]);
  });

  test("the figure of the whole range is of the figures, not a sum of ratios", async () => {
    const getRatio = (more: JsonObject[]) =>
      trends({ series: more, trendsFilter: { display: "BoldNumber", formula: "A/B" } });
    const [ratio] = await getRatio(series);
    expect(ratio!.aggregated_value).toBeCloseTo(3 / 7, 10);
    const [unique] = await getRatio(series.map((one) => ({ ...one, math: "dau" })));
    expect(unique!.aggregated_value).toBeCloseTo(3 / 5, 10);
  });

  test("with a breakdown, per value; a series without the value counts as 0", async () => {
    const results = await trends({
      series,
      trendsFilter: { formula: "A/B", display: "ActionsTable" },
      ...by("browser"),
    });
    expect(results.map((one) => [one.breakdown_value, one.aggregated_value])).toEqual([
      ["Firefox", 1],
      ["Chrome", 2 / 3],
      ["Safari", 0],
      ["$$_posthog_breakdown_null_$$", 0],
    ]);
  });

  test("all series show the same values separately", async () => {
    // Of visits alone, Safari would be among the first two; of sales alone, Firefox.
    for (const math of ["total", "dau", "weekly_active"]) {
      const results = await trends({
        series: series.map((one) => ({ ...one, math })),
        trendsFilter: { formula: "A+B", display: "ActionsTable" },
        breakdownFilter: { breakdown: "browser", breakdown_limit: 2 },
      });
      const values = results.map((one) => one.breakdown_value);
      expect([math, values.toSorted()]).toEqual([
        math,
        ["$$_posthog_breakdown_other_$$", "Chrome", "Firefox"],
      ]);
    }
  });

  test("compared with the previous period", async () => {
    const results = await trends({
      series,
      trendsFilter: { formula: "A*2" },
      compareFilter: { compare: true, compare_to: "-5d" },
    });
    expect(results.map((one) => [one.compare_label, one.data])).toEqual([
      ["current", [4, 2]],
      ["previous", [2, 0]],
    ]);
  });

  test.each(["C", "A +", "(A", "A)", "A B", "AB", "A; DROP TABLE events", "A^2", `${"(".repeat(9)}A`])(
    "rejects %j with what is expected",
    async (formula) => {
      const failure = trends({ series, trendsFilter: { formula } });
      await expect(failure).rejects.toThrow(UnknownQueryError);
      await expect(failure).rejects.toThrow("expected the letters A to B");
    },
  );

  test("rejects what is no text, too long, or too many, and other kinds", async () => {
    await expect(trends({ series, trendsFilter: { formulas: [7] } })).rejects.toThrow("formula 7");
    const long = `A${"+A".repeat(formulaLengthMax)}`.slice(0, formulaLengthMax - 1);
    expect(parseFormula(long, 1)).toBeDefined();
    expect(parseFormula(`${long}  `, 1)).toBeUndefined();
    expect(parseFormula(`${"(".repeat(99)}A${")".repeat(99)}`, 1)!(() => 3)).toBe(3);
    await expect(trends({ series, trendsFilter: { formulas: Array(11).fill("A") } })).rejects.toThrow(
      "at most 10 formulas, not 11",
    );
    const kind = "StickinessQuery";
    await expect(trends({ kind, series, trendsFilter: { formula: "A" } })).rejects.toThrow("formula");
  });
});
