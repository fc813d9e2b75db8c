/**
 * Checks the operators of property filters and their values, for flags, cohorts, previews, person and event lists, and
 * evaluation. Pure.
 *
 * Source: contract, flag-evaluation 12 and management-api 4.4 (third round B1).
 */

import { formatNumber, toNumber } from "../json/exact.ts";
import type { Json, JsonObject } from "../json/value.ts";
import {
  dateForms,
  numberForms,
  type OperatorName,
  operatorTable,
  textForms,
  type ValueForm,
} from "../operator-table.ts";
import { compilePattern } from "../regex.ts";
import { parseDate, parseRelativeDate } from "./dates.ts";
import { parseVersion, wildcardRange } from "./versions.ts";

const olderNames = new Map<unknown, OperatorName>([
  ["min", "gte"],
  ["max", "lte"],
]);

/** A filter with the current name of its operator. */
export function normalizeOperator(filter: JsonObject): JsonObject {
  const operator = olderNames.get(filter.operator);
  return operator === undefined ? filter : { ...filter, operator };
}

export function isKnownOperator(operator: string): operator is OperatorName {
  return Object.hasOwn(operatorTable, operator);
}

/** The comparison of an operator on numbers, as in SQL; undefined for others. */
export function getSign(operator: string): string | undefined {
  const name = olderNames.get(operator) ?? operator;
  return isKnownOperator(name) ? operatorTable[name].sign : undefined;
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
} satisfies Record<ValueForm, (value: Json) => boolean>;

/** Whether a value has a form that the operator accepts. Patterns are not compiled. */
export function fitsOperator(operator: OperatorName, value: Json | undefined): boolean {
  return operatorTable[operator].forms.some((form) => form === "no value" || forms[form](value ?? null));
}

/**
 * For flags, PostHog accepts strings only with these operators, and numbers with the others (contract, management-api
 * 4.4).
 */
export function fitsOperatorInFlag(operator: OperatorName, value: Json | undefined): boolean {
  const { forms } = operatorTable[operator];
  const isTextOnly = forms === textForms || forms === numberForms;
  return fitsOperator(operator, value) && !(isTextOnly && isNumber(value ?? null));
}

/**
 * Receives the message about a condition that matches nothing, where it must not block the rest: imports keep and
 * report such conditions. Without it, saving throws.
 */
export type RecordMisfit = (detail: string) => void;

export interface FilterValueError {
  code: "invalid_operator" | "invalid_value" | "invalid_date" | "invalid_input";
  detail: string;
}

/** Why a property filter matches nothing: its key, operator or value cannot be used. */
export function validateFilterValue({ key, operator, value }: JsonObject): FilterValueError | undefined {
  const name = operator ?? "exact";
  if (typeof name !== "string" || !isKnownOperator(name))
    return { code: "invalid_operator", detail: `Unknown operator: '${formatFilterValue(name)}'` };
  if (operatorTable[name].type !== undefined)
    return {
      code: "invalid_operator",
      detail: `The '${name}' operator is not valid for person properties.`,
    };
  if (isBlankKey(key)) return blankKeyProblem;
  return valueProblem(name, value, { fits: fitsOperator, where: formatFilterValue(key) });
}

export const blankKeyProblem: FilterValueError = {
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
): FilterValueError | undefined {
  if (!how.fits(operator, value)) {
    return operatorTable[operator].forms === dateForms
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
