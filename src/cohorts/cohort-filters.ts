/** The form of a cohort's definition (contract: management-api 6.2; flag-evaluation 13). Pure. */

import { InvalidField } from "../lib/errors.ts";
import { idOf, type Json, type JsonObject } from "../lib/json.ts";
import { readBehaviour } from "./behaviour-filter.ts";

const leafTypes = new Set(["person", "cohort", "behavioral"]);
const depthMax = 20;

/**
 * Checks `{"properties": {"type": "OR"|"AND", "values": [...]}}`, nested to any sensible depth.
 *
 * @throws {InvalidField} on `filters`.
 */
export function checkCohortFilters(filters: JsonObject | undefined): void {
  const properties = filters?.properties;
  if (!isObject(properties)) throw refused("Must contain a 'properties' key with type and values.");
  if (Object.keys(properties).length === 0) return;
  checkNode(properties, 0);
}

/**
 * The definition that cohorts of an older generation wrote as `groups`: a person belongs who meets all properties of
 * one of them.
 */
export function filtersOfGroups(groups: readonly Json[]): JsonObject {
  const values = groups.map((group) => {
    const properties = isObject(group) ? group.properties : undefined;
    if (!Array.isArray(properties)) throw refused("Only groups of properties can be used.");
    return {
      type: "AND",
      values: properties.map((filter) => (isObject(filter) ? { type: "person", ...filter } : filter)),
    };
  });
  return { properties: { type: "OR", values } };
}

/** Ids of the cohorts that a cohort's or flag's filters name, at any depth. */
export function cohortIdsIn(filters: Json): number[] {
  return leavesOf(filters)
    .filter((leaf) => leaf.type === "cohort")
    .map((leaf) => idOf(leaf.value))
    .filter((id) => id !== undefined);
}

/** Whether a definition asks what persons did. */
export function hasBehaviouralFilters(filters: Json): boolean {
  return leavesOf(filters).some((leaf) => leaf.type === "behavioral");
}

/** A sentence about the first condition on what persons did that cannot be computed; undefined when there is none. */
export function unusableBehaviour(filters: Json): string | undefined {
  return leavesOf(filters)
    .filter(({ type }) => type === "behavioral")
    .map(readBehaviour)
    .find((read) => typeof read === "string");
}

function checkNode(node: JsonObject, depth: number): void {
  if (depth > depthMax) throw refused(`Conditions are nested deeper than ${depthMax} levels.`);
  if (node.type === "AND" || node.type === "OR") {
    if (!Array.isArray(node.values)) throw refused("A group of conditions needs a list of values.");
    for (const value of node.values) {
      if (!isObject(value)) throw refused("Each condition must be an object.");
      checkNode(value, depth + 1);
    }
    return;
  }
  if (typeof node.type !== "string" || !leafTypes.has(node.type)) {
    throw refused(`Invalid condition type: ${JSON.stringify(node.type ?? null)}.`);
  }
  if (typeof node.key !== "string" || node.key === "") throw refused("Each condition needs a key.");
  if (node.type === "cohort" && idOf(node.value) === undefined) {
    throw refused("A cohort condition needs the id of a cohort.");
  }
  if (node.type !== "behavioral") return;
  const behaviour = readBehaviour(node);
  if (typeof behaviour === "string") throw refused(behaviour);
}

/** The conditions inside of nested groups: whatever has a type that is neither AND nor OR. */
function leavesOf(value: Json): JsonObject[] {
  if (Array.isArray(value)) return value.flatMap(leavesOf);
  if (!isObject(value)) return [];
  if (typeof value.type === "string" && leafTypes.has(value.type)) return [value];
  return Object.values(value).flatMap(leavesOf);
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const refused = (detail: string) => new InvalidField("filters", "invalid_input", detail);
