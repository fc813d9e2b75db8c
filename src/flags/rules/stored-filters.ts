/**
 * Reads stored filters: for responses, and for values derived from them.
 *
 * Source: contract, management-api 3.1, 3.2 and 3.5; decisions 10, 11 and 13.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { type CohortFacts, getGroups, getGroupType, getProperties } from "./types.ts";

/** Filters with `groups`, a list: without valid ones there is no condition set, and the flag is off for every user. */
export function withGroups(stored: Json | undefined): JsonObject {
  if (!isJsonObject(stored)) return { groups: [] };
  return Array.isArray(stored.groups) ? stored : { ...stored, groups: [] };
}

/** Filters for a response: as stored, with the current name of every cohort next to its ID. */
export function renderFilters(stored: JsonObject, cohorts: CohortFacts): JsonObject {
  return mapProperties(stored, "groups", (property) => {
    if (property.type !== "cohort") return property;
    const cohort = Number.isInteger(property.value) ? cohorts.find(property.value as number) : undefined;
    return { ...property, cohort_name: cohort?.name ?? null };
  });
}

/** True for one condition set without properties that is about persons. */
export function isSimpleFlag(stored: Json | undefined): boolean {
  const filters = withGroups(stored);
  const groups = getGroups(filters);
  const [only] = groups;
  if (groups.length !== 1 || only === undefined || getProperties(only).length > 0) return false;
  return getGroupType(only, filters) === null;
}

/**
 * The percentage of the only condition set, rounded to an integer, 100 when it has none; 0 for a flag without condition
 * sets, null for one with several (contract, decision 10).
 */
export function getRolloutPercentage(stored: Json | undefined): number | null {
  const [only, ...others] = getGroups(withGroups(stored));
  if (only === undefined) return 0;
  return others.length > 0 ? null : Math.round(toPercentage(only));
}

/** The rollout percentage of a condition set; 100 by default. */
export function toPercentage({ rollout_percentage: percentage }: JsonObject): number {
  return typeof percentage === "number" ? percentage : 100;
}

/** Filters of a flag whose key changes: its early-access properties contain the key and are renamed. */
export function withRenamedEnrollment(filters: JsonObject, oldKey: string, newKey: string): JsonObject {
  const oldName = `$feature_enrollment/${oldKey}`;
  return mapProperties(filters, "super_groups", (property) =>
    property.key === oldName ? { ...property, key: `$feature_enrollment/${newKey}` } : property,
  );
}

/** A copy with every property filter of the named condition list mapped by a function. */
export function mapProperties(
  filters: JsonObject,
  list: "groups" | "super_groups" | "holdout_groups",
  change: (property: JsonObject) => JsonObject,
): JsonObject {
  const groups = filters[list];
  if (!Array.isArray(groups)) return filters;
  return {
    ...filters,
    [list]: groups.map((group) => {
      if (!isJsonObject(group) || !Array.isArray(group.properties)) return group;
      return {
        ...group,
        properties: group.properties.map((property) =>
          isJsonObject(property) ? change(property) : property,
        ),
      };
    }),
  };
}
