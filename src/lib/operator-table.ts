/**
 * The operators of property filters. Flags, cohorts, events, definitions for SDKs and the console read this table; tests
 * are in `src/flags/operators/matchers.ts`, SQL is in `src/events/property-sql.ts`, labels are in the console's messages.
 * No imports: the page loads this file.
 *
 * Source: contract, flag-evaluation 12 and management-api 4.4 (third round B1).
 */

/** Form of an operator's value. */
export type ValueForm =
  | "string"
  | "number"
  | "numeric string"
  | "boolean"
  | "list of values"
  | "list of strings"
  | "regex"
  | "date"
  | "relative date"
  | "semver"
  | "semver pattern"
  | "ordered range"
  | "no value";

interface OperatorRow {
  forms: readonly ValueForm[];
  /** Type of the filters that it belongs to; absent: properties. */
  type?: "cohort" | "flag";
  /** Comparison of numbers, as in SQL. */
  sign?: string;
  /** Supported by every SDK that evaluates locally: with another one, some reject all definitions. */
  isKnownToSdks?: true;
  /** Has a form in SQL, for properties of events. */
  isForEvents?: true;
}

const equality: readonly ValueForm[] = ["string", "number", "boolean", "list of values"];
export const textForms: readonly ValueForm[] = ["string", "number"];
export const numberForms: readonly ValueForm[] = ["number", "numeric string"];
export const dateForms: readonly ValueForm[] = ["date", "relative date"];

const everywhere = { isKnownToSdks: true, isForEvents: true } as const;
const inFlags = { isKnownToSdks: true } as const;
const onEvents = { isForEvents: true } as const;

const table = {
  exact: { forms: equality, ...everywhere },
  is_not: { forms: equality, ...everywhere },
  is_set: { forms: ["no value"], ...everywhere },
  is_not_set: { forms: ["no value"], ...everywhere },
  icontains: { forms: textForms, ...everywhere },
  not_icontains: { forms: textForms, ...everywhere },
  icontains_multi: { forms: ["list of strings"], ...onEvents },
  not_icontains_multi: { forms: ["list of strings"], ...onEvents },
  starts_with: { forms: textForms, ...everywhere },
  not_starts_with: { forms: textForms, ...everywhere },
  ends_with: { forms: textForms, ...everywhere },
  not_ends_with: { forms: textForms, ...everywhere },
  regex: { forms: ["regex"], ...everywhere },
  not_regex: { forms: ["regex"], ...everywhere },
  gt: { forms: numberForms, sign: ">", ...everywhere },
  gte: { forms: numberForms, sign: ">=", ...everywhere },
  lt: { forms: numberForms, sign: "<", ...everywhere },
  lte: { forms: numberForms, sign: "<=", ...everywhere },
  between: { forms: ["ordered range"], ...onEvents },
  not_between: { forms: ["ordered range"], ...onEvents },
  is_date_exact: { forms: dateForms },
  is_date_before: { forms: dateForms, ...inFlags },
  is_date_after: { forms: dateForms, ...inFlags },
  semver_eq: { forms: ["semver"], ...inFlags },
  semver_neq: { forms: ["semver"], ...inFlags },
  semver_gt: { forms: ["semver"], ...inFlags },
  semver_gte: { forms: ["semver"], ...inFlags },
  semver_lt: { forms: ["semver"], ...inFlags },
  semver_lte: { forms: ["semver"], ...inFlags },
  semver_tilde: { forms: ["semver"], ...inFlags },
  semver_caret: { forms: ["semver"], ...inFlags },
  semver_wildcard: { forms: ["semver pattern"], ...inFlags },
  // Cohort IDs are looked up, flag values compared with the variants of the flag; each has its own rule.
  in: { forms: ["number", "numeric string"], type: "cohort" },
  not_in: { forms: ["number", "numeric string"], type: "cohort" },
  flag_evaluates_to: { forms: ["boolean", "string"], type: "flag" },
} as const satisfies Record<string, OperatorRow>;

export type OperatorName = keyof typeof table;

export const operatorTable: Readonly<Record<OperatorName, OperatorRow>> = table;
export const operatorNames = Object.keys(table) as readonly OperatorName[];

/** The names of the operators whose row passes a test. */
export function operatorsWhere(test: (row: OperatorRow) => boolean): ReadonlySet<string> {
  return new Set(operatorNames.filter((name) => test(operatorTable[name])));
}

/** Operators whose value is a list, or may be one. */
export const listOperators = operatorsWhere(({ forms }) => forms.some((form) => form.startsWith("list")));

/** Operators without a value. */
export const valuelessOperators = operatorsWhere(({ forms }) => forms.includes("no value"));
