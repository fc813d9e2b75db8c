/**
 * Property filters as SQL over a JSON column. `exactly` translates only filters that SQL evaluates exactly like
 * flags; the caller evaluates the rest in memory. `closely` is for insights, where an unsupported filter is an error.
 */

import type { Json, JsonObject } from "../lib/json/value.ts";
import { listOperators } from "../lib/operator-table.ts";
import { compilePattern } from "../lib/regex.ts";
import { fitsOperator, getSign, isKnownOperator } from "../lib/values/operators.ts";
import { looseStringAt, type PropertyLocation, type SqlDialect, stringAt, toJson } from "./sql-dialect.ts";

/** A condition equivalent to flag evaluation; undefined if SQL cannot express it. */
export function exactly(
  dialect: SqlDialect,
  location: PropertyLocation,
  filter: JsonObject,
): string | undefined {
  const { key, value } = filter;
  const operator = filter.operator ?? "exact";
  if (typeof key !== "string" || filter.negation === true) return undefined;
  if (typeof operator !== "string" || !isKnownOperator(operator) || !fitsOperator(operator, value))
    return undefined;
  if (operator === "is_set") return dialect.hasMember(toJson(location), key);
  if (operator === "is_not_set") return `NOT ${dialect.hasMember(toJson(location), key)}`;
  if (operator === "regex" || operator === "not_regex")
    return regexSearch(dialect, location, key, operator, value);
  // For other operators, a list is compared by its string form.
  if (Array.isArray(value) && !listOperators.has(String(operator))) return undefined;
  const texts = (Array.isArray(value) ? value : [value]).map(plainText);
  if (texts.length === 0 || texts.includes(undefined)) return undefined;
  return comparison(dialect, location, key, String(operator), texts as string[]);
}

/** The stores use the same kind of regex engine; only patterns that are interpreted identically are passed on. */
function regexSearch(
  dialect: SqlDialect,
  location: PropertyLocation,
  key: string,
  operator: string,
  pattern: unknown,
): string | undefined {
  if (typeof pattern !== "string" || !plainPattern.test(pattern) || !isUsable(pattern)) return undefined;
  return searched(dialect, location, key, operator, pattern);
}

function searched(
  dialect: SqlDialect,
  location: PropertyLocation,
  key: string,
  operator: string,
  pattern: string,
): string {
  const found = `coalesce(${dialect.matches(stringAt(dialect, location, key), pattern)}, false)`;
  return operator === "regex" ? found : `NOT ${found}`;
}

/** ASCII without classes, named groups, flags or letter escapes: these differ between dialects. */
const plainPattern = /^(?!.*\(\?)(?:[\x20-\x5b\x5d-\x7e]|\\[^A-Za-z0-9])*$/;

/** A null property has the string `null` in evaluation, which SQL does not see. */
function isUsable(pattern: string): boolean {
  const compiled = compilePattern(pattern);
  return "search" in compiled && compiled.search("null") === false;
}

/** Strings with simple comparison rules: excludes numbers, booleans, null and non-ASCII letters. */
function plainText(value: unknown): string | undefined {
  if (typeof value !== "string" || value === "" || !/^[\x20-\x7e]+$/.test(value)) return undefined;
  if (/^(true|false)$/i.test(value) || "null".includes(value.toLowerCase())) return undefined;
  return /^[\s\d.eE+-]+$/.test(value) ? undefined : value.toLowerCase();
}

/** Other strings cannot occur in a number, however it is written. */
const partOfNumber = /^[\d.e+-]*$/;

function comparison(
  dialect: SqlDialect,
  location: PropertyLocation,
  key: string,
  operator: string,
  texts: string[],
): string | undefined {
  const read = texts.some((text) => partOfNumber.test(text)) ? stringAt : looseStringAt;
  const text = dialect.lower(read(dialect, location, key));
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

/** Conditions joined by OR; false if empty or if the property is absent. */
function anyOf(conditions: readonly string[]): string {
  return conditions.length === 0 ? "false" : `coalesce(${conditions.join(" OR ")}, false)`;
}

/** Other numbers cannot be expressed in SQL. */
function finiteNumber(value: Json | undefined): number | undefined {
  const number = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof number === "number" && Number.isFinite(number) ? number : undefined;
}

/** A condition that is correct for common values; undefined for an unsupported operator or pattern. */
export function closely(
  dialect: SqlDialect,
  location: PropertyLocation,
  filter: JsonObject,
): string | undefined {
  const key = filter.key;
  if (typeof key !== "string") return undefined;
  const exact = exactly(dialect, location, filter);
  if (exact !== undefined) return exact;
  const operator = String(filter.operator ?? "exact");
  const values = Array.isArray(filter.value) ? filter.value : [filter.value];
  const texts = values.map((value) =>
    (typeof value === "string" ? value : JSON.stringify(value ?? null)).toLowerCase(),
  );
  const sign = getSign(operator);
  if (sign !== undefined) {
    const wanted = finiteNumber(values[0]);
    if (wanted === undefined) return undefined;
    return `coalesce(${dialect.number(looseStringAt(dialect, location, key))} ${sign} ${wanted}, false)`;
  }
  if (operator === "between" || operator === "not_between") {
    const [least, most] = values.map(finiteNumber);
    if (values.length !== 2 || least === undefined || most === undefined || least > most) return undefined;
    const number = dialect.number(looseStringAt(dialect, location, key));
    if (operator === "between") return `coalesce(${number} BETWEEN ${least} AND ${most}, false)`;
    // As for flags: an absent property is outside the range, and a non-number is neither inside nor outside.
    return `(coalesce(${number} NOT BETWEEN ${least} AND ${most}, false) OR NOT ${dialect.hasMember(toJson(location), key)})`;
  }
  if (operator === "regex" || operator === "not_regex") {
    const pattern = String(values[0]);
    // The store would fail the whole query.
    if ("problem" in compilePattern(pattern)) return undefined;
    return searched(dialect, location, key, operator, pattern);
  }
  return comparison(dialect, location, key, operator, texts);
}
