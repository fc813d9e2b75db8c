/**
 * What a flag is, for everyone in this room.
 *
 * Members inside `filters` keep the names of the wire, because filters are stored, returned and served as they are.
 * Source: contract, management-api 3.1 and 4.1.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";

/** A flag as evaluation, local evaluation and status need it; what was never set is null and counts as off. */
export interface FlagDefinition {
  id: number;
  key: string;
  /** The description; the wire calls it `name`. */
  name: string;
  /** Stored filters. May be of any shape in imported data; whoever reads them must expect that. */
  filters: JsonObject;
  active: boolean;
  deleted: boolean;
  version: number;
  ensureExperienceContinuity: boolean | null;
  hasEncryptedPayloads: boolean | null;
  /** `all`, `client`, `server`; anything else counts as `all`. */
  evaluationRuntime: string | null;
  evaluationTags: readonly string[];
  /** `device_id`, or else by distinct id. */
  bucketingIdentifier: string | null;
}

/** A cohort that is not deleted. */
export interface CohortDefinition {
  id: number;
  name: string;
  isStatic: boolean;
  /** `{"properties": {"type": "OR", "values": […]}}`; of no use when the cohort is static. */
  filters: JsonObject | null;
}

/** A kind of group (company, project, …) and its number, counted from 0. */
export interface GroupType {
  index: number;
  name: string;
}

/** Answers which cohorts exist; backed by a store in the appliance, by a list in tests. */
export interface CohortFacts {
  /** The cohort with this id in the flag's project, or undefined when there is none or it was deleted. */
  find(id: number): CohortDefinition | undefined;
}

/** What the rules about dependencies want to know of another flag. */
export type FlagFact = Pick<FlagDefinition, "id" | "key" | "active" | "deleted" | "filters">;

/** Answers which flags exist; deleted ones included, since the rules tell them apart. */
export interface FlagFacts {
  find(id: number): FlagFact | undefined;
}

/** The JSON string that stands in for the payload of a flag whose payloads are encrypted. */
export const redactedPayload = JSON.stringify("********* (encrypted)");

/** The filters with every payload replaced, when the flag's payloads are secret. */
export function withHiddenPayloads(flag: {
  filters: JsonObject;
  hasEncryptedPayloads: boolean | null;
}): JsonObject {
  return flag.hasEncryptedPayloads ? hidePayloads(flag.filters) : flag.filters;
}

/** The filters with every payload replaced. */
export function hidePayloads(filters: JsonObject): JsonObject {
  if (!isJsonObject(filters.payloads)) return filters;
  const hidden = Object.keys(filters.payloads).map((name) => [name, redactedPayload]);
  return { ...filters, payloads: Object.fromEntries(hidden) };
}

/** Prefix of flags that surveys make for themselves; they are served to browsers but not shown in lists. */
export const surveyFlagPrefix = "survey-targeting-";

/**
 * The group type that a condition set is about, null for persons: its own where it names one, null included, else the
 * flag's.
 */
export function groupTypeOf(group: JsonObject, filters: JsonObject): number | null {
  const name = "aggregation_group_type_index";
  const type = Object.hasOwn(group, name) ? group[name] : filters[name];
  return Number.isInteger(type) ? (type as number) : null;
}

/** The groups of stored filters, without those that are no objects. */
export function groupsOf(filters: JsonObject): JsonObject[] {
  return objectsIn(filters.groups);
}

/** The property filters of a group or condition, without those that are no objects. */
export function propertiesOf(group: JsonObject): JsonObject[] {
  return objectsIn(group.properties);
}

/** The variants of stored filters, without those that are no objects. */
export function variantsOf(filters: JsonObject): JsonObject[] {
  const multivariate = filters.multivariate;
  return typeof multivariate === "object" && multivariate !== null && !Array.isArray(multivariate)
    ? objectsIn(multivariate.variants)
    : [];
}

function objectsIn(list: Json | undefined): JsonObject[] {
  if (!Array.isArray(list)) return [];
  return list.filter(
    (item): item is JsonObject => typeof item === "object" && item !== null && !Array.isArray(item),
  );
}
