/** Dispatches insight queries by kind. */

import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import { UnknownQueryError } from "../event-filters.ts";
import type { EventSql } from "../sql-dialect.ts";
import { type InsightResults, type TrendsRequest, withOwnWeeks } from "./event-source.ts";
import { computeFunnel } from "./funnels.ts";
import { computeLifecycle, computeRetention } from "./retention.ts";
import { computeStickiness } from "./stickiness.ts";
import { computeTrends } from "./trends.ts";
import { validateQuery } from "./validate-query.ts";

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
