/**
 * Rules for condition sets: types of properties, operators, values, variants, cohorts.
 *
 * Expects filters of the right form. Source: contract, management-api 4.2 and 4.4.
 */

import { isJsonObject, type Json, type JsonObject, wholeNumber } from "../../lib/json/value.ts";
import {
  blankKeyProblem,
  type FilterValueError,
  fitsOperatorInFlag,
  formatFilterValue,
  isBlankKey,
  isKnownOperator,
  type RecordMisfit,
  valueProblem,
} from "../../lib/values/operators.ts";
import { filtersInvalid } from "./errors.ts";
import {
  type CohortDefinition,
  type CohortFacts,
  getGroups,
  getGroupType,
  getProperties,
  getVariants,
} from "./types.ts";

const listedValuesMax = 1_000;
/** 33.33 + 33.33 + 33.34 must count as 100 despite rounding. */
const sumTolerance = 1e-6;
const conditionLists = ["groups", "super_groups", "holdout_groups"] as const;
const personTypes = new Set<Json | undefined>(["person", "cohort", "flag"]);
const cohortOperators = new Set(["in", "not_in", "exact"]);

/** Conditions about persons use person, cohort and flag properties; conditions about groups those of their group type. */
export function checkPropertyTypes(filters: JsonObject, context: { hasEarlyAccessFeature?: boolean }): void {
  for (const group of getGroups(filters)) {
    const groupType = getGroupType(group, filters);
    if (groupType === null) {
      if (getProperties(group).every(({ type }) => personTypes.has(type))) continue;
      throw filtersInvalid("Filters are not valid (can only use person, cohort, and flag properties)");
    }
    if (context.hasEarlyAccessFeature) {
      throw filtersInvalid(
        "Cannot change this flag to a group-based when linked to an Early Access Feature.",
      );
    }
    const isOfGroup = ({ type, group_type_index: index }: JsonObject) =>
      type === "group" && index === groupType;
    if (getProperties(group).every(isOfGroup)) continue;
    throw filtersInvalid("Filters are not valid (can only use group properties)");
  }
}

/** @throws {InvalidFlagError} the percentages of existing variants do not add up to 100. */
export function checkVariantSum(filters: JsonObject): void {
  const variants = getVariants(filters);
  if (variants.length === 0) return;
  const sum = variants.reduce((total, variant) => total + (variant.rollout_percentage as number), 0);
  if (Math.abs(sum - 100) <= sumTolerance) return;
  throw filtersInvalid("Invalid variant definitions: Variant rollout percentages must sum to 100.");
}

/**
 * @param recordMisfit receives messages about values; without it they are rejected.
 * @throws {InvalidFlagError} the first condition with an unknown variant or an invalid property test.
 */
export function checkConditions(
  filters: JsonObject,
  cohorts: CohortFacts,
  recordMisfit?: RecordMisfit,
): void {
  const variantKeys = new Set(getVariants(filters).map(({ key }) => key));
  for (const group of getGroups(filters)) {
    if (!group.variant || variantKeys.has(group.variant)) continue;
    throw filtersInvalid("Filters are not valid (variant override does not exist)");
  }
  for (const list of conditionLists) {
    for (const [groupIndex, group] of getGroups({ groups: filters[list] ?? [] }).entries()) {
      for (const [index, property] of getProperties(group).entries()) {
        const path = `${list}[${groupIndex}].properties[${index}]`;
        if (list !== "groups" && property.type === "flag")
          throw filtersInvalid(`${path}.type must not be flag: only groups depend on other flags`);
        checkProperty(property, cohorts);
        const problem =
          property.type === "cohort" || property.type === "flag"
            ? undefined
            : getError(property, `${path}.value`);
        if (problem !== undefined) rejectOrRecord(problem, recordMisfit);
      }
    }
  }
}

/** @throws {InvalidFlagError} the first cohort in conditions that does not exist or cannot be used. */
export function checkCohorts(filters: JsonObject, cohorts: CohortFacts): void {
  for (const list of conditionLists) {
    for (const { type, value } of getGroups({ groups: filters[list] ?? [] }).flatMap(getProperties))
      if (type === "cohort") checkCohort(value, cohorts);
  }
}

function checkProperty(property: JsonObject, cohorts: CohortFacts): void {
  const { key, type, value } = property;
  checkOperator(property.operator, type);
  if (Array.isArray(value) && value.length > listedValuesMax) {
    throw filtersInvalid(
      `Property group expressions of type ${key} cannot contain more than ${listedValuesMax} values.`,
    );
  }
  if (type === "cohort") checkCohort(value, cohorts);
}

/** The value of another flag is compared with that flag's variants instead: see `checkDependencies`. */
function getError({ key, operator, value }: JsonObject, where: string): FilterValueError | undefined {
  if (isBlankKey(key)) return blankKeyProblem;
  const name = operator ?? "exact";
  if (typeof name !== "string" || !isKnownOperator(name))
    return { code: "invalid_operator", detail: `Unknown operator: '${formatFilterValue(name)}'` };
  return valueProblem(name, value, { fits: fitsOperatorInFlag, where });
}

/**
 * Stored conditions that match nothing because their values do not fit, one message each. Requires filters of the right
 * form.
 */
export function getMisfits(filters: JsonObject): string[] {
  return conditionLists.flatMap((list) =>
    getGroups({ groups: filters[list] ?? [] }).flatMap((group, groupIndex) =>
      getProperties(group).flatMap((property, index) => {
        if (property.type === "cohort" || property.type === "flag") return [];
        const problem = getError(property, `${list}[${groupIndex}].properties[${index}].value`);
        return problem === undefined ? [] : [problem.detail];
      }),
    ),
  );
}

/** @throws {InvalidFlagError} unless misfits are noted. */
export function rejectOrRecord(
  { detail, code }: FilterValueError,
  recordMisfit: RecordMisfit | undefined,
): void {
  if (recordMisfit === undefined) throw filtersInvalid(detail, code);
  recordMisfit(detail);
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

function checkCohort(value: Json | undefined, cohorts: CohortFacts): void {
  const cohort = Number.isSafeInteger(value) ? cohorts.find(value as number) : undefined;
  if (cohort === undefined) {
    throw filtersInvalid(
      `Cohort with id ${formatFilterValue(value)} does not exist`,
      "cohort_does_not_exist",
    );
  }
  for (const used of cohortAndNested(cohort, cohorts)) {
    if (typeof used === "number") {
      const detail = `Cohort '${cohort.name}' uses the cohort with id ${used}, which does not exist`;
      throw filtersInvalid(detail, "cohort_does_not_exist");
    }
    if (used.isStatic || !filtersIn(used).some(({ type }) => type === "behavioral")) continue;
    throw filtersInvalid(
      `Cohort '${used.name}' with filters on events cannot be used in feature flags.`,
      "behavioral_cohort_found",
    );
  }
}

/** A cohort and all cohorts nested in its definition; a static one has none. Missing ones as IDs. */
function cohortAndNested(cohort: CohortDefinition, cohorts: CohortFacts): (CohortDefinition | number)[] {
  const found = new Map<number, CohortDefinition | number>();
  const open: (CohortDefinition | number)[] = [cohort];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const id = typeof next === "number" ? next : next.id;
    if (found.has(id)) continue;
    found.set(id, next);
    if (typeof next === "number" || next.isStatic) continue;
    for (const { type, value } of filtersIn(next)) {
      const nested = type === "cohort" ? wholeNumber(value) : undefined;
      if (nested !== undefined) open.push(cohorts.find(nested) ?? nested);
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
