/** The schema of a cohort's definition (contract: management-api 6.2; flag-evaluation 13). Pure. */

import { InvalidFieldError } from "../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject, wholeNumber } from "../lib/json/value.ts";
import {
  exactProperty,
  formatFilterValue,
  normalizeOperator,
  type RecordMisfit,
  validateFilterValue,
} from "../lib/values/operators.ts";
import { readBehavior } from "./behavior-filter.ts";

const leafTypes = new Set(["person", "cohort", "behavioral"]);
const depthMax = 20;

/**
 * Validates `{"properties": {"type": "OR"|"AND", "values": [...]}}`, nested up to `depthMax`.
 * @param recordMisfit receives messages about values that match nothing; without it they are rejected
 * @returns the filters to store: with current names of operators, and cohort IDs as numbers
 * @throws {InvalidFieldError} on `filters`
 */
export function checkedCohortFilters(
  filters: JsonObject | undefined,
  recordMisfit?: RecordMisfit,
): JsonObject {
  const properties = filters?.properties;
  if (!isJsonObject(properties)) throw rejected("Must contain a 'properties' key with type and values.");
  if (Object.keys(properties).length === 0) return filters!;
  return { ...filters, properties: checkedNode(properties, 0, recordMisfit) };
}

/** Converts legacy `groups`: a person matches if all properties of one group match. */
export function filtersOfGroups(groups: readonly Json[]): JsonObject {
  const values = groups.map((group) => {
    const properties = isJsonObject(group) ? group.properties : undefined;
    if (!Array.isArray(properties)) throw rejected("Expected groups of properties.");
    return {
      type: "AND",
      values: properties.map((filter) => (isJsonObject(filter) ? { type: "person", ...filter } : filter)),
    };
  });
  return { properties: { type: "OR", values } };
}

/** IDs of the cohorts referenced by filters of a cohort or flag, at any depth. */
export function cohortIdsIn(filters: Json): number[] {
  return getLeaves(filters)
    .filter((leaf) => leaf.type === "cohort")
    .map((leaf) => wholeNumber(leaf.value))
    .filter((id) => id !== undefined);
}

/** Whether a definition has any condition. */
export function hasConditions(filters: Json): boolean {
  return getLeaves(filters).length > 0;
}

/** Whether a definition has conditions on performed events. */
export function hasBehavioralFilters(filters: Json): boolean {
  return getLeaves(filters).some((leaf) => leaf.type === "behavioral");
}

/** An error message for the first condition that imports cannot keep; undefined if all can be kept. */
export function unusableCondition(filters: Json): string | undefined {
  return getLeaves(filters)
    .map((leaf) => getError(normalizeOperator(leaf)))
    .find((problem) => problem !== undefined && !isMisfit(problem))?.message;
}

/** Normalizes values to the form that their operator requires, if the meaning stays the same. */
export function withExactConditions(filters: JsonObject): JsonObject {
  const exact = (node: Json): Json => {
    if (!isJsonObject(node)) return node;
    if (Array.isArray(node.values)) return { ...node, values: node.values.map(exact) };
    return node.type === "person" ? exactProperty(node) : node;
  };
  return filters.properties === undefined ? filters : { ...filters, properties: exact(filters.properties) };
}

/** Error messages for stored conditions that match nothing because of their operators or values. */
export function getMisfits(filters: Json): string[] {
  return getLeaves(filters).flatMap((leaf) => getError(normalizeOperator(leaf))?.message ?? []);
}

/** The operator is known but matches nothing with this value. */
const isMisfit = ({ code }: InvalidFieldError): boolean =>
  code === "invalid_value" || code === "invalid_date";

function checkedNode(node: JsonObject, depth: number, recordMisfit: RecordMisfit | undefined): JsonObject {
  if (depth > depthMax) throw rejected(`Conditions are nested deeper than ${depthMax} levels.`);
  if (node.type === "AND" || node.type === "OR") {
    if (!Array.isArray(node.values)) throw rejected("A group of conditions requires a list of values.");
    const values = node.values.map((value) => {
      if (!isJsonObject(value)) throw rejected("Each condition must be an object.");
      return checkedNode(value, depth + 1, recordMisfit);
    });
    return { ...node, values };
  }
  if (typeof node.type !== "string" || !leafTypes.has(node.type)) {
    throw rejected(`Invalid condition type: ${JSON.stringify(node.type ?? null)}.`);
  }
  if (typeof node.key !== "string" || node.key === "") throw rejected("Each condition requires a key.");
  const condition = normalizeOperator(node);
  const problem = getError(condition);
  if (problem !== undefined && (recordMisfit === undefined || !isMisfit(problem))) throw problem;
  if (problem !== undefined) recordMisfit?.(problem.message);
  if (node.type !== "cohort") return condition;
  const id = wholeNumber(node.value);
  if (id === undefined) throw rejected("A cohort condition requires a cohort id.");
  return { ...condition, value: id };
}

/** Why a condition can never match: an unknown operator, or an invalid value. */
function getError(condition: JsonObject): InvalidFieldError | undefined {
  const { type, operator } = condition;
  if (type === "behavioral") {
    const behavior = readBehavior(condition);
    return typeof behavior === "string" ? rejected(behavior) : undefined;
  }
  if (type === "person") {
    const problem = validateFilterValue(condition);
    return problem && rejected(problem.detail, problem.code);
  }
  const name = operator ?? "in";
  if (ofCohorts.has(name)) return undefined;
  const detail = `The '${formatFilterValue(name)}' operator is not valid for cohort properties, use 'in' or 'not_in'.`;
  return rejected(detail, "invalid_operator");
}

const ofCohorts = new Set<Json>(["in", "not_in", "exact"]);

/** The conditions at any depth: objects whose type is not AND or OR. */
function getLeaves(value: Json): JsonObject[] {
  if (Array.isArray(value)) return value.flatMap(getLeaves);
  if (!isJsonObject(value)) return [];
  if (typeof value.type === "string" && leafTypes.has(value.type)) return [value];
  return Object.values(value).flatMap(getLeaves);
}

const rejected = (detail: string, code = "invalid_input") => new InvalidFieldError("filters", code, detail);
