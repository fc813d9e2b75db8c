/**
 * Reading filters back from where they are stored: what responses show and what is derived from them.
 *
 * Source: contract, management-api 3.1, 3.2, 3.5 and 4.3.
 */

import { isJsonObject, type Json, type JsonObject } from "../json.ts";
import { type CohortFacts, groupsOf, propertiesOf } from "./types.ts";

/**
 * Filters with `groups`: a stored value without them is one condition set with the old top-level `properties`.
 */
export function withGroups(stored: Json | undefined): JsonObject {
  if (!isJsonObject(stored)) return everyone();
  if (Array.isArray(stored.groups)) return stored;
  const { properties, rollout_percentage, groups: _, ...others } = stored;
  const group = {
    properties: Array.isArray(properties) ? properties : [],
    rollout_percentage: typeof rollout_percentage === "number" ? rollout_percentage : null,
  };
  return { ...others, groups: [group] };
}

/** The filters of a flag that was created without any: rolled out to everyone. */
export function everyone(): JsonObject & { groups: JsonObject[] } {
  return { groups: [{ properties: [], rollout_percentage: null }] };
}

/** Filters as a response shows them: with groups, and with the present name of every cohort beside its id. */
export function renderFilters(stored: Json | undefined, cohorts: CohortFacts): JsonObject {
  const filters = withGroups(stored);
  return mapProperties(filters, "groups", (property) => {
    if (property.type !== "cohort") return property;
    const cohort = Number.isInteger(property.value) ? cohorts.find(property.value as number) : undefined;
    return { ...property, cohort_name: cohort?.name ?? null };
  });
}

/** True for one condition set without properties that is about persons. */
export function isSimpleFlag(stored: Json | undefined): boolean {
  const filters = withGroups(stored);
  const groups = groupsOf(filters);
  const [only] = groups;
  if (groups.length !== 1 || only === undefined || propertiesOf(only).length > 0) return false;
  const groupType = only.aggregation_group_type_index ?? filters.aggregation_group_type_index;
  return groupType === null || groupType === undefined;
}

/** The percentage of a simple flag as it was given, fractions included; null for other flags and for "everyone". */
export function rolloutPercentageOf(stored: Json | undefined): number | null {
  if (!isSimpleFlag(stored)) return null;
  const percentage = groupsOf(withGroups(stored))[0]?.rollout_percentage;
  return typeof percentage === "number" ? percentage : null;
}

/** Filters of a flag whose key changes: its early-access properties are named after the key and follow it. */
export function withRenamedEnrollment(filters: JsonObject, oldKey: string, newKey: string): JsonObject {
  const oldName = `$feature_enrollment/${oldKey}`;
  return mapProperties(filters, "super_groups", (property) =>
    property.key === oldName ? { ...property, key: `$feature_enrollment/${newKey}` } : property,
  );
}

/** A copy in which every property filter of the named condition list went through a function. */
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
