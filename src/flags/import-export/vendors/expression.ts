/**
 * Targeting rules of other products as one kind of expression, and its conversion to condition sets.
 *
 * Condition sets are an OR of ANDs of filters, so expressions are converted to that form; the negation of a filter
 * keeps its result for users without the property. Pure.
 */

import type { Json, JsonObject } from "../../../lib/json/value.ts";
import { compilePattern } from "../../../lib/regex.ts";
import { parseVersion } from "../../../lib/values/versions.ts";
import { checkedList, checkedObjects, isComposite, number, stringify } from "./values.ts";

/** A test of one property, with an operator of Flagkeep. */
interface PropertyTest {
  property: string;
  operator: string;
  value?: Json;
}

export type Expression =
  | { test: PropertyTest }
  /** Another flag, by key, is on or has a variant. */
  | FlagTest
  | { all: readonly Expression[] }
  | { any: readonly Expression[] }
  | { not: Expression }
  /** Cannot be expressed here, with the reason. */
  | { unknown: string };

export const matchesAll: Expression = { all: [] };
export const matchesNone: Expression = { any: [] };

export const test = (property: string, operator: string, value?: Json): Expression => ({
  test: value === undefined ? { property, operator } : { property, operator, value },
});
export const unknown = (why: string): Expression => ({ unknown: why });
export const not = (expression: Expression): Expression => ({ not: expression });

/** Reads the conditions of a list; members that are not conditions become `unknown`. */
export function readEach(
  value: Json | undefined,
  what: string,
  read: (condition: JsonObject) => Expression,
): Expression[] {
  const problems: Expression[] = [];
  const conditions = checkedObjects(value, what, (reason) => problems.push(unknown(reason)));
  return [...conditions.map(read), ...problems];
}

/** The values of a list; another value is `unknown`. */
export function withValues(
  value: Json | undefined,
  read: (values: readonly Json[]) => Expression,
): Expression {
  const problems: string[] = [];
  const values = checkedList(value, "values", (reason) => problems.push(reason));
  return problems[0] === undefined ? read(values) : unknown(problems[0]);
}

/** The opposite of a condition that is false, negated or not, for users without the property. */
export const notOfPresent = (property: string, expression: Expression): Expression =>
  property === "distinct_id" ? not(expression) : { all: [test(property, "is_set"), not(expression)] };

/** A property equals one of several values. */
export function isOneOf(property: string, values: readonly Json[]): Expression {
  if (values.length === 0) return matchesNone;
  const invalid = values.find(isComposite);
  if (invalid !== undefined) return unknown(`${JSON.stringify(invalid)} is not a string, number or boolean`);
  if (values.length > valuesMax) {
    const parts = Math.ceil(values.length / valuesMax);
    return {
      any: Array.from({ length: parts }, (_, part) =>
        isOneOf(property, values.slice(part * valuesMax, (part + 1) * valuesMax)),
      ),
    };
  }
  if (!values.every(isBooleanLike)) return test(property, "exact", values as Json[]);
  // Here `exact` compares truth instead of text if all values are boolean: "false" would match every other value.
  const wanted = new Set(values.map((value) => stringify(value).toLowerCase()));
  const parts = [
    ...(wanted.has("true") ? [test(property, "exact", [true])] : []),
    ...(wanted.has("false") ? [test(property, "regex", "^[fF][aA][lL][sS][eE]$")] : []),
  ];
  return parts.length === 1 ? parts[0]! : { any: parts };
}

const isBooleanLike = (value: Json) => /^(?:true|false)$/i.test(stringify(value));

/** A string contains, starts with or ends with one of several strings; case-sensitive by default. */
export function hasContent(
  property: string,
  where: "anywhere" | "start" | "end",
  values: readonly Json[],
  ignoresCase = false,
): Expression {
  if (values.length === 0) return matchesNone;
  const invalid = values.find(isComposite);
  if (invalid !== undefined) return unknown(`${JSON.stringify(invalid)} is not a string`);
  const texts = values.map(stringify);
  if (ignoresCase && where === "anywhere") {
    return { any: texts.map((text) => test(property, "icontains", text)) };
  }
  const choice = texts.map((text) => (ignoresCase ? inAnyCase(text) : escaped(text))).join("|");
  const group = texts.length === 1 ? choice : `(?:${choice})`;
  return test(property, "regex", where === "start" ? `^${group}` : where === "end" ? `${group}$` : choice);
}

