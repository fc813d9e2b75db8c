/** Computes insights and web analytics queries. */

import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";
import { UnknownQueryError } from "../event-filters.ts";
import { type InsightResults, type TrendsRequest, withOwnWeeks } from "../insights/event-source.ts";
import { computeFunnel } from "../insights/funnels.ts";
import { computeLifecycle, computeRetention } from "../insights/retention.ts";
import { computeStickiness } from "../insights/stickiness.ts";
import { computeTrends } from "../insights/trends.ts";
import { validateQuery } from "../insights/validate-query.ts";
import type { EventSql } from "../sql-dialect.ts";
import { computeWebGoals } from "../web/goals.ts";
import { computeWebOnline, computeWebOverview, computeWebTrends } from "../web/overview.ts";
import { computeWebStats } from "../web/stats-table.ts";
import { findWebQuery, type WebQueryKind, type WebRequest } from "../web/web-query.ts";

const kinds: Record<
  string,
  (store: EventSql, request: TrendsRequest, query: JsonObject) => Promise<InsightResults>
> = {
  TrendsQuery: computeTrends,
  FunnelsQuery: computeFunnel,
  RetentionQuery: computeRetention,
  LifecycleQuery: computeLifecycle,
  StickinessQuery: computeStickiness,
};

/** Computes a query, or the `source` of a wrapping node. @throws {UnknownQueryError} names the unsupported part */
export async function computeInsight(
  store: EventSql,
  request: TrendsRequest,
  node: JsonObject = request.query,
): Promise<InsightResults> {
  const compute =
    typeof node.kind === "string" && Object.hasOwn(kinds, node.kind) ? kinds[node.kind] : undefined;
  if (compute !== undefined) {
    validateQuery(node);
    return await compute(store, withOwnWeeks(request, node), node);
  }
  if (isJsonObject(node.source) && (node.weekStartDay ?? null) !== null) {
    throw new UnknownQueryError("Set weekStartDay in the `source` of the query, next to its `interval`.");
  }
  if (isJsonObject(node.source)) return await computeInsight(store, request, node.source);
  throw new UnknownQueryError(`Queries of kind ${JSON.stringify(node.kind ?? null)} are not supported.`);
}

type Compute = (store: EventSql, request: WebRequest, query: JsonObject) => Promise<JsonObject>;

const webQueries: Readonly<Record<WebQueryKind, Compute>> = {
  WebOverviewQuery: computeWebOverview,
  WebStatsTableQuery: computeWebStats,
  WebGoalsQuery: computeWebGoals,
  WebTrendsQuery: computeWebTrends,
  WebOnlineQuery: computeWebOnline,
};

/**
 * Computes a query of any kind, or the `source` of a wrapping node. Web analytics queries return the members of the
 * response, with `results`.
 * @throws {UnknownQueryError} names the unsupported part
 */
export async function computeQuery(store: EventSql, request: WebRequest): Promise<InsightResults> {
  const web = findWebQuery(request.query);
  if (web === undefined) return await computeInsight(store, request);
  return await webQueries[web.kind as WebQueryKind](store, request, web);
}
