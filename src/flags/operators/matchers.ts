/**
 * The operators of flag conditions: each filter is compiled to a function that tests one property value.
 *
 * Never throws. An invalid filter, or a value that cannot be compared, is an "error"; callers count it as not matching,
 * and inverting it does not make it match. Source: contract, flag-evaluation 12.
 */

import { toNumber } from "../../lib/json/exact.ts";
import { foldCase, type Json, toDisplayString } from "../../lib/json/value.ts";
import type { OperatorName } from "../../lib/operator-table.ts";
import { compilePattern } from "../../lib/regex.ts";
import { type Clock, compileDate, instantOfProperty } from "../../lib/values/dates.ts";
import { fitsOperator, isKnownOperator } from "../../lib/values/operators.ts";
import {
  caretRange,
  compareVersions,
  isInRange,
  parseVersion,
  tildeRange,
  type VersionRange,
  wildcardRange,
} from "../../lib/values/versions.ts";

export type MatchResult = boolean | "error";

/** Tests a property; `undefined` is a missing property, null a present one. */
export type Matcher = (value: Json | undefined, clock: Clock) => MatchResult;

const unusable: Matcher = () => "error";
const never: Matcher = () => false;

type Compile = (filterValue: Json) => Matcher;

const operators: Record<Exclude<OperatorName, "is_set" | "is_not_set">, Compile> = {
  exact: (wanted) => whenPresent(false, equalTo(wanted)),
  is_not: (wanted) => whenPresent(true, not(equalTo(wanted))),
  icontains: (wanted) => textTest(wanted, false, (text, part) => text.includes(part)),
  not_icontains: (wanted) => textTest(wanted, true, (text, part) => !text.includes(part)),
  starts_with: (wanted) => textTest(wanted, false, (text, part) => text.startsWith(part)),
  not_starts_with: (wanted) => textTest(wanted, true, (text, part) => !text.startsWith(part)),
  ends_with: (wanted) => textTest(wanted, false, (text, part) => text.endsWith(part)),
  not_ends_with: (wanted) => textTest(wanted, true, (text, part) => !text.endsWith(part)),
  icontains_multi: (wanted) => whenPresent(false, containsAny(wanted)),
  not_icontains_multi: (wanted) => whenPresent(true, not(containsAny(wanted))),
  regex: (wanted) => patternTest(wanted, false),
  not_regex: (wanted) => patternTest(wanted, true),
  gt: (wanted) => numberTest(wanted, (value, limit) => value > limit),
  gte: (wanted) => numberTest(wanted, (value, limit) => value >= limit),
  lt: (wanted) => numberTest(wanted, (value, limit) => value < limit),
  lte: (wanted) => numberTest(wanted, (value, limit) => value <= limit),
  between: (wanted) => betweenTest(wanted, false),
  not_between: (wanted) => betweenTest(wanted, true),
  is_date_exact: (wanted) => dateTest(wanted, (date, limit) => date === limit),
  is_date_before: (wanted) => dateTest(wanted, (date, limit) => date < limit),
  is_date_after: (wanted) => dateTest(wanted, (date, limit) => date > limit),
  semver_eq: (wanted) => versionTest(wanted, (order) => order === 0),
  semver_neq: (wanted) => versionTest(wanted, (order) => order !== 0),
  semver_gt: (wanted) => versionTest(wanted, (order) => order > 0),
  semver_gte: (wanted) => versionTest(wanted, (order) => order >= 0),
  semver_lt: (wanted) => versionTest(wanted, (order) => order < 0),
  semver_lte: (wanted) => versionTest(wanted, (order) => order <= 0),
  semver_tilde: (wanted) => versionRangeTest(wanted, tildeRange),
  semver_caret: (wanted) => versionRangeTest(wanted, caretRange),
  semver_wildcard: (wanted) => versionRangeTest(wanted, wildcardRange),
  // Both belong to other filter types; on a property they match nothing.
  in: () => never,
  not_in: () => never,
  flag_evaluates_to: () => never,
};

/** Whether the test of this operator uses the clock. */
export function isDateOperator(operator: string | null): boolean {
  return operator?.startsWith("is_date_") === true;
}

/**
 * Builds the test of one property filter.
 *
 * @param operator absent or null means `exact`; an unknown one never matches.
 * @param wanted   the filter's value; one that the operator does not accept, null included, matches nothing.
 */
export function compileMatcher(operator: string | null | undefined, wanted: Json | undefined): Matcher {
  const name = operator ?? "exact";
  if (!isKnownOperator(name)) return unusable;
  if (name === "is_set") return (value) => value !== undefined;
  if (name === "is_not_set") return (value) => value === undefined;
  if (wanted === null || wanted === undefined || !fitsOperator(name, wanted)) return unusable;
  return operators[name](wanted);
}

function whenPresent(ifMissing: boolean, test: (value: Json) => MatchResult): Matcher {
  return (value) => (value === undefined ? ifMissing : test(value));
}

function not(test: (value: Json) => MatchResult): (value: Json) => MatchResult {
  return (value) => {
    const result = test(value);
    return result === "error" ? "error" : !result;
  };
}

