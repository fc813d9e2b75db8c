/** Computes insights and web analytics queries. */

import type { JsonObject } from "../lib/json.ts";
import type { InsightResults } from "./insights/event-source.ts";
import { computeInsight } from "./insights/insights.ts";
import type { EventSql } from "./sql-dialect.ts";
import { computeWebGoals } from "./web/goals.ts";
import { computeWebOnline } from "./web/online.ts";
import { computeWebOverview, computeWebTrends } from "./web/overview.ts";
import { computeWebStats } from "./web/stats-table.ts";
import { findWebQuery, type WebQueryKind, type WebRequest } from "./web/web-query.ts";

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
