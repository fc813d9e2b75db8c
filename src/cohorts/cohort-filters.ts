/** The form of a cohort's definition (contract: management-api 6.2; flag-evaluation 13). Pure. */

import { InvalidField } from "../lib/errors.ts";
import { exactProperty } from "../lib/exact-values.ts";
import { isJsonObject, type Json, type JsonObject, wholeNumber } from "../lib/json.ts";
import { type NoteMisfit, testFault } from "../lib/operator-values.ts";
import { textIn, withPresentOperator } from "../lib/operators.ts";
import { readBehaviour } from "./behaviour-filter.ts";

const leafTypes = new Set(["person", "cohort", "behavioral"]);
const depthMax = 20;

/**
 * Checks `{"properties": {"type": "OR"|"AND", "values": [...]}}`, nested to any sensible depth.
 *
 * @param noteMisfit takes what is wrong with values; without it they are rejected.
 * @returns the filters as they are stored: with present names of operators, and ids of cohorts as numbers.
 * @throws {InvalidField} on `filters`.
 */
export function checkedCohortFilters(filters: JsonObject | undefined, noteMisfit?: NoteMisfit): JsonObject {
  const properties = filters?.properties;
  if (!isJsonObject(properties)) throw refused("Must contain a 'properties' key with type and values.");
  if (Object.keys(properties).length === 0) return filters!;
  return { ...filters, properties: checkedNode(properties, 0, noteMisfit) };
}

/**
 * The definition that cohorts of an older generation wrote as `groups`: a person belongs who meets all properties of
 * one of them.
 */
export function filtersOfGroups(groups: readonly Json[]): JsonObject {
  const values = groups.map((group) => {
    const properties = isJsonObject(group) ? group.properties : undefined;
    if (!Array.isArray(properties)) throw refused("Only groups of properties can be used.");
    return {
      type: "AND",
      values: properties.map((filter) => (isJsonObject(filter) ? { type: "person", ...filter } : filter)),
    };
  });
  return { properties: { type: "OR", values } };
}

/** Ids of the cohorts that a cohort's or flag's filters name, at any depth. */
export function cohortIdsIn(filters: Json): number[] {
  return leavesOf(filters)
    .filter((leaf) => leaf.type === "cohort")
    .map((leaf) => wholeNumber(leaf.value))
    .filter((id) => id !== undefined);
}

/** Whether a definition has any condition. */
export function hasConditions(filters: Json): boolean {
  return leavesOf(filters).length > 0;
}

/** Whether a definition asks what persons did. */
export function hasBehaviouralFilters(filters: Json): boolean {
  return leavesOf(filters).some((leaf) => leaf.type === "behavioral");
}

/** A sentence about the first condition that imports cannot keep; undefined when there is none. */
export function unusableCondition(filters: Json): string | undefined {
  return leavesOf(filters)
    .map((leaf) => faultOf(withPresentOperator(leaf)))
    .find((fault) => fault !== undefined && !isMisfit(fault))?.message;
}

/** A definition in which values have the form that their operator takes, where that means the same. */
export function withExactConditions(filters: JsonObject): JsonObject {
  const exact = (node: Json): Json => {
    if (!isJsonObject(node)) return node;
    if (Array.isArray(node.values)) return { ...node, values: node.values.map(exact) };
    return node.type === "person" ? exactProperty(node) : node;
  };
  return filters.properties === undefined ? filters : { ...filters, properties: exact(filters.properties) };
}

/** Stored conditions that match nothing because their operators or values do not fit, one sentence each. */
export function misfitsOf(filters: Json): string[] {
  return leavesOf(filters).flatMap((leaf) => faultOf(withPresentOperator(leaf))?.message ?? []);
}

/** The operator is known, and matches nothing with this value. */
const isMisfit = ({ code }: InvalidField): boolean => code === "invalid_value" || code === "invalid_date";

function checkedNode(node: JsonObject, depth: number, noteMisfit: NoteMisfit | undefined): JsonObject {
  if (depth > depthMax) throw refused(`Conditions are nested deeper than ${depthMax} levels.`);
  if (node.type === "AND" || node.type === "OR") {
    if (!Array.isArray(node.values)) throw refused("A group of conditions needs a list of values.");
    const values = node.values.map((value) => {
      if (!isJsonObject(value)) throw refused("Each condition must be an object.");
      return checkedNode(value, depth + 1, noteMisfit);
    });
    return { ...node, values };
  }
  if (typeof node.type !== "string" || !leafTypes.has(node.type)) {
    throw refused(`Invalid condition type: ${JSON.stringify(node.type ?? null)}.`);
  }
  if (typeof node.key !== "string" || node.key === "") throw refused("Each condition needs a key.");
  const condition = withPresentOperator(node);
  const fault = faultOf(condition);
  if (fault !== undefined && (noteMisfit === undefined || !isMisfit(fault))) throw fault;
  if (fault !== undefined) noteMisfit?.(fault.message);
  if (node.type !== "cohort") return condition;
  const id = wholeNumber(node.value);
  if (id === undefined) throw refused("A cohort condition needs the id of a cohort.");
  return { ...condition, value: id };
}

/** Why nobody could ever meet a condition: what it tests with is not known, or cannot be run. */
function faultOf(condition: JsonObject): InvalidField | undefined {
  const { type, operator } = condition;
  if (type === "behavioral") {
    const behaviour = readBehaviour(condition);
    return typeof behaviour === "string" ? refused(behaviour) : undefined;
  }
  if (type === "person") {
    const fault = testFault(condition);
    return fault && refused(fault.detail, fault.code);
  }
  const name = operator ?? "in";
  if (ofCohorts.has(name)) return undefined;
  const detail = `The '${textIn(name)}' operator is not valid for cohort properties, use 'in' or 'not_in'.`;
  return refused(detail, "invalid_operator");
}

const ofCohorts = new Set<Json>(["in", "not_in", "exact"]);

/** The conditions inside of nested groups: whatever has a type that is neither AND nor OR. */
function leavesOf(value: Json): JsonObject[] {
  if (Array.isArray(value)) return value.flatMap(leavesOf);
  if (!isJsonObject(value)) return [];
  if (typeof value.type === "string" && leafTypes.has(value.type)) return [value];
  return Object.values(value).flatMap(leavesOf);
}

const refused = (detail: string, code = "invalid_input") => new InvalidField("filters", code, detail);
