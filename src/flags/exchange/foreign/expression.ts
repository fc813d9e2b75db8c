/**
 * What other products say about whom a flag is for, as one kind of expression, and the way from it to condition sets.
 *
 * Condition sets are a choice (OR) of lists of filters (AND), so expressions are brought into that form; the negation of
 * a filter keeps what counts for somebody who lacks the property. Pure.
 */

import type { Json, JsonObject } from "../../../lib/json.ts";
import { compilePattern } from "../../../lib/regex.ts";
import { asText } from "./values.ts";

/** A test of one property, with an operator of ours. */
interface PropertyTest {
  property: string;
  operator: string;
  value?: Json;
}

export type Expression =
  | { test: PropertyTest }
  /** Another flag is on, or has a variant; by its key. */
  | { flag: string; value: boolean | string }
  | { all: readonly Expression[] }
  | { any: readonly Expression[] }
  | { not: Expression }
  /** Something that cannot be said here, and why. */
  | { unknown: string };

export const everybody: Expression = { all: [] };
export const nobody: Expression = { any: [] };

export const test = (property: string, operator: string, value?: Json): Expression => ({
  test: value === undefined ? { property, operator } : { property, operator, value },
});
export const unknown = (why: string): Expression => ({ unknown: why });
export const not = (expression: Expression): Expression => ({ not: expression });

/** The opposite of a condition that is false, negated or not, for those who lack the property. */
export const notOfPresent = (property: string, expression: Expression): Expression =>
  property === "distinct_id" ? not(expression) : { all: [test(property, "is_set"), not(expression)] };

/** A property equals one of some values. */
export function isOneOf(property: string, values: readonly Json[]): Expression {
  if (values.length === 0) return nobody;
  if (values.length > valuesMax) {
    const parts = Math.ceil(values.length / valuesMax);
    return {
      any: Array.from({ length: parts }, (_, part) =>
        isOneOf(property, values.slice(part * valuesMax, (part + 1) * valuesMax)),
      ),
    };
  }
  return test(property, "exact", values as Json[]);
}

/** A text has, begins with or ends with one of some texts; upper and lower case differ unless told otherwise. */
export function hasText(
  property: string,
  where: "anywhere" | "start" | "end",
  values: readonly Json[],
  ignoresCase = false,
): Expression {
  if (values.length === 0) return nobody;
  const texts = values.map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
  if (ignoresCase && where === "anywhere") {
    return { any: texts.map((text) => test(property, "icontains", text)) };
  }
  const choice = texts.map((text) => (ignoresCase ? inAnyCase(text) : escaped(text))).join("|");
  const group = texts.length === 1 ? choice : `(?:${choice})`;
  return test(property, "regex", where === "start" ? `^${group}` : where === "end" ? `${group}$` : choice);
}

/** A pattern that SDKs of every language read alike. */
const inAnyCase = (text: string) =>
  [...text]
    .map((character) => {
      const [lower, upper] = [character.toLowerCase(), character.toUpperCase()];
      return lower === upper ? escaped(character) : `[${lower}${upper}]`;
    })
    .join("");

/** A number compared with others: `gt`, `gte`, `lt`, `lte`. */
export const compared = (property: string, operator: string, value: Json): Expression =>
  Number.isFinite(Number(value)) && value !== ""
    ? test(property, operator, asText(value))
    : unknown(`${JSON.stringify(value)} is no number`);

/** A date compared with a moment, given as ISO 8601 or in milliseconds since 1970. */
export function dated(
  property: string,
  operator: "is_date_before" | "is_date_after",
  value: Json,
): Expression {
  const moment = new Date(typeof value === "number" ? value : asText(value));
  if (Number.isNaN(moment.getTime())) return unknown(`${JSON.stringify(value)} is no date`);
  return test(property, operator, moment.toISOString());
}

/** As many values as one filter may list. */
const valuesMax = 1_000;
/** Condition sets of one rule; more are not made. */
const setsMax = 100;

/** Filters that must all hold. */
type Conjunction = readonly (PropertyTest | FlagTest)[];
interface FlagTest {
  flag: string;
  value: boolean | string;
}

/** Something has no form as condition sets. */
export class NotSayable extends Error {}

/**
 * The lists of filters of which one must hold, each in the form of a flag's `properties`.
 *
 * @throws {NotSayable} with the reason.
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

/** Why parts of an expression cannot be said, each reason once. */
export function unknownsIn(expression: Expression): string[] {
  if ("unknown" in expression) return [expression.unknown];
  if ("not" in expression) return unknownsIn(expression.not);
  if ("test" in expression) return patternProblem(expression.test);
  const parts = "all" in expression ? expression.all : "any" in expression ? expression.any : [];
  return [...new Set(parts.flatMap(unknownsIn))];
}

/** Lookaround and backreferences run in no time that can be bounded; others do not compile. */
function patternProblem({ operator, value }: PropertyTest): string[] {
  if (operator !== "regex" && operator !== "not_regex") return [];
  const compiled = compilePattern(asText(value));
  if (!("problem" in compiled)) return [];
  const reason = compiled.problem === "unsupported" ? `: ${compiled.reason}` : "";
  return [`the pattern ${JSON.stringify(value)} cannot be used${reason}`];
}

function expand(expression: Expression, isNegated: boolean): Conjunction[] {
  if ("unknown" in expression) throw new NotSayable(expression.unknown);
  if ("not" in expression) return expand(expression.not, !isNegated);
  if ("test" in expression) return isNegated ? opposite(expression.test) : [[expression.test]];
  if ("flag" in expression) return [[isNegated ? oppositeFlag(expression) : expression]];
  const isChoice = "any" in expression !== isNegated;
  const parts = "any" in expression ? expression.any : expression.all;
  if (isChoice) return limited(parts.flatMap((part) => expand(part, isNegated)));
  let lists: Conjunction[] = [[]];
  for (const part of parts) {
    const added = expand(part, isNegated);
    if (lists.length * added.length > setsMax) throw tooMany();
    lists = lists.flatMap((list) => added.map((more) => [...list, ...more]));
  }
  return lists;
}

function limited(lists: Conjunction[]): Conjunction[] {
  if (lists.length > setsMax) throw tooMany();
  return lists;
}

const tooMany = () => new NotSayable(`it needs more than ${setsMax} condition sets`);

/** Operators whose opposite also holds for those who lack the property. */
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
/** Operators that hold for nobody who lacks the property, and so do their opposites. */
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
  if (compares === undefined) throw new NotSayable(`the opposite of ${original.operator} has no operator`);
  return [
    ...compares.map((operator) => [{ ...original, operator }]),
    [{ property: original.property, operator: "is_not_set" }],
  ];
}

function oppositeFlag({ flag, value }: FlagTest): FlagTest {
  if (typeof value === "boolean") return { flag, value: !value };
  throw new NotSayable(`that flag ${flag} has another variant than ${value} cannot be said`);
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
