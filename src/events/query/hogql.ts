/** `HogQLQuery` objects: an operator's statement as clients made for PostHog send and save it. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";

/** Nodes that wrap a query say how it is shown; a few are enough. */
const wrappersMax = 5;

/**
 * The statement of a `HogQLQuery`, or of one that a node such as `DataVisualizationNode` has as its `source`; undefined for
 * queries of other kinds.
 */
export function statementOf(query: Json): Json | undefined {
  let node: Json | undefined = query;
  for (let depth = 0; depth <= wrappersMax && isJsonObject(node); depth++) {
    const each: JsonObject = node;
    if (each.kind === "HogQLQuery") return each.query ?? null;
    node = each.source;
  }
  return undefined;
}
