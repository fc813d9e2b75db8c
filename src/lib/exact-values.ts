/** Normalizes filter values to the form that their operator takes, if another form means exactly the same. Pure. */

import type { Json, JsonObject } from "./json.ts";
import { normalizeOperator } from "./operators.ts";

const textOperators = new Set(["gt", "gte", "lt", "lte", "is_date_before", "is_date_after", "is_date_exact"]);
const textOrListOperators: Readonly<Record<string, string>> = {
  icontains: "icontains_multi",
  not_icontains: "not_icontains_multi",
};
const listOperators = new Set(["icontains_multi", "not_icontains_multi"]);

/**
 * A property filter with its value in the form that its operator takes.
 *
 * Source: contract, import 3 (F2).
 */
export function exactProperty(sent: JsonObject): JsonObject {
  const property = normalizeOperator(sent);
  const { operator, value } = property;
  if (typeof operator !== "string") return property;
  if (property.type === "flag") return { ...property, value: flagValue(value) };
  const only = Array.isArray(value) && value.length === 1 ? value[0]! : value;
  if (textOperators.has(operator))
    return { ...property, value: typeof only === "number" ? String(only) : (only ?? null) };
  if (listOperators.has(operator)) return { ...property, value: listed(value) };
  const many = textOrListOperators[operator];
  if (many === undefined) return property;
  if (Array.isArray(only)) return { ...property, operator: many, value: listed(only) };
  return { ...property, value: typeof only === "number" ? String(only) : (only ?? null) };
}

const listed = (value: Json | undefined): Json =>
  (Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]).map((item) =>
    typeof item === "number" || typeof item === "boolean" ? String(item) : item,
  );

/** `True` and `FALSE` are booleans that another program has written as strings. */
function flagValue(value: Json | undefined): Json {
  if (typeof value !== "string") return value ?? null;
  const lower = value.toLowerCase();
  return value !== lower && (lower === "true" || lower === "false") ? lower === "true" : value;
}
