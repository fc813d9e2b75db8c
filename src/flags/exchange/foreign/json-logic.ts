/** Conditions in JsonLogic, with the operators that flagd and GO Feature Flag add. Pure. */

import { isJsonObject, type Json } from "../../../lib/json.ts";
import { compared, type Expression, hasText, isOneOf, nobody, not, test, unknown } from "./expression.ts";
import { asText, list, text } from "./values.ts";

const comparisons: Readonly<Record<string, string>> = { ">": "gt", ">=": "gte", "<": "lt", "<=": "lte" };
const turned: Readonly<Record<string, string>> = { ">": "<", ">=": "<=", "<": ">", "<=": ">=" };
const versions: Readonly<Record<string, string>> = {
  ...{ "=": "semver_eq", "!=": "semver_neq", "<": "semver_lt", "<=": "semver_lte" },
  ...{ ">": "semver_gt", ">=": "semver_gte", "^": "semver_caret", "~": "semver_tilde" },
};

/** Names under which the products hand over who asks. */
const ids = new Set(["targetingKey", "key"]);
export const propertyNamed = (written: string): string => (ids.has(written) ? "distinct_id" : written);

/** Reads a condition; what has no form here becomes `unknown`. */
export function readLogic(rule: Json): Expression {
  if (typeof rule === "boolean") return rule ? { all: [] } : nobody;
  const [entry] = isJsonObject(rule) ? Object.entries(rule) : [];
  if (entry === undefined) return unknown(`${JSON.stringify(rule)} is no condition`);
  const [operator, given] = entry as [string, Json];
  const values = Array.isArray(given) ? given : [given];
  switch (operator) {
    case "and":
      return { all: values.map(readLogic) };
    case "or":
      return { any: values.map(readLogic) };
    case "!":
      return not(readLogic(values[0] ?? null));
    case "!!":
      return readLogic(values[0] ?? null);
    case "var":
      return isSet(rule);
    case "==":
    case "===":
      return equal(values);
    case "!=":
    case "!==":
      return not(equal(values));
    case ">":
    case ">=":
    case "<":
    case "<=":
      return readComparison(operator, values);
    case "in":
      return readIn(values);
    case "starts_with":
      return withText(values, "start");
    case "ends_with":
      return withText(values, "end");
    case "sem_ver":
      return readVersion(values);
    default:
      return unknown(`the operator ${operator} has no counterpart`);
  }
}

/** A property by itself: true, for those who have it as a boolean. */
function isSet(rule: Json): Expression {
  const key = property(rule);
  return key === undefined ? notSayable([rule]) : isOneOf(key, [true]);
}

/** The property that a `var` names. */
function property(value: Json | undefined): string | undefined {
  if (!isJsonObject(value) || !("var" in value)) return undefined;
  const written = text(Array.isArray(value.var) ? (value.var[0] as Json) : (value.var as Json));
  return written === undefined ? undefined : propertyNamed(written);
}

const isPlain = (value: Json | undefined): value is Json => value !== undefined && !isJsonObject(value);
const notSayable = (values: readonly Json[]) =>
  unknown(`${JSON.stringify(values)} compares no property with a value`);

function equal(values: readonly Json[]): Expression {
  const [first, second] = values;
  const [key, value] = property(first) !== undefined ? [property(first), second] : [property(second), first];
  if (key === undefined || !isPlain(value)) return notSayable(values);
  return value === null ? test(key, "is_not_set") : isOneOf(key, [value]);
}

function readComparison(operator: string, values: readonly Json[]): Expression {
  const [first, second, third] = values;
  if (third !== undefined) {
    // `10 <= x < 20` in one.
    return { all: [readComparison(operator, [first!, second!]), readComparison(operator, [second!, third])] };
  }
  const left = property(first);
  if (left !== undefined && isPlain(second)) return compared(left, comparisons[operator]!, second);
  const right = property(second);
  if (right !== undefined && isPlain(first)) return compared(right, comparisons[turned[operator]!]!, first);
  return notSayable(values);
}

/** A part of a text, or one of some values. */
function readIn(values: readonly Json[]): Expression {
  const [needle, hay] = values;
  const key = property(needle);
  if (key !== undefined && Array.isArray(hay)) return isOneOf(key, list(hay));
  const within = property(hay);
  if (within !== undefined && isPlain(needle)) return hasText(within, "anywhere", [needle]);
  return notSayable(values);
}

function withText(values: readonly Json[], where: "start" | "end"): Expression {
  const key = property(values[0]);
  return key === undefined || !isPlain(values[1]) ? notSayable(values) : hasText(key, where, [values[1]]);
}

function readVersion(values: readonly Json[]): Expression {
  const key = property(values[0]);
  const operator = versions[asText(values[1])];
  if (key === undefined || operator === undefined || !isPlain(values[2])) return notSayable(values);
  return test(key, operator, asText(values[2]));
}
