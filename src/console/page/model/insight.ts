/** Insight queries of Explore and their results. */

import { isActiveUsers } from "../../../events/insights/active-days.ts";
import { parseFormula } from "../../../events/insights/formula-expression.ts";
import { conditionProblem } from "./draft.ts";
import type { Condition } from "./flags.ts";

export interface Series {
  event: string;
  math: string;
  math_property?: string;
  properties?: Condition[];
}

export type InsightKind = "trends" | "funnel" | "retention" | "lifecycle";

/** Kinds with a chart; stickiness comes from the API only. */
export type ShownKind = InsightKind | "stickiness";

/** Contents of Explore's form; also stored in its URL. */
export interface InsightDraft {
  kind: InsightKind;
  series: Series[];
  properties: Condition[];
  breakdown: string;
  /** Of trends: within each value of the first one. */
  secondBreakdown: string;
  /** Of trends, over the letters of the series, such as `A / B * 100`; empty to show the series. */
  formula: string;
  range: string;
  interval: string;
  view: string;
  /** Whether to compare to the previous period. */
  compare: boolean;
  /** Conversion window of a funnel in days. */
  window: number;
  /** Step order of a funnel: sequential, strict or any order. */
  order: string;
  /** Shape of a funnel: steps, conversion over time, or time to convert. */
  shape: string;
  target: string;
  returning: string;
  period: string;
  /** Who belongs to a cohort: `recurring` in each period with the event, `first` only in the first one ever. */
  cohort: string;
}

export const firstDraft: InsightDraft = {
  kind: "trends",
  series: [{ event: "", math: "total" }],
  properties: [],
  breakdown: "",
  secondBreakdown: "",
  formula: "",
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
  cohort: "recurring",
};

/** A range of whole days, such as `2026-11-01:2026-11-14`; undefined for a relative one. */
export function parseDays(range: string): { from: string; to: string } | undefined {
  const [, from, to] = /^(\d{4}-\d\d-\d\d):(\d{4}-\d\d-\d\d)$/.exec(range) ?? [];
  return from === undefined || to === undefined ? undefined : { from, to };
}

function toDateRange(range: string): Query {
  const days = parseDays(range);
  return days ? { date_from: days.from, date_to: days.to } : { date_from: range };
}

function rangeOfQuery({ date_from: from, date_to: to }: Record<string, unknown>): string {
  const range = `${from}:${to}`;
  return parseDays(range) ? range : typeof from === "string" ? from : firstDraft.range;
}

/** Number of periods in a retention. */
const retentionPeriods = 11;

export type Query = Record<string, unknown>;

/** Drops incomplete filters, which would match no one. */
export function finished(question: InsightDraft): InsightDraft {
  const usable = (conditions: readonly Condition[] = []) =>
    conditions.filter((condition) => conditionProblem(condition) === undefined);
  return {
    ...question,
    properties: usable(question.properties),
    series: question.series.map((series) => ({ ...series, properties: usable(series.properties) })),
  };
}

const plainMaths: ReadonlySet<string> = new Set(["total", "dau", "unique_session"]);

export const isOfProperty = (math: string): boolean => !plainMaths.has(math) && !isActiveUsers(math);

/** The measure of a trend whose property is missing; undefined if the query is complete. */
export function mathWithoutProperty({ kind, series }: InsightDraft): string | undefined {
  if (kind !== "trends") return undefined;
  return series.find(({ math, math_property: property }) => isOfProperty(math) && !property?.trim())?.math;
}

/** Whether the formula of a trend is invalid. */
export const isFormulaWrong = ({ kind, formula, series }: InsightDraft): boolean =>
  kind === "trends" && formula.trim() !== "" && parseFormula(formula, series.length) === undefined;

/** The properties by which a query is broken down. */
export function getBreakdowns({ kind, view, breakdown, secondBreakdown, formula }: InsightDraft): string[] {
  // One number cannot show several, and ratios do not add up.
  if (kind === "trends" && view === "number" && formula) return [];
  return (kind === "trends" ? [breakdown, secondBreakdown] : [breakdown]).filter((name) => name !== "");
}

function breakdownFilter(names: readonly string[]): Query {
  const [breakdown] = names;
  if (names.length < 2) return { breakdown, breakdown_type: "event" };
  return { breakdowns: names.map((property) => ({ property, type: "event" })) };
}

