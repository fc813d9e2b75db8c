/** Parts that all web analytics queries share: ranges, filters and rejected members. Source: docs/reference/web-analytics.md. */

import type { Project } from "../../accounts/project-directory.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { wallTimeAt } from "../../lib/time-zone.ts";
import { UnknownQueryError } from "../event-filters.ts";
import { filtersIn, rangeIn, type TrendsRequest, type WebSettings } from "../insights/event-source.ts";
import type { Refresh } from "../insights/insight-cache.ts";
import { comparedRange, type Range, withEnd } from "../insights/trend-range.ts";
import type { EventSql, Interval } from "../sql-dialect.ts";

/** What a project's settings and the state of its data add to a request. */
export interface WebRequest extends TrendsRequest {
  /** Identifies the state of events and persons; without it visits are not cached. */
  revision?: string;
}

/** A query whose parts are checked. */
export interface WebQuery {
  request: WebRequest;
  current: Range;
  /** Undefined without a comparison. */
  previous: Range | undefined;
  /** Filters on events and persons. */
  eventFilters: JsonObject[];
  /** Filters on properties of visits. */
  visitFilters: JsonObject[];
}

/** Kinds of queries about visits; PostHog's names, except for `WebOnlineQuery`. */
const webQueryKinds = [
  "WebOverviewQuery",
  "WebStatsTableQuery",
  "WebGoalsQuery",
  "WebTrendsQuery",
  "WebOnlineQuery",
] as const;
export type WebQueryKind = (typeof webQueryKinds)[number];

/** A web analytics query, or one that a node wraps as its `source`; undefined for other queries. */
export function findWebQuery(node: JsonObject): JsonObject | undefined {
  if (webQueryKinds.some((kind) => kind === node.kind)) return node;
  return isJsonObject(node.source) ? findWebQuery(node.source) : undefined;
}

/** What a project's settings add to its queries. */
export const webSettings = ({ webGoals, countScreens }: Project): WebSettings => {
  return { goals: webGoals, countsScreens: countScreens };
};

/** Members that add figures, by the kinds of queries that have them; others would ignore them. */
const figureMembers: Readonly<Record<string, readonly string[]>> = {
  conversionGoal: ["WebOverviewQuery", "WebStatsTableQuery", "WebGoalsQuery"],
  includeRevenue: ["WebOverviewQuery", "WebStatsTableQuery", "WebGoalsQuery"],
  includeScrollDepth: ["WebStatsTableQuery"],
  includeAvgTimeOnPage: ["WebStatsTableQuery"],
};

/** @throws {UnknownQueryError} names the unsupported part */
export async function readWebQuery(
  store: EventSql,
  request: WebRequest,
  query: JsonObject,
  interval: Interval | null = null,
): Promise<WebQuery> {
  for (const [name, kinds] of Object.entries(figureMembers)) {
    const value = query[name];
    if (value === undefined || value === null || value === false || kinds.includes(String(query.kind)))
      continue;
    throw new UnknownQueryError(`The ${name} ${JSON.stringify(value)} is not supported.`);
  }
  // Nothing is sampled: results are exact, whatever the client would accept.
  const { samplingFactor = null } = query;
  if (
    samplingFactor !== null &&
    !(typeof samplingFactor === "number" && samplingFactor > 0 && samplingFactor <= 1)
  )
    throw new UnknownQueryError(
      `The samplingFactor ${JSON.stringify(samplingFactor)} is not between 0 and 1.`,
    );
  const current = await rangeIn(store, request, query, interval);
  const filters = filtersIn(query.properties);
  return {
    request,
    current,
    previous: previousRange(request, current, query.compareFilter),
    eventFilters: filters.filter(({ type }) => type !== "session"),
    visitFilters: filters.filter(({ type }) => type === "session"),
  };
}

const minuteMs = 60_000;

/** The range compared with; if the current one is not over, it ends after the same time. */
function previousRange(
  { now, timezone }: WebRequest,
  current: Range,
  compareFilter: Json | undefined,
): Range | undefined {
  if (!isJsonObject(compareFilter) || compareFilter.compare !== true) return undefined;
  const previous = comparedRange(current, compareFilter.compare_to);
  if (previous === undefined) {
    throw new UnknownQueryError(
      `Invalid compare_to ${JSON.stringify(compareFilter.compare_to)}: expected a negative offset, for example -1w.`,
    );
  }
  const nowMs = wallTimeAt(now, timezone);
  if (nowMs >= current.toMs || nowMs < current.fromMs) return previous;
  const elapsedMs = (Math.floor(nowMs / minuteMs) + 1) * minuteMs - current.fromMs;
  return withEnd(previous, Math.min(previous.toMs, previous.fromMs + elapsedMs));
}

/** Comparisons depend on the minute, and visitors who are online on the moment. */
export function webCaching(
  query: JsonObject,
  { now }: WebRequest,
  { revision, refresh }: { revision: string; refresh: Refresh },
): { revision: string; refresh: Refresh } {
  if (query.kind === "WebOnlineQuery") return { revision, refresh: "force_blocking" };
  return { revision: `${revision} ${Math.floor(now / minuteMs)}`, refresh };
}
