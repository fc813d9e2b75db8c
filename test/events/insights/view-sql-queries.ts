/** Trends that are printed as SQL: measures, breakdowns, formulas, filters and ranges, hostile names included. */

import { finished, firstDraft, type InsightDraft } from "../../../src/console/page/model/insight.ts";

export const hostile = `it's "so"; --`;
export const dayAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
export const someDays = `${dayAgo(12)}:${dayAgo(5)}`;
export const question = (more: Partial<InsightDraft>) => finished({ ...firstDraft, range: "-14d", ...more });
export const trends: Record<string, InsightDraft> = {
  "all events": question({}),
  "an event, by hour": question({
    series: [{ event: hostile, math: "total" }],
    interval: "hour",
    range: "-24h",
  }),
  "unique persons by week": question({ series: [{ event: "paid", math: "dau" }], interval: "week" }),
  "weekly active persons": question({ series: [{ event: "paid", math: "weekly_active" }] }),
  "weekly active persons by hour": question({
    series: [{ event: hostile, math: "weekly_active" }],
    interval: "hour",
    range: "-24h",
  }),
  "weekly active persons by week": question({
    series: [{ event: "paid", math: "weekly_active" }],
    interval: "week",
  }),
  "monthly active persons by week, with a breakdown": question({
    series: [
      { event: "paid", math: "monthly_active" },
      { event: hostile, math: "weekly_active" },
    ],
    interval: "week",
    breakdown: hostile,
  }),
  "weekly active persons of all time": question({
    series: [{ event: "signed up", math: "weekly_active" }],
    properties: [{ key: "plan", type: "person", operator: "exact", value: ["pro"] }],
    range: "all",
  }),
  sessions: question({ series: [{ event: "", math: "unique_session" }], range: "all", interval: "month" }),
  "a sum of payments": question({
    series: [{ event: "paid", math: "sum", math_property: "amount" }],
    properties: [{ key: "plan", type: "person", operator: "exact", value: ["PRO"] }],
  }),
  "a share": question({ series: [{ event: "paid", math: "p90", math_property: "amount" }] }),
  "several, each with filters": question({
    series: [
      {
        event: "paid",
        math: "total",
        properties: [{ key: "amount", type: "event", operator: "gte", value: "50" }],
      },
      {
        event: "",
        math: "total",
        properties: [{ key: hostile, type: "event", operator: "is_not", value: ["a", hostile] }],
      },
      {
        event: "",
        math: "total",
        properties: [{ key: "amount", type: "event", operator: "is_not_set", value: "is_not_set" }],
      },
      {
        event: "",
        math: "total",
        properties: [{ key: hostile, type: "event", operator: "not_icontains", value: "'S" }],
      },
      {
        event: "",
        math: "total",
        properties: [{ key: hostile, type: "event", operator: "regex", value: "^[Ab]$" }],
      },
    ],
  }),
  "a breakdown": question({ breakdown: hostile }),
  "a breakdown by two properties": question({ breakdown: hostile, secondBreakdown: "size" }),
  "active persons by two properties": question({
    series: [{ event: "paid", math: "weekly_active" }],
    interval: "week",
    breakdown: hostile,
    secondBreakdown: "size",
  }),
  "a formula": question({
    series: [
      { event: "paid", math: "total" },
      { event: "signed up", math: "dau" },
    ],
    formula: "a / B * 100",
  }),
  "a formula by two properties": question({
    series: [
      { event: "paid", math: "sum", math_property: "amount" },
      { event: "paid", math: "weekly_active" },
    ],
    formula: "(A - B) / B",
    breakdown: hostile,
    secondBreakdown: "size",
    interval: "week",
  }),
  "chosen days": question({ range: someDays }),
  "weekly active persons of chosen days": question({
    series: [{ event: "paid", math: "weekly_active" }],
    range: someDays,
  }),
};