/** The draft as an API query. */
export function getQuery(question: InsightDraft): Query {
  const series = question.series.map(({ event, math, math_property: property, properties }) => ({
    kind: "EventsNode",
    event: event || null,
    ...(question.kind === "trends" ? { math, ...(property ? { math_property: property } : {}) } : {}),
    ...(properties && properties.length > 0 ? { properties } : {}),
  }));
  const breakdowns = getBreakdowns(question);
  const formula = question.formula.trim();
  const shared = {
    dateRange: toDateRange(question.range),
    properties: question.properties,
    ...(breakdowns.length > 0 ? { breakdownFilter: breakdownFilter(breakdowns) } : {}),
  };
  switch (question.kind) {
    case "trends":
      return {
        kind: "TrendsQuery",
        series,
        interval: question.interval,
        ...shared,
        trendsFilter: { display: getDisplay(question.view), ...(formula ? { formula } : {}) },
        ...(question.compare && question.range !== "all" ? { compareFilter: { compare: true } } : {}),
      };
    case "funnel":
      return {
        kind: "FunnelsQuery",
        series,
        interval: question.interval,
        ...shared,
        ...(question.shape === "time_to_convert" ? { breakdownFilter: {} } : {}),
        funnelsFilter: {
          funnelWindowInterval: question.window,
          funnelWindowIntervalUnit: "day",
          funnelOrderType: question.order,
          funnelVizType: question.shape,
        },
      };
    case "retention":
      return {
        kind: "RetentionQuery",
        properties: question.properties,
        retentionFilter: {
          period: question.period,
          ...(question.cohort === "first" ? { retentionType: "retention_first_time" } : {}),
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

function getDisplay(view: string): string {
  return displays[view] ?? "ActionsLineGraph";
}

/** The kind of a stored query, unwrapped. */
export function kindOfQuery(query: Query): ShownKind | "sql" | undefined {
  const source = (query.source as Query | undefined) ?? query;
  const kinds: Record<string, ShownKind | "sql"> = {
    TrendsQuery: "trends",
    FunnelsQuery: "funnel",
    RetentionQuery: "retention",
    LifecycleQuery: "lifecycle",
    StickinessQuery: "stickiness",
    HogQLQuery: "sql",
  };
  return kinds[String(source.kind)];
}

/** As the server chooses between the three members. */
function formulasOfQuery({ formula, formulas, formulaNodes }: Record<string, unknown>): string[] {
  const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
  const nodes = list(formulaNodes).map((node) => (node as { formula?: unknown }).formula);
  const sent = [nodes, list(formulas), [formula]].map((all) => all.filter((item) => item).map(String));
  return sent.find((all) => all.length > 0) ?? [];
}

function breakdownsOfQuery({ breakdown, breakdowns }: Record<string, unknown>): string[] {
  const several = (Array.isArray(breakdowns) ? breakdowns : []) as { property?: unknown }[];
  return (several.length > 0 ? several.map(({ property }) => property) : [breakdown])
    .filter((name) => name)
    .map(String);
}

/** A stored query as a draft; undefined if Explore cannot represent it. */
export function draftFromQuery(query: Query): Partial<InsightDraft> | undefined {
  const kind = kindOfQuery(query);
  if (kind === undefined || kind === "sql" || kind === "stickiness") return undefined;
  const source = (query.source as Query | undefined) ?? query;
  const part = (name: string) => (source[name] ?? {}) as Record<string, never>;
  if (/Cumulative$/.test(`${part("trendsFilter").display}`) || part("compareFilter").compare_to)
    return undefined;
  const formulas = formulasOfQuery(part("trendsFilter"));
  const breakdowns = breakdownsOfQuery(part("breakdownFilter"));
  if (formulas.length > 1 || breakdowns.length > 2) return undefined;
  const retention = part("retentionFilter") as Record<string, { id?: string | null } | string>;
  const entity = (name: string) => (retention[name] as { id?: string | null } | undefined)?.id ?? "";
  const sent: Partial<InsightDraft> = {
    kind,
    series: ((source.series ?? []) as Series[]).map((series) => ({
      ...series,
      event: series.event ?? "",
      math: series.math ?? "total",
    })),
    properties: Array.isArray(source.properties) ? (source.properties as Condition[]) : [],
    breakdown: breakdowns[0] ?? "",
    secondBreakdown: breakdowns[1] ?? "",
    formula: formulas[0] ?? "",
    range: rangeOfQuery(part("dateRange")),
    interval: (source.interval as string | undefined) ?? "day",
    view: viewOfQuery(query),
    compare: part("compareFilter").compare === true,
    window: part("funnelsFilter").funnelWindowInterval ?? firstDraft.window,
    order: part("funnelsFilter").funnelOrderType ?? firstDraft.order,
    shape: part("funnelsFilter").funnelVizType ?? firstDraft.shape,
    target: entity("targetEntity"),
    returning: entity("returningEntity"),
    period: (retention.period as string | undefined) ?? firstDraft.period,
    cohort: (retention.retentionType as unknown) === "retention_first_time" ? "first" : firstDraft.cohort,
  };
  return sent;
}

/** Display type of a stored query. */
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
  /** Null for a formula. */
  action?: { order: number; name: string; math?: string } | null;
  /** Position of a formula. */
  order?: number;
  /** Total over the whole range, for single-number displays. */
  aggregated_value?: number;
  /** Of a lifecycle: `new`, `returning`, `resurrecting` or `dormant`. */
  status?: string;
  /** Which of the two periods, when comparing. */
  compare_label?: "current" | "previous";
}

export interface FunnelStep {
  name: string;
  /** Seconds since the previous step; null for the first. */
  median_conversion_time?: number | null;
  custom_name?: string | null;
  count: number;
  order: number;
  breakdown_value?: unknown;
}

/** Histogram of times to convert: bucket starts in seconds, and counts. */
export interface FunnelTimes {
  bins: [fromSeconds: number, people: number][];
  average_conversion_time: number | null;
}

export interface RetentionRow {
  label: string;
  date: string;
  values: { count: number }[];
}