/** A pattern that SDKs of every language interpret alike. */
const inAnyCase = (text: string) =>
  [...text]
    .map((character) => {
      const lower = character.toLowerCase();
      const upper = character.toUpperCase();
      return lower === upper ? escaped(character) : `[${lower}${upper}]`;
    })
    .join("");

/** Compares a number: `gt`, `gte`, `lt`, `lte`. */
export const compared = (property: string, operator: string, value: Json): Expression =>
  number(value) === undefined
    ? unknown(`${JSON.stringify(value)} is not a number`)
    : test(property, operator, stringify(value).trim());

/** A property is a certain number, however it is written. */
export const equalsNumber = (property: string, value: Json): Expression => ({
  all: [compared(property, "gte", value), compared(property, "lte", value)],
});

/** Compares a version. */
export const versioned = (property: string, operator: string, value: Json): Expression =>
  typeof value === "string" && parseVersion(value) !== undefined
    ? test(property, operator, value)
    : unknown(`${JSON.stringify(value)} is not a version`);

/** A pattern is found in a property. */
export const matching = (property: string, pattern: Json): Expression =>
  typeof pattern === "string"
    ? test(property, "regex", pattern)
    : unknown(`${JSON.stringify(pattern)} is not a pattern`);

type DateOperator = "is_date_before" | "is_date_after" | "is_date_exact";

/** Compares a date with a timestamp, given as ISO 8601 or in milliseconds since 1970. */
export function dated(property: string, operator: DateOperator, value: Json): Expression {
  const isDate = typeof value === "number" || (typeof value === "string" && /^\d{4}-\d\d/.test(value));
  const moment = new Date(isDate ? value : Number.NaN);
  if (Number.isNaN(moment.getTime())) return unknown(`${JSON.stringify(value)} is not a date`);
  return test(property, operator, moment.toISOString());
}

/** Maximum number of values of one filter. */
const valuesMax = 1_000;
/** Maximum number of condition sets per rule. */
const setsMax = 100;

/** Filters that must all match. */
type Conjunction = readonly (PropertyTest | FlagTest)[];
interface FlagTest {
  flag: string;
  value: boolean | string;
  /** The other variants of the flag, which a negation needs. */
  others?: readonly string[];
}

/** A rule cannot be expressed as condition sets. */
export class UnsupportedRuleError extends Error {}

/**
 * Lists of filters of which one must match, each in the form of a flag's `properties`.
 *
 * @throws {UnsupportedRuleError} with the reason.
 */
export function alternatives(expression: Expression): JsonObject[][] {
  return expand(expression, false).map((conjunction) =>
    conjunction.map((filter): JsonObject => {
      if ("flag" in filter) {
        return { type: "flag", flag: filter.flag, operator: "flag_evaluates_to", value: filter.value };
      }
      const { property, operator, value } = filter;
      return { key: property, type: "person", operator, value: value ?? operator };
    }),
  );
}

/** The other flags that an expression is about. */
export function flagsIn(expression: Expression): string[] {
  if ("flag" in expression) return [expression.flag];
  if ("not" in expression) return flagsIn(expression.not);
  const parts = "all" in expression ? expression.all : "any" in expression ? expression.any : [];
  return [...new Set(parts.flatMap(flagsIn))];
}

/** Why parts of an expression cannot be expressed, without duplicates. */
export function unknownsIn(expression: Expression): string[] {
  if ("unknown" in expression) return [expression.unknown];
  if ("not" in expression) return unknownsIn(expression.not);
  if ("test" in expression) return testProblem(expression.test);
  const parts = "all" in expression ? expression.all : "any" in expression ? expression.any : [];
  return [...new Set(parts.flatMap(unknownsIn))];
}

