/** The operators that filters on properties may carry; what each tests is written in `src/flags/operators/value-tests.ts`. */

import type { Json, JsonObject } from "./json.ts";
import { compilePattern } from "./regex.ts";

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

const ofOthers = new Set<string>(["in", "not_in", "flag_evaluates_to"]);

/** Why a filter on a property of persons matches nobody: it tests with what is not known, or cannot be run. */
export function testFault({
  key,
  operator,
  value,
}: JsonObject): { code: "invalid_operator" | "invalid_value" | "invalid_input"; detail: string } | undefined {
  const name = operator ?? "exact";
  if (typeof name !== "string" || !isKnownOperator(name))
    return { code: "invalid_operator", detail: `Unknown operator: '${textIn(name)}'` };
  if (ofOthers.has(name))
    return { code: "invalid_operator", detail: `The '${name}' operator is not valid for person properties.` };
  if (name !== "regex" && name !== "not_regex") return undefined;
  if (typeof value !== "string")
    return {
      code: "invalid_value",
      detail: `Invalid value for operator ${name}: ${textIn(value)}`,
    };
  const compiled = compilePattern(value);
  if (!("problem" in compiled)) return undefined;
  const reason = compiled.problem === "unsupported" ? ` (${compiled.reason})` : "";
  return { code: "invalid_input", detail: `${textIn(key)}: invalid regex pattern${reason}` };
}

/** A value as sentences show it: text without quotes, everything else as JSON. */
export function textIn(value: Json | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}
