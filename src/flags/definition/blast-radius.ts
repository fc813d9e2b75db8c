/** The question "how many would this condition reach?", as it is asked. Source: contract, management-api 5.17. */

import { compilePattern } from "../evaluation/regex.ts";
import { isKnownOperator } from "../evaluation/value-tests.ts";
import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import { FlagInvalid, filtersInvalid } from "./flag-invalid.ts";

export interface BlastRadiusQuestion {
  /** Joined by AND; empty for everyone. Rollout percentages play no part. */
  filters: JsonObject[];
  /** Groups of which type are counted; null for persons. */
  groupTypeIndex: number | null;
}

/**
 * Reads the body of a blast-radius request.
 *
 * @throws {FlagInvalid} no condition (attr null), a filter about another group type (attr null), filters that
 *   nothing can be tested with (attr `filters`).
 */
export function parseBlastRadius(body: Readonly<Record<string, unknown>>): BlastRadiusQuestion {
  if (!Object.hasOwn(body, "condition")) throw refused("Missing condition for which to get blast radius");
  const filters = filtersOf(body.condition);
  const groupTypeIndex = typeof body.group_type_index === "number" ? body.group_type_index : null;
  if (groupTypeIndex !== null && !filters.every((filter) => isAboutGroup(filter, groupTypeIndex))) {
    throw refused("Invalid group type index for feature flag condition.");
  }
  return { filters, groupTypeIndex };
}

function filtersOf(condition: unknown): JsonObject[] {
  if (condition === null || condition === undefined) return [];
  if (!isJsonObject(condition)) throw filtersInvalid("condition must be an object");
  const properties: Json = condition.properties ?? [];
  if (!Array.isArray(properties)) throw filtersInvalid("properties must be a list");
  return properties.map((filter, index) => {
    if (!isJsonObject(filter)) throw filtersInvalid(`properties[${index}] must be an object`);
    checkTestable(filter, `properties[${index}]`);
    return filter;
  });
}

/** Looser than the rules for saved filters: a preview is asked for while the condition is being written. */
function checkTestable({ key, type, operator, value }: JsonObject, path: string): void {
  if (typeof key !== "string" && typeof key !== "number") throw filtersInvalid(`${path}.key is required`);
  if (type === "flag" || operator === undefined || operator === null) return;
  if (typeof operator !== "string" || !isKnownOperator(operator)) {
    throw filtersInvalid(`Unknown operator: '${operator}'`, "invalid_operator");
  }
  const isPattern = operator === "regex" || operator === "not_regex";
  if (isPattern && typeof value === "string" && "problem" in compilePattern(value)) {
    throw filtersInvalid(`${path}.value: invalid regex pattern`);
  }
}

function isAboutGroup(filter: JsonObject, groupTypeIndex: number): boolean {
  return filter.key === "$group_key" || filter.type === "flag" || filter.group_type_index === groupTypeIndex;
}

function refused(detail: string): FlagInvalid {
  return new FlagInvalid("invalid_input", detail, null);
}
