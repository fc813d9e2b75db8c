/**
 * Operators of property filters, and the value forms that each accepts: the single table for flags, cohorts, previews,
 * person and event lists, and evaluation. `src/flags/operators/matchers.ts` implements their tests. Pure.
 *
 * Source: contract, flag-evaluation 12 and management-api 4.4 (third round B1).
 */

import { formatNumber, toNumber } from "./json/exact.ts";
import type { Json, JsonObject } from "./json.ts";
import { compilePattern } from "./regex.ts";
import { parseDate, parseRelativeDate } from "./values/dates.ts";
import { parseVersion, wildcardRange } from "./values/versions.ts";

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

const isNumber = (value: Json): boolean => typeof value === "number" || formatNumber(value) !== undefined;
const isScalar = (value: Json): boolean =>
  typeof value === "string" || typeof value === "boolean" || isNumber(value);

/** The value of a JSON number or a numeric string; NaN, which `toNumber` reads like upstream, compares with nothing. */
function comparable(value: Json | undefined): number | undefined {
  const number = toNumber(value);
  return Number.isNaN(number) ? undefined : number;
}

/** Forms of a value. */
const forms = {
  string: (value) => typeof value === "string",
  number: isNumber,
  "numeric string": (value) => typeof value === "string" && comparable(value) !== undefined,
  boolean: (value) => typeof value === "boolean",
  "list of values": (value) => Array.isArray(value) && value.length > 0 && value.every(isScalar),
  "list of strings": (value) =>
    Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "string"),
  // Whether the pattern compiles is a separate error.
  regex: (value) => typeof value === "string",
  date: (value) => typeof value === "string" && parseDate(value) !== undefined,
  "relative date": (value) => typeof value === "string" && parseRelativeDate(value) !== undefined,
  semver: (value) => typeof value === "string" && parseVersion(value) !== undefined,
  "semver pattern": (value) => typeof value === "string" && wildcardRange(value) !== undefined,
  "ordered range": (value) => {
    if (!Array.isArray(value) || value.length !== 2) return false;
    const [least, most] = value.map(comparable);
    return least !== undefined && most !== undefined && least <= most;
  },
  /** Clients send the operator's name, null, true or no value; it is ignored. */
  "no value": () => true,
} satisfies Record<string, (value: Json) => boolean>;

export type ValueForm = keyof typeof forms;

const equality: ValueForm[] = ["string", "number", "boolean", "list of values"];
const text: ValueForm[] = ["string", "number"];
const number: ValueForm[] = ["number", "numeric string"];
const date: ValueForm[] = ["date", "relative date"];

/** An operator without a row does not compile. */
export const valueForms: Record<OperatorName, readonly ValueForm[]> = {
  exact: equality,
  is_not: equality,
  is_set: ["no value"],
  is_not_set: ["no value"],
  icontains: text,
  not_icontains: text,
  starts_with: text,
  not_starts_with: text,
  ends_with: text,
  not_ends_with: text,
  icontains_multi: ["list of strings"],
  not_icontains_multi: ["list of strings"],
  regex: ["regex"],
  not_regex: ["regex"],
  gt: number,
  gte: number,
  lt: number,
  lte: number,
  between: ["ordered range"],
  not_between: ["ordered range"],
  is_date_exact: date,
  is_date_before: date,
  is_date_after: date,
  semver_eq: ["semver"],
  semver_neq: ["semver"],
  semver_gt: ["semver"],
  semver_gte: ["semver"],
  semver_lt: ["semver"],
  semver_lte: ["semver"],
  semver_tilde: ["semver"],
  semver_caret: ["semver"],
  semver_wildcard: ["semver pattern"],
  // Cohort IDs are looked up, flag values compared with the flag's variants; each has its own rule.
  in: ["number", "numeric string"],
  not_in: ["number", "numeric string"],
  flag_evaluates_to: ["boolean", "string"],
};

/** Whether a value has a form that the operator accepts. Patterns are not compiled. */
export function fitsOperator(operator: OperatorName, value: Json | undefined): boolean {
  return valueForms[operator].some((form) => form === "no value" || forms[form](value ?? null));
}

/**
 * For flags, PostHog accepts strings only with these operators, and numbers with the others (contract, management-api
 * 4.4).
 */
export function fitsOperatorInFlag(operator: OperatorName, value: Json | undefined): boolean {
  const isTextOnly = valueForms[operator] === text || valueForms[operator] === number;
  return fitsOperator(operator, value) && !(isTextOnly && isNumber(value ?? null));
}

/**
 * Receives the message about a condition that matches nothing, where it must not block the rest: imports keep and
 * report such conditions. Without it, saving throws.
 */
export type NoteMisfit = (detail: string) => void;

export interface TestFault {
  code: "invalid_operator" | "invalid_value" | "invalid_date" | "invalid_input";
  detail: string;
}

const ofOthers: ReadonlySet<OperatorName> = new Set(["in", "not_in", "flag_evaluates_to"]);

/** Why a property filter matches nothing: its key, operator or value cannot be used. */
export function validateFilterValue({ key, operator, value }: JsonObject): TestFault | undefined {
  const name = operator ?? "exact";
  if (typeof name !== "string" || !isKnownOperator(name))
    return { code: "invalid_operator", detail: `Unknown operator: '${formatFilterValue(name)}'` };
  if (ofOthers.has(name))
    return {
      code: "invalid_operator",
      detail: `The '${name}' operator is not valid for person properties.`,
    };
  if (isBlankKey(key)) return blankKeyProblem;
  return valueProblem(name, value, { fits: fitsOperator, where: formatFilterValue(key) });
}

export const blankKeyProblem: TestFault = {
  code: "invalid_value",
  detail: "Invalid property key: it must not be blank.",
};

/** True for a string without a visible character. */
export function isBlankKey(key: Json | undefined): boolean {
  return typeof key === "string" && key.trim() === "";
}

/**
 * Why an operator cannot test against a value, in PostHog's words; undefined when it can.
 *
 * @param how.where names the location of an invalid pattern.
 */
export function valueProblem(
  operator: OperatorName,
  value: Json | undefined,
  how: { fits: typeof fitsOperator; where: string },
): TestFault | undefined {
  if (!how.fits(operator, value)) {
    return valueForms[operator] === date
      ? { code: "invalid_date", detail: `Invalid date value: ${formatFilterValue(value)}` }
      : {
          code: "invalid_value",
          detail: `Invalid value for operator ${operator}: ${formatFilterValue(value)}`,
        };
  }
  if (operator !== "regex" && operator !== "not_regex") return undefined;
  const compiled = compilePattern(value as string);
  if (!("problem" in compiled)) return undefined;
  const reason = compiled.problem === "unsupported" ? ` (${compiled.reason})` : "";
  return { code: "invalid_input", detail: `${how.where}: invalid regex pattern${reason}` };
}

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
