/** Explore's query in the address: written shortly, read in all forms. */

import { expect, test } from "bun:test";
import { questionFromAddress, toShortForm } from "../../src/console/page/model/explore-address.ts";
import {
  draftFromQuery,
  firstDraft,
  getQuery,
  type InsightDraft,
} from "../../src/console/page/model/insight.ts";

const draft = (changes: Partial<InsightDraft>): InsightDraft => ({ ...firstDraft, ...changes });
const hostile = `a&b=c%24+d #e "f" ?g`;
const filter = { key: hostile, type: "event", operator: "exact", value: ["1", hostile] };

test("a query is short, and only what differs from the first one is written", () => {
  expect(toShortForm(firstDraft)).toBe("");
  const question = draft({ series: [{ event: "$pageview", math: "dau" }], breakdown: "$browser" });
  expect(toShortForm(question)).toBe("e=$pageview&m=visitors&b=$browser");
  expect(toShortForm(draft({ kind: "retention", target: "paid", period: "Week" }))).toBe(
    "k=retention&t=paid&p=Week",
  );
});

test("every query is read as it was written, hostile names included", () => {
  for (const question of [
    firstDraft,
    draft({ series: [{ event: "", math: "dau" }] }),
    draft({
      series: [
        { event: hostile, math: "sum", math_property: `${hostile}:x`, properties: [filter] },
        { event: "", math: "total" },
        { event: "paid", math: "p90", math_property: "amount", properties: [filter, filter] },
      ],
      properties: [filter],
      breakdown: hostile,
      secondBreakdown: hostile,
      formula: "A / B % 2 + C",
      range: "2026-11-01:2026-11-14",
      interval: "week",
      view: "bar",
      compare: true,
    }),
    draft({
      kind: "funnel",
      window: 3,
      order: "strict",
      shape: "trends",
      series: [
        { event: "a", math: "total" },
        { event: "b", math: "total" },
      ],
    }),
    draft({ kind: "retention", target: hostile, returning: "paid", period: "Month", cohort: "first" }),
    draft({ kind: "lifecycle", series: [{ event: "paid", math: "total" }] }),
  ] as InsightDraft[]) {
    expect(questionFromAddress({ q: toShortForm(question) })).toEqual(question);
    // Former addresses.
    expect(questionFromAddress({ question: JSON.stringify(question) })).toEqual(question);
  }
});

test("an address that was written by hand is read; an unreadable one is the first query", () => {
  expect(questionFromAddress({ q: "e=$pageview", m: "visitors", b: "$browser" })).toEqual(
    draft({ series: [{ event: "$pageview", math: "dau" }], breakdown: "$browser" }),
  );
  for (const query of [{ question: "{" }, { q: "q=[" }, { q: "q=1" }, {}]) {
    expect(questionFromAddress(query as Record<string, string>)).toEqual(firstDraft);
  }
  expect(questionFromAddress({ q: "k=nonsense" }).kind).toBe("trends");
  expect(questionFromAddress({ q: Array(500).fill("e=x").join("&") }).series).toHaveLength(20);
});

test("days, first-time cohorts, formulas and second breakdowns survive being stored", () => {
  for (const question of [
    draft({ breakdown: "$browser", secondBreakdown: "$os", formula: "A * 2" }),
    draft({ range: "2026-11-01:2026-11-14" }),
    draft({ kind: "retention", cohort: "first", target: "paid" }),
  ]) {
    expect(draftFromQuery(getQuery(question))).toMatchObject({
      range: question.kind === "retention" ? firstDraft.range : question.range,
      cohort: question.cohort,
      breakdown: question.breakdown,
      secondBreakdown: question.secondBreakdown,
      formula: question.formula,
    });
  }
});

test("a stored query with more than Explore shows is no draft", () => {
  const trend = (more: object) => draftFromQuery({ kind: "TrendsQuery", ...more });
  const by = (...names: string[]) => ({
    breakdownFilter: { breakdowns: names.map((property) => ({ property })) },
  });
  expect(trend(by("a", "b", "c"))).toBeUndefined();
  expect(trend({ trendsFilter: { formulas: ["A", "B"] } })).toBeUndefined();
  expect(trend({ trendsFilter: { formulaNodes: [{ formula: "A+1" }], formula: "A" } })?.formula).toBe("A+1");
  expect(trend(by("a"))).toMatchObject({ breakdown: "a", secondBreakdown: "" });
});
