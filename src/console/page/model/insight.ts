/** Questions that Explore asks, in the form of the API, and what comes back. */

import type { Condition } from "./flags.ts";

export interface Series {
  event: string;
  math: string;
  math_property?: string;
  properties?: Condition[];
}

export type InsightKind = "trends" | "funnel" | "retention" | "lifecycle";

/** What stands in the fields of Explore; also in its address. */
export interface Question {
  kind: InsightKind;
  series: Series[];
  properties: Condition[];
  breakdown: string;
  range: string;
  interval: string;
  view: string;
  /** Days in which a funnel is gone through. */
  window: number;
  target: string;
  returning: string;
  period: string;
}

export const firstQuestion: Question = {
  kind: "trends",
  series: [{ event: "", math: "total" }],
  properties: [],
  breakdown: "",
  range: "-30d",
  interval: "day",
  view: "line",
  window: 14,
  target: "",
  returning: "",
  period: "Day",
};

export type Query = Record<string, unknown>;

/** The question in the form of the API. */
export function queryOf(question: Question): Query {
  const series = question.series.map(({ event, math, math_property: property, properties }) => ({
    kind: "EventsNode",
    event: event || null,
    ...(question.kind === "trends" ? { math, ...(property ? { math_property: property } : {}) } : {}),
    ...(properties && properties.length > 0 ? { properties } : {}),
  }));
  const shared = {
    dateRange: { date_from: question.range },
    properties: question.properties,
    ...(question.breakdown
      ? { breakdownFilter: { breakdown: question.breakdown, breakdown_type: "event" } }
      : {}),
  };
  switch (question.kind) {
    case "trends":
      return {
        ...{ kind: "TrendsQuery", series, interval: question.interval, ...shared },
        trendsFilter: { display: displayOf(question.view) },
      };
    case "funnel":
      return {
        ...{ kind: "FunnelsQuery", series, ...shared },
        funnelsFilter: { funnelWindowInterval: question.window, funnelWindowIntervalUnit: "day" },
      };
    case "retention":
      return {
        ...{ kind: "RetentionQuery", properties: question.properties },
        retentionFilter: {
          period: question.period,
          totalIntervals: 11,
          targetEntity: { id: question.target || null, type: "events" },
          returningEntity: { id: question.returning || null, type: "events" },
        },
      };
    case "lifecycle":
      return { kind: "LifecycleQuery", series: series.slice(0, 1), interval: question.interval, ...shared };
  }
}

const displays: Record<string, string> = { bar: "ActionsBar", table: "ActionsTable", number: "BoldNumber" };

function displayOf(view: string): string {
  return displays[view] ?? "ActionsLineGraph";
}

/** The kind of a stored query, of whatever wrapping. */
export function kindOfQuery(query: Query): InsightKind | "sql" | undefined {
  const source = (query.source as Query | undefined) ?? query;
  const kinds: Record<string, InsightKind | "sql"> = {
    TrendsQuery: "trends",
    FunnelsQuery: "funnel",
    RetentionQuery: "retention",
    LifecycleQuery: "lifecycle",
    HogQLQuery: "sql",
  };
  return kinds[String(source.kind)];
}

/** How a stored query is to be shown. */
export function viewOfQuery(query: Query): string {
  const source = (query.source as Query | undefined) ?? query;
  const display = (source.trendsFilter as Query | undefined)?.display;
  return Object.entries(displays).find(([, name]) => name === display)?.[0] ?? "line";
}

export interface TrendResult {
  label: string;
  count: number;
  data: number[];
  labels: string[];
  days: string[];
}

export interface FunnelStep {
  name: string;
  custom_name?: string | null;
  count: number;
  order: number;
  breakdown_value?: unknown;
}

export interface RetentionRow {
  label: string;
  date: string;
  values: { count: number }[];
}
