/** What insights compute: each kind of query by its own file. */

import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import type { EventSql } from "../dialect.ts";
import { UnknownQuery } from "../event-filters.ts";
import { type InsightResults, type TrendsRequest, withOwnWeeks } from "./found-events.ts";
import { computeFunnel } from "./funnels.ts";
import { checkParts } from "./known-parts.ts";
import { computeLifecycle, computeRetention } from "./retention.ts";
import { computeTrends } from "./trends.ts";

const kinds: Record<
  string,
  (store: EventSql, request: TrendsRequest, query: JsonObject) => Promise<InsightResults>
> = {
  TrendsQuery: computeTrends,
  FunnelsQuery: computeFunnel,
  RetentionQuery: computeRetention,
  LifecycleQuery: computeLifecycle,
};

/**
 * Computes a query, or that of a node which wraps one as its `source`.
 *
 * @throws {UnknownQuery} with a sentence about what is not known.
 */
export async function computeInsight(
  store: EventSql,
  request: TrendsRequest,
  node: JsonObject = request.query,
): Promise<InsightResults> {
  const compute =
    typeof node.kind === "string" && Object.hasOwn(kinds, node.kind) ? kinds[node.kind] : undefined;
  if (compute !== undefined) {
    checkParts(node);
    return await compute(store, withOwnWeeks(request, node), node);
  }
  if (isJsonObject(node.source) && (node.weekStartDay ?? null) !== null) {
    throw new UnknownQuery("The weekStartDay belongs in the `source` of the query, next to its `interval`.");
  }
  if (isJsonObject(node.source)) return await computeInsight(store, request, node.source);
  throw new UnknownQuery(`Queries of kind ${JSON.stringify(node.kind ?? null)} cannot be computed.`);
}
