/** Questions that Explore asks, in the form of the API, and what comes back. */

import { conditionProblem } from "./draft.ts";
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
  /** Whether the period before is shown beside. */
  compare: boolean;
  /** Days in which a funnel is gone through. */
  window: number;
  /** Whether the steps of a funnel follow each other, at once, or come in any order. */
  order: string;
  /** A funnel's steps, how many got through by period, or how long they took. */
  shape: string;
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
  compare: false,
  window: 14,
  order: "ordered",
  shape: "steps",
  target: "",
  returning: "",
  period: "Day",
};

/** Periods of a retention. */
export const retentionPeriods = 11;

export type Query = Record<string, unknown>;

/** Without filters that are not written to the end: they would find nobody. */
export function finished(question: Question): Question {
  const usable = (conditions: readonly Condition[] = []) =>
    conditions.filter((condition) => conditionProblem(condition) === undefined);
  return {
    ...question,
    properties: usable(question.properties),
    series: question.series.map((series) => ({ ...series, properties: usable(series.properties) })),
  };
}

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
        ...(question.compare && question.range !== "all" ? { compareFilter: { compare: true } } : {}),
      };
    case "funnel":
      return {
        ...{ kind: "FunnelsQuery", series, interval: question.interval, ...shared },
        ...(question.shape === "time_to_convert" ? { breakdownFilter: {} } : {}),
        funnelsFilter: {
          ...{ funnelWindowInterval: question.window, funnelWindowIntervalUnit: "day" },
          ...{ funnelOrderType: question.order, funnelVizType: question.shape },
        },
      };
    case "retention":
      return {
        ...{ kind: "RetentionQuery", properties: question.properties },
        retentionFilter: {
          period: question.period,
          totalIntervals: retentionPeriods,
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

/** A stored query as Explore asks it; undefined where it has no form for it. */
export function questionOf(query: Query): Partial<Question> | undefined {
  const kind = kindOfQuery(query);
  if (kind === undefined || kind === "sql") return undefined;
  const source = (query.source as Query | undefined) ?? query;
  const part = (name: string) => (source[name] ?? {}) as Record<string, never>;
  if (/Cumulative$/.test(`${part("trendsFilter").display}`) || part("compareFilter").compare_to)
    return undefined;
  const retention = part("retentionFilter") as Record<string, { id?: string | null } | string>;
  const entity = (name: string) => (retention[name] as { id?: string | null } | undefined)?.id ?? "";
  const given: Partial<Question> = {
    kind,
    series: ((source.series ?? []) as Series[]).map((series) => ({
      ...series,
      event: series.event ?? "",
      math: series.math ?? "total",
    })),
    properties: Array.isArray(source.properties) ? (source.properties as Condition[]) : [],
    breakdown: part("breakdownFilter").breakdown ?? "",
    range: part("dateRange").date_from ?? firstQuestion.range,
    interval: (source.interval as string | undefined) ?? "day",
    view: viewOfQuery(query),
    compare: part("compareFilter").compare === true,
    window: part("funnelsFilter").funnelWindowInterval ?? firstQuestion.window,
    order: part("funnelsFilter").funnelOrderType ?? firstQuestion.order,
    shape: part("funnelsFilter").funnelVizType ?? firstQuestion.shape,
    target: entity("targetEntity"),
    returning: entity("returningEntity"),
    period: (retention.period as string | undefined) ?? firstQuestion.period,
  };
  return given;
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
  breakdown_value?: unknown;
  action?: { order: number; name: string; math?: string };
  /** Of the whole range, where one figure is shown. */
  aggregated_value?: number;
  /** Of a lifecycle: `new`, `returning`, `resurrecting` or `dormant`. */
  status?: string;
  /** Of which of two periods it is, where two are compared. */
  compare_label?: "current" | "previous";
}

export interface FunnelStep {
  name: string;
  custom_name?: string | null;
  count: number;
  order: number;
  breakdown_value?: unknown;
}

/** How long people took: from how many seconds on, how many. */
export interface FunnelTimes {
  bins: [fromSeconds: number, people: number][];
  average_conversion_time: number | null;
}

export interface RetentionRow {
  label: string;
  date: string;
  values: { count: number }[];
}
