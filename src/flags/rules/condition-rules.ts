/**
 * What condition sets may say: types of properties, operators, values, variants, cohorts.
 *
 * Expects filters of the right form. Source: contract, management-api 4.2 and 4.4.
 */

import { isJsonObject, type Json, type JsonObject, wholeNumber } from "../../lib/json.ts";
import { isKnownOperator, textIn } from "../../lib/operators.ts";
import { compilePattern } from "../../lib/regex.ts";
import { parseDate } from "../operators/dates.ts";
import { parseRelativeDate } from "../operators/relative-dates.ts";
import { filtersInvalid } from "./flag-invalid.ts";
import {
  type CohortDefinition,
  type CohortFacts,
  groupsOf,
  groupTypeOf,
  propertiesOf,
  variantsOf,
} from "./types.ts";

const listedValuesMax = 1_000;
/** 33.33 + 33.33 + 33.34 must count as 100 however the additions are rounded. */
const sumTolerance = 1e-6;
const personTypes = new Set<Json | undefined>(["person", "cohort", "flag"]);
const textOperators = new Set(["regex", "not_regex", "icontains", "not_icontains", "gt", "gte", "lt", "lte"]);
const dateOperators = new Set(["is_date_exact", "is_date_before", "is_date_after"]);
const cohortOperators = new Set(["in", "not_in", "exact"]);

/** Conditions about persons use person, cohort and flag properties; conditions about groups those of their group type. */
export function checkPropertyTypes(filters: JsonObject, context: { hasEarlyAccessFeature?: boolean }): void {
  for (const group of groupsOf(filters)) {
    const groupType = groupTypeOf(group, filters);
    if (groupType === null) {
      if (propertiesOf(group).every(({ type }) => personTypes.has(type))) continue;
      throw filtersInvalid("Filters are not valid (can only use person, cohort, and flag properties)");
    }
    if (context.hasEarlyAccessFeature) {
      throw filtersInvalid(
        "Cannot change this flag to a group-based when linked to an Early Access Feature.",
      );
    }
    const isOfGroup = ({ type, group_type_index: index }: JsonObject) =>
      type === "group" && index === groupType;
    if (propertiesOf(group).every(isOfGroup)) continue;
    throw filtersInvalid("Filters are not valid (can only use group properties)");
  }
}

/** @throws {FlagInvalid} there are variants, and their shares do not make 100 percent. */
export function checkVariantSum(filters: JsonObject): void {
  const variants = variantsOf(filters);
  if (variants.length === 0) return;
  const sum = variants.reduce((total, variant) => total + (variant.rollout_percentage as number), 0);
  if (Math.abs(sum - 100) <= sumTolerance) return;
  throw filtersInvalid("Invalid variant definitions: Variant rollout percentages must sum to 100.");
}

/** @throws {FlagInvalid} the first condition that names an unknown variant, or whose property cannot be tested. */
export function checkConditions(filters: JsonObject, cohorts: CohortFacts): void {
  const variantKeys = new Set(variantsOf(filters).map(({ key }) => key));
  for (const [groupIndex, group] of groupsOf(filters).entries()) {
    if (group.variant && !variantKeys.has(group.variant)) {
      throw filtersInvalid("Filters are not valid (variant override does not exist)");
    }
    for (const [index, property] of propertiesOf(group).entries()) {
      checkProperty(property, cohorts, `groups[${groupIndex}].properties[${index}]`);
    }
  }
}

function checkProperty(property: JsonObject, cohorts: CohortFacts, path: string): void {
  const { key, type, value } = property;
  const operator = typeof property.operator === "string" ? property.operator : "exact";
  checkOperator(property.operator, type);
  if (Array.isArray(value) && value.length > listedValuesMax) {
    throw filtersInvalid(
      `Property group expressions of type ${key} cannot contain more than ${listedValuesMax} values.`,
    );
  }
  if (type === "cohort") checkCohort(value, cohorts);
  if (dateOperators.has(operator)) checkDate(value);
  if (textOperators.has(operator) && typeof value !== "string") {
    throw filtersInvalid(`Invalid value for operator ${operator}: ${textIn(value)}`, "invalid_value");
  }
  if (operator === "regex" || operator === "not_regex") checkPattern(value as string, `${path}.value`);
}

function checkOperator(operator: Json | undefined, type: Json | undefined): void {
  if (type === "flag") {
    if (operator === "flag_evaluates_to") return;
    throw filtersInvalid("Flag properties must use the 'flag_evaluates_to' operator");
  }
  if (typeof operator !== "string") return;
  if (!isKnownOperator(operator)) throw filtersInvalid(`Unknown operator: '${operator}'`, "invalid_operator");
  if (type === "cohort") {
    if (cohortOperators.has(operator)) return;
    throw filtersInvalid(
      `The '${operator}' operator is not valid for cohort properties, use 'in' or 'not_in'.`,
      "invalid_operator",
    );
  }
  const owner = operator === "flag_evaluates_to" ? "flag" : "cohort";
  if (operator === "in" || operator === "not_in" || operator === "flag_evaluates_to") {
    throw filtersInvalid(
      `The '${operator}' operator is only valid for ${owner} properties, not '${type}' properties.`,
      "invalid_operator",
    );
  }
}

function checkDate(value: Json | undefined): void {
  const isReadable =
    typeof value === "string" && (parseRelativeDate(value) ?? parseDate(value)) !== undefined;
  if (!isReadable) throw filtersInvalid(`Invalid date value: ${textIn(value)}`, "invalid_date");
}

function checkPattern(pattern: string, path: string): void {
  const compiled = compilePattern(pattern);
  if (!("problem" in compiled)) return;
  const reason = compiled.problem === "unsupported" ? ` (${compiled.reason})` : "";
  throw filtersInvalid(`${path}: invalid regex pattern${reason}`);
}

function checkCohort(value: Json | undefined, cohorts: CohortFacts): void {
  const cohort = Number.isSafeInteger(value) ? cohorts.find(value as number) : undefined;
  if (cohort === undefined) {
    throw filtersInvalid(`Cohort with id ${textIn(value)} does not exist`, "cohort_does_not_exist");
  }
  for (const used of cohortAndNested(cohort, cohorts)) {
    if (used.isStatic || !filtersIn(used).some(({ type }) => type === "behavioral")) continue;
    throw filtersInvalid(
      `Cohort '${used.name}' with filters on events cannot be used in feature flags.`,
      "behavioral_cohort_found",
    );
  }
}

/** A cohort and all cohorts its definition leads to; a static one leads nowhere. */
function cohortAndNested(cohort: CohortDefinition, cohorts: CohortFacts): CohortDefinition[] {
  const found = new Map<number, CohortDefinition>();
  const open = [cohort];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (found.has(next.id)) continue;
    found.set(next.id, next);
    if (next.isStatic) continue;
    for (const { type, value } of filtersIn(next)) {
      const id = type === "cohort" ? wholeNumber(value) : undefined;
      const nested = id === undefined ? undefined : cohorts.find(id);
      if (nested !== undefined) open.push(nested);
    }
  }
  return [...found.values()];
}

/** The property filters of a cohort's definition, at any depth. */
function filtersIn(cohort: CohortDefinition): JsonObject[] {
  const filters: JsonObject[] = [];
  const open: Json[] = [cohort.filters?.properties ?? null];
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (!isJsonObject(node)) continue;
    if (Array.isArray(node.values)) open.push(...node.values);
    else filters.push(node);
  }
  return filters;
}
