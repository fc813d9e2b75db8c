/**
 * Property filters as SQL over a JSON column.
 *
 * `exactly` translates only what SQL answers as the evaluation of flags does; the caller tests the rest in memory.
 * `closely` is for insights, where a filter that cannot be expressed is an error of the query.
 */

import type { Json, JsonObject } from "../lib/json.ts";
import { fitsOperator } from "../lib/operator-values.ts";
import { isKnownOperator } from "../lib/operators.ts";
import { compilePattern } from "../lib/regex.ts";
import { type Dialect, jsonOf, type PropertyPlace, roughTextAt, textAt } from "./dialect.ts";

/** A condition with the same answer as evaluation, or undefined when there is none in SQL. */
export function exactly(dialect: Dialect, place: PropertyPlace, filter: JsonObject): string | undefined {
  const { key, value } = filter;
  const operator = filter.operator ?? "exact";
  if (typeof key !== "string" || filter.negation === true) return undefined;
  if (typeof operator !== "string" || !isKnownOperator(operator) || !fitsOperator(operator, value))
    return undefined;
  if (operator === "is_set") return dialect.hasMember(jsonOf(place), key);
  if (operator === "is_not_set") return `NOT ${dialect.hasMember(jsonOf(place), key)}`;
  if (operator === "regex" || operator === "not_regex")
    return regexSearch(dialect, place, key, operator, value);
  // Elsewhere a list is compared by its own text.
  if (Array.isArray(value) && !takesLists.has(String(operator))) return undefined;
  const texts = (Array.isArray(value) ? value : [value]).map(plainText);
  if (texts.length === 0 || texts.includes(undefined)) return undefined;
  return comparison(dialect, place, key, String(operator), texts as string[]);
}

/** The stores search with the same kind of engine; only patterns that both read alike are given to it. */
function regexSearch(
  dialect: Dialect,
  place: PropertyPlace,
  key: string,
  operator: string,
  pattern: unknown,
): string | undefined {
  if (typeof pattern !== "string" || !plainPattern.test(pattern) || !isUsable(pattern)) return undefined;
  return searched(dialect, place, key, operator, pattern);
}

function searched(
  dialect: Dialect,
  place: PropertyPlace,
  key: string,
  operator: string,
  pattern: string,
): string {
  const found = `coalesce(${dialect.matches(textAt(dialect, place, key), pattern)}, false)`;
  return operator === "regex" ? found : `NOT ${found}`;
}

/** ASCII without classes, groups with names or flags, or escapes of letters: these have dialects. */
const plainPattern = /^(?!.*\(\?)(?:[\x20-\x5b\x5d-\x7e]|\\[^A-Za-z0-9])*$/;

/** A property that is null has the text `null`, which SQL does not see. */
function isUsable(pattern: string): boolean {
  const compiled = compilePattern(pattern);
  return "search" in compiled && compiled.search("null") === false;
}

const takesLists = new Set(["exact", "is_not", "icontains_multi", "not_icontains_multi"]);

/** Text whose comparison needs none of the finer rules: numbers, booleans, null and letters beyond ASCII have them. */
function plainText(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "" || !/^[\x20-\x7e]+$/.test(value)) return undefined;
  if (/^(true|false)$/i.test(value) || "null".includes(value.toLowerCase())) return undefined;
  return /^[\s\d.eE+-]+$/.test(value) ? undefined : value.toLowerCase();
}

/** Other texts are not found in any number, however it is written. */
const partOfNumber = /^[\d.e+-]*$/;

function comparison(
  dialect: Dialect,
  place: PropertyPlace,
  key: string,
  operator: string,
  texts: string[],
): string | undefined {
  const read = texts.some((one) => partOfNumber.test(one)) ? textAt : roughTextAt;
  const text = dialect.lower(read(dialect, place, key));
  const isAnyOf = anyOf(texts.length === 0 ? [] : [`${text} IN (${texts.map(dialect.text).join(", ")})`]);
  const contains = anyOf(texts.map((part) => dialect.contains(text, part)));
  switch (operator) {
    case "exact":
      return isAnyOf;
    case "is_not":
      return `NOT ${isAnyOf}`;
    case "icontains":
      return texts.length === 1 ? contains : undefined;
    case "not_icontains":
      return texts.length === 1 ? `NOT ${contains}` : undefined;
    case "starts_with":
    case "not_starts_with":
    case "ends_with":
    case "not_ends_with": {
      if (texts.length !== 1) return undefined;
      const part = texts[0]!.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
      const pattern = operator.endsWith("starts_with") ? `^${part}` : `${part}$`;
      const found = `coalesce(${dialect.matches(text, pattern)}, false)`;
      return operator.startsWith("not_") ? `NOT ${found}` : found;
    }
    case "icontains_multi":
      return contains;
    case "not_icontains_multi":
      return `NOT ${contains}`;
    default:
      return undefined;
  }
}

/** Conditions joined by OR; none of none, and not of a property that is absent. */
function anyOf(conditions: readonly string[]): string {
  return conditions.length === 0 ? "false" : `coalesce(${conditions.join(" OR ")}, false)`;
}

const numeric: Record<string, string> = { gt: ">", gte: ">=", min: ">=", lt: "<", lte: "<=", max: "<=" };

/** Others cannot be written in SQL. */
function finiteNumber(value: Json | undefined): number | undefined {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}

/** A condition that is right for usual values, or undefined for an operator or a pattern that cannot be used. */
export function closely(dialect: Dialect, place: PropertyPlace, filter: JsonObject): string | undefined {
  const key = filter.key;
  if (typeof key !== "string") return undefined;
  const exact = exactly(dialect, place, filter);
  if (exact !== undefined) return exact;
  const operator = String(filter.operator ?? "exact");
  const values = Array.isArray(filter.value) ? filter.value : [filter.value];
  const texts = values.map((value) =>
    (typeof value === "string" ? value : JSON.stringify(value ?? null)).toLowerCase(),
  );
  const sign = numeric[operator];
  if (sign !== undefined) {
    const wanted = finiteNumber(values[0]);
    if (wanted === undefined) return undefined;
    return `coalesce(${dialect.number(roughTextAt(dialect, place, key))} ${sign} ${wanted}, false)`;
  }
  if (operator === "between" || operator === "not_between") {
    const [least, most] = values.map(finiteNumber);
    if (values.length !== 2 || least === undefined || most === undefined || least > most) return undefined;
    const number = dialect.number(roughTextAt(dialect, place, key));
    if (operator === "between") return `coalesce(${number} BETWEEN ${least} AND ${most}, false)`;
    // As for flags: what has no such property is outside, and what is no number is neither.
    return `(coalesce(${number} NOT BETWEEN ${least} AND ${most}, false) OR NOT ${dialect.hasMember(jsonOf(place), key)})`;
  }
  if (operator === "regex" || operator === "not_regex") {
    const pattern = String(values[0]);
    // The store would end the whole query with an error about it.
    if ("problem" in compilePattern(pattern)) return undefined;
    return searched(dialect, place, key, operator, pattern);
  }
  return comparison(dialect, place, key, operator, texts);
}
