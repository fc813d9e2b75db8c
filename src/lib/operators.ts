/**
 * The operators of property filters; `operator-values.ts` lists their value forms, `src/flags/operators/matchers.ts`
 * implements their tests.
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

/** A filter with the current name of its operator. */
export function normalizeOperator(filter: JsonObject): JsonObject {
  const operator = olderNames.get(filter.operator);
  return operator === undefined ? filter : { ...filter, operator };
}

const known = new Set<string>(operatorNames);

export function isKnownOperator(operator: string): operator is OperatorName {
  return known.has(operator);
}

/** A value in messages: strings without quotes, everything else as JSON. */
export function formatFilterValue(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}