/** Lookaround and backreferences have no bounded run time; other invalid patterns do not compile. */
function testProblem({ property, operator, value }: PropertyTest): string[] {
  if (property.trim() === "") return ["a condition does not name its attribute"];
  if (operator !== "regex" && operator !== "not_regex") return [];
  const compiled = compilePattern(stringify(value));
  if (!("problem" in compiled)) return [];
  const reason = compiled.problem === "unsupported" ? `: ${compiled.reason}` : "";
  return [`the pattern ${JSON.stringify(value)} cannot be used${reason}`];
}

function expand(expression: Expression, isNegated: boolean): Conjunction[] {
  if ("unknown" in expression) throw new UnsupportedRuleError(expression.unknown);
  if ("not" in expression) return expand(expression.not, !isNegated);
  if ("test" in expression) return isNegated ? opposite(expression.test) : [[expression.test]];
  if ("flag" in expression) return isNegated ? oppositeFlag(expression) : [[expression]];
  const isChoice = "any" in expression !== isNegated;
  const parts = "any" in expression ? expression.any : expression.all;
  if (isChoice) return limited(parts.flatMap((part) => expand(part, isNegated)));
  let lists: Conjunction[] = [[]];
  for (const part of parts) {
    const added = expand(part, isNegated);
    lists = limited(lists.flatMap((list) => added.map((more) => [...list, ...more])));
  }
  return lists;
}

/** Without repetitions and conditions that no one meets. */
function limited(lists: Conjunction[]): Conjunction[] {
  const distinct = new Map<string, Conjunction>();
  for (const list of lists) {
    const filters = new Map(list.map((filter) => [JSON.stringify(filter), filter]));
    if (!isContradictory([...filters.values()]))
      distinct.set([...filters.keys()].sort().join(), [...filters.values()]);
  }
  if (distinct.size > setsMax) throw tooMany();
  return [...distinct.values()];
}

/** Operators that also match users without the property. */
const matchingMissing = new Set(["is_not", "not_icontains", "not_regex", "is_not_set"]);

/** Whether a property must be both missing and present. */
function isContradictory(filters: Conjunction): boolean {
  const tests = filters.flatMap((filter) => ("property" in filter ? [filter] : []));
  const missing = new Set(
    tests.filter(({ operator }) => operator === "is_not_set").map(({ property }) => property),
  );
  return tests.some(({ property, operator }) => missing.has(property) && !matchingMissing.has(operator));
}

const tooMany = () => new UnsupportedRuleError(`it requires more than ${setsMax} condition sets`);

/** Operators whose opposite also matches users without the property. */
const opposites: Readonly<Record<string, string>> = {
  exact: "is_not",
  is_not: "exact",
  icontains: "not_icontains",
  not_icontains: "icontains",
  regex: "not_regex",
  not_regex: "regex",
  is_set: "is_not_set",
  is_not_set: "is_set",
};
/** Operators that, like their opposites, never match users without the property. */
const opposedComparisons: Readonly<Record<string, readonly string[]>> = {
  gt: ["lte"],
  gte: ["lt"],
  lt: ["gte"],
  lte: ["gt"],
  is_date_before: ["is_date_after", "is_date_exact"],
  is_date_after: ["is_date_before", "is_date_exact"],
  semver_eq: ["semver_neq"],
  semver_neq: ["semver_eq"],
  semver_gt: ["semver_lte"],
  semver_gte: ["semver_lt"],
  semver_lt: ["semver_gte"],
  semver_lte: ["semver_gt"],
};

function opposite(original: PropertyTest): Conjunction[] {
  const simple = opposites[original.operator];
  if (simple !== undefined) return [[{ ...original, operator: simple }]];
  const compares = opposedComparisons[original.operator];
  if (compares === undefined) throw new UnsupportedRuleError(`${original.operator} has no inverse operator`);
  return [
    ...compares.map((operator) => [{ ...original, operator }]),
    [{ property: original.property, operator: "is_not_set" }],
  ];
}

function oppositeFlag({ flag, value, others = [] }: FlagTest): Conjunction[] {
  if (typeof value === "boolean") return [[{ flag, value: !value }]];
  return [false, ...others].map((other) => [{ flag, value: other }]);
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
