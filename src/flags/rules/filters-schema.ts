/**
 * Schema of the known members of `filters`: types and ranges, before any rule checks their meaning.
 *
 * After this check the other rules may read every known member without checking its type again; null counts as absent,
 * and unknown members may be anything. Source: contract, management-api 4.1 and the last row of 4.4; decision 11.
 */

import { formatNumber } from "../../lib/json/exact.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { filtersInvalid } from "./errors.ts";

const variantKeyLengthMax = 400;
const variantKeyCharacters = /^[a-zA-Z0-9_./-]+$/;
/** Storage limit; a project may have any number of group types. */
const groupTypeIndexMax = 2 ** 31 - 1;
/** The maximum depth of a body. */
const nestingMax = 200;

/** @throws {InvalidFlagError} `invalid_input`, with the path and the problem. */
export function checkShape(filters: JsonObject): void {
  checkNesting(filters, 0);
  for (const name of ["groups", "super_groups", "holdout_groups"]) {
    if (isGiven(filters[name])) checkConditions(filters[name], name);
  }
  checkGroupTypeIndex(filters.aggregation_group_type_index, "aggregation_group_type_index");
  for (const name of ["feature_enrollment", "early_exit"]) {
    if (isGiven(filters[name]) && typeof filters[name] !== "boolean") throw wrong(name, "must be a boolean");
  }
  checkHoldout(filters.holdout);
  checkVariants(filters.multivariate);
}

function checkConditions(conditions: Json | undefined, path: string): void {
  if (!Array.isArray(conditions)) throw wrong(path, "must be a list");
  for (const [index, condition] of conditions.entries()) checkCondition(condition, `${path}[${index}]`);
}

function checkCondition(condition: Json, path: string): void {
  if (!isJsonObject(condition)) throw wrong(path, "must be an object");
  if (isGiven(condition.rollout_percentage)) {
    checkPercentage(condition.rollout_percentage, `${path}.rollout_percentage`);
  }
  if (isGiven(condition.variant) && typeof condition.variant !== "string") {
    throw wrong(`${path}.variant`, "must be a string");
  }
  checkGroupTypeIndex(condition.aggregation_group_type_index, `${path}.aggregation_group_type_index`);
  if (!isGiven(condition.properties)) return;
  if (!Array.isArray(condition.properties)) throw wrong(`${path}.properties`, "must be a list");
  for (const [index, property] of condition.properties.entries()) {
    checkProperty(property, `${path}.properties[${index}]`);
  }
}

function checkProperty(property: Json, path: string): void {
  if (!isJsonObject(property)) throw wrong(path, "must be an object");
  const { key, type, operator, negation } = property;
  if (key === undefined) throw wrong(`${path}.key`, "is required");
  if (typeof key !== "string" && typeof key !== "number") throw wrong(`${path}.key`, "must be a string");
  if (isGiven(type) && typeof type !== "string") throw wrong(`${path}.type`, "must be a string");
  if (isGiven(operator) && typeof operator !== "string") throw wrong(`${path}.operator`, "must be a string");
  if (isGiven(negation) && typeof negation !== "boolean")
    throw wrong(`${path}.negation`, "must be a boolean");
  checkGroupTypeIndex(property.group_type_index, `${path}.group_type_index`);
}

function checkHoldout(holdout: Json | undefined): void {
  if (!isGiven(holdout)) return;
  if (!isJsonObject(holdout)) throw wrong("holdout", "must be an object");
  if (!Number.isInteger(holdout.id)) throw wrong("holdout.id", "must be an integer");
  checkPercentage(holdout.exclusion_percentage, "holdout.exclusion_percentage");
}

function checkVariants(multivariate: Json | undefined): void {
  if (!isGiven(multivariate)) return;
  if (!isJsonObject(multivariate)) throw wrong("multivariate", "must be an object");
  const { variants } = multivariate;
  if (!isGiven(variants)) return;
  if (!Array.isArray(variants)) throw wrong("multivariate.variants", "must be a list");
  const keys = new Set<string>();
  for (const [index, variant] of variants.entries()) {
    const path = `multivariate.variants[${index}]`;
    if (!isJsonObject(variant)) throw wrong(path, "must be an object");
    const key = checkVariantKey(variant.key, `${path}.key`);
    if (keys.has(key)) throw wrong(`${path}.key`, `must be unique, got '${key}' twice`);
    keys.add(key);
    checkPercentage(variant.rollout_percentage, `${path}.rollout_percentage`);
  }
}

function checkVariantKey(key: Json | undefined, path: string): string {
  if (key === undefined) throw wrong(path, "is required");
  if (typeof key !== "string" || key === "") throw wrong(path, "must be a non-empty string");
  if (key.length > variantKeyLengthMax)
    throw wrong(path, `must have at most ${variantKeyLengthMax} characters`);
  if (!variantKeyCharacters.test(key)) {
    throw wrong(path, "may contain only letters, numbers, hyphens, underscores, dots and slashes");
  }
  return key;
}

function checkPercentage(percentage: Json | undefined, path: string): void {
  const number = typeof percentage === "number" ? percentage : Number(formatNumber(percentage));
  if (Number.isNaN(number)) throw wrong(path, "must be a number");
  if (!(number >= 0 && number <= 100)) throw wrong(path, `must be between 0 and 100, got ${number}`);
}

function checkGroupTypeIndex(index: Json | undefined, path: string): void {
  if (!isGiven(index)) return;
  if (!Number.isInteger(index)) throw wrong(path, "must be an integer");
  const number = index as number;
  if (number < 0 || number > groupTypeIndexMax)
    throw wrong(path, `must be between 0 and ${groupTypeIndexMax}, got ${number}`);
}

/** Serializing a value nested thousands of levels deep would exhaust the call stack. */
function checkNesting(value: Json, depth: number): void {
  if (typeof value !== "object" || value === null) return;
  if (depth > nestingMax) throw filtersInvalid(`filters must not be nested deeper than ${nestingMax} levels`);
  for (const member of Object.values(value)) checkNesting(member, depth + 1);
}

function isGiven<T extends Json>(value: T | null | undefined): value is T {
  return value !== undefined && value !== null;
}

function wrong(path: string, problem: string): Error {
  return filtersInvalid(`${path} ${problem}`);
}