function equalTo(wanted: Json): (value: Json) => MatchResult {
  if (isBooleanLike(wanted)) {
    const wantsTruth = isTruthful(wanted);
    return (value) => isTruthful(value) === wantsTruth;
  }
  const texts = new Set<string>();
  /**
   * Numbers in definitions are JavaScript's, which cannot represent long integers: values that round to the same one
   * are equal.
   */
  const rounded = new Set<number>();
  for (const item of Array.isArray(wanted) ? wanted : [wanted]) {
    const text = toDisplayString(item);
    if (text !== undefined) texts.add(foldCase(text));
    if (typeof item === "number" && Number.isInteger(item) && !Number.isSafeInteger(item)) rounded.add(item);
  }
  return (value) => {
    const text = toDisplayString(value);
    if (text === undefined) return "error";
    return texts.has(foldCase(text)) || (rounded.size > 0 && integer.test(text) && rounded.has(Number(text)));
  };
}

const integer = /^-?\d+$/;

/** Lists nested deeper are neither boolean-like nor truthful: following them would exhaust the call stack. */
const listDepthMax = 50;

/** A filter of booleans compares truth instead of text. An empty list is one too, like upstream. */
function isBooleanLike(value: Json, depth = 0): boolean {
  if (typeof value === "boolean") return true;
  if (typeof value === "string") return /^(?:true|false)$/i.test(value);
  return (
    Array.isArray(value) && depth < listDepthMax && value.every((item) => isBooleanLike(item, depth + 1))
  );
}

function isTruthful(value: Json, depth = 0): boolean {
  if (typeof value === "boolean") return value;
  if (typeof value === "string") return value.length === 4 && value.toLowerCase() === "true";
  return Array.isArray(value) && depth < listDepthMax && value.every((item) => isTruthful(item, depth + 1));
}

function textTest(wanted: Json, ifMissing: boolean, test: (text: string, part: string) => boolean): Matcher {
  const part = toDisplayString(wanted);
  if (part === undefined) return unusable;
  const folded = foldCase(part);
  return whenPresent(ifMissing, (value) => {
    const text = toDisplayString(value);
    return text === undefined ? "error" : test(foldCase(text), folded);
  });
}

function containsAny(wanted: Json): (value: Json) => MatchResult {
  const parts = (Array.isArray(wanted) ? wanted : [wanted]).flatMap((part) => {
    const text = toDisplayString(part);
    return text === undefined ? [] : [foldCase(text)];
  });
  return (value) => {
    const text = toDisplayString(value);
    if (text === undefined) return "error";
    const folded = foldCase(text);
    return parts.some((part) => folded.includes(part));
  };
}

function patternTest(wanted: Json, isInverted: boolean): Matcher {
  const compiled = compilePattern(toDisplayString(wanted) ?? "");
  // An invalid pattern matches for neither operator; otherwise `not_regex` with a typo would match every user.
  if ("problem" in compiled) return never;
  return whenPresent(isInverted, (value) => {
    const text = toDisplayString(value);
    if (text === undefined) return "error";
    const isFound = compiled.search(text);
    return isFound === "error" ? "error" : isFound !== isInverted;
  });
}

function numberTest(wanted: Json, test: (value: number, limit: number) => boolean): Matcher {
  const limit = toNumber(wanted);
  if (limit === undefined) return unusable;
  return whenPresent(false, (value) => {
    const number = toNumber(value);
    return number === undefined ? "error" : test(number, limit);
  });
}

function betweenTest(wanted: Json, isInverted: boolean): Matcher {
  if (!Array.isArray(wanted) || wanted.length !== 2) return unusable;
  const least = toNumber(wanted[0]);
  const most = toNumber(wanted[1]);
  if (least === undefined || most === undefined || !(least <= most)) return unusable;
  return whenPresent(isInverted, (value) => {
    const number = toNumber(value);
    if (number === undefined) return "error";
    if (Number.isNaN(number)) return false;
    return (number >= least && number <= most) !== isInverted;
  });
}

function dateTest(wanted: Json, test: (date: number, limit: number) => boolean): Matcher {
  const limitAt = compileDate(wanted);
  if (limitAt === undefined) return unusable;
  return (value, clock) => {
    if (value === undefined) return false;
    const date = instantOfProperty(value, clock);
    const limit = limitAt(clock);
    return date !== undefined && limit !== undefined && test(date, limit);
  };
}

function versionTest(wanted: Json, test: (order: number) => boolean): Matcher {
  const limit = getVersion(wanted);
  if (limit === undefined) return unusable;
  return whenPresent(false, (value) => {
    const version = getVersion(value);
    return version !== undefined && test(compareVersions(version, limit));
  });
}

function versionRangeTest(
  wanted: Json,
  getRange: (text: string) => VersionRange | "any" | undefined,
): Matcher {
  const range = getRange(toDisplayString(wanted) ?? "");
  if (range === undefined) return unusable;
  return whenPresent(false, (value) => {
    const version = getVersion(value);
    return version !== undefined && (range === "any" || isInRange(version, range));
  });
}

function getVersion(value: Json): ReturnType<typeof parseVersion> {
  return typeof value === "string" || typeof value === "number" ? parseVersion(String(value)) : undefined;
}
