/**
 * The operators that filters on properties may carry; what each takes is in
 * `operator-values.ts`, what each tests in `src/flags/operators/value-tests.ts`.
 */

import type { Json, JsonObject } from "./json.ts";

export const operatorNames = [
  ...(["exact", "is_not", "is_set", "is_not_set"] as const),
  ...(["icontains", "not_icontains", "icontains_multi", "not_icontains_multi"] as const),
  ...(["starts_with", "not_starts_with", "ends_with", "not_ends_with", "regex", "not_regex"] as const),
  ...(["gt", "gte", "lt", "lte", "between", "not_between"] as const),
  ...(["is_date_exact", "is_date_before", "is_date_after"] as const),
  ...(["semver_eq", "semver_neq", "semver_gt", "semver_gte", "semver_lt", "semver_lte"] as const),
  ...(["semver_tilde", "semver_caret", "semver_wildcard"] as const),
  ...(["in", "not_in", "flag_evaluates_to"] as const),
] as const;
export type OperatorName = (typeof operatorNames)[number];

const olderNames = new Map<unknown, OperatorName>([
  ["min", "gte"],
  ["max", "lte"],
]);

/** A filter with the present name of its operator. */
export function withPresentOperator(filter: JsonObject): JsonObject {
  const operator = olderNames.get(filter.operator);
  return operator === undefined ? filter : { ...filter, operator };
}

const known = new Set<string>(operatorNames);

/** True for every operator a filter may carry. */
export function isKnownOperator(operator: string): operator is OperatorName {
  return known.has(operator);
}

/** A value as sentences show it: text without quotes, everything else as JSON. */
export function textIn(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}
