/**
 * Core types of flags.
 *
 * Members inside `filters` keep the names of the API, because filters are stored, returned and served unchanged.
 * Source: contract, management-api 3.1 and 4.1.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";

/** A flag for evaluation, local evaluation and status; unset values are null and count as off. */
export interface FlagDefinition {
  id: number;
  key: string;
  /** The description; the API calls it `name`. */
  name: string;
  /** Stored filters. Imported data may have any shape; readers must expect that. */
  filters: JsonObject;
  active: boolean;
  deleted: boolean;
  version: number;
  ensureExperienceContinuity: boolean | null;
  hasEncryptedPayloads: boolean | null;
  /** `all`, `client`, `server`; anything else counts as `all`. */
  evaluationRuntime: string | null;
  evaluationTags: readonly string[];
  /** `device_id`; any other value means the distinct ID. */
  bucketingIdentifier: string | null;
}

/** A cohort that is not deleted. */
export interface CohortDefinition {
  id: number;
  name: string;
  isStatic: boolean;
  /** `{"properties": {"type": "OR", "values": […]}}`; ignored for a static cohort. */
  filters: JsonObject | null;
}

/** A kind of group (company, project, …) and its index, from 0. */
export interface GroupType {
  index: number;
  name: string;
}

/** Looks up cohorts; backed by a store in the server, by a list in tests. */
export interface CohortFacts {
  /** The cohort with this ID in the flag's project; undefined when it does not exist or is deleted. */
  find(id: number): CohortDefinition | undefined;
}

/** The part of another flag that dependency rules use. */
export type FlagFact = Pick<FlagDefinition, "id" | "key" | "active" | "deleted" | "filters">;

/** Looks up flags; including deleted ones, which the rules distinguish. */
export interface FlagFacts {
  find(id: number): FlagFact | undefined;
}

/** The JSON string that replaces the payload of a flag whose payloads are encrypted. */
export const redactedPayload = JSON.stringify("********* (encrypted)");

/** The filters with every payload replaced, when the flag's payloads are secret. */
export function withHiddenPayloads(flag: {
  filters: JsonObject;
  hasEncryptedPayloads: boolean | null;
}): JsonObject {
  return flag.hasEncryptedPayloads ? hidePayloads(flag.filters) : flag.filters;
}

/** Names of the encrypted payloads that could not be decrypted. @param opened filters from `PayloadCipher.open`. */
export function unreadablePayloads(
  flag: Pick<FlagDefinition, "hasEncryptedPayloads">,
  { payloads }: JsonObject,
): string[] {
  if (!flag.hasEncryptedPayloads || !isJsonObject(payloads)) return [];
  return Object.keys(payloads).filter((name) => payloads[name] === redactedPayload);
}

/** The filters with every payload replaced. */
export function hidePayloads(filters: JsonObject): JsonObject {
  if (!isJsonObject(filters.payloads)) return filters;
  const hidden = Object.keys(filters.payloads).map((name) => [name, redactedPayload]);
  return { ...filters, payloads: Object.fromEntries(hidden) };
}

/** Prefix of survey flags; they are served to browsers but not shown in lists. */
export const surveyFlagPrefix = "survey-targeting-";

/**
 * The group type of a condition set's subject, null for persons: its own if it has one, null included, else the flag's.
 */
export function getGroupType(group: JsonObject, filters: JsonObject): number | null {
  const name = "aggregation_group_type_index";
  const type = Object.hasOwn(group, name) ? group[name] : filters[name];
  return Number.isInteger(type) ? (type as number) : null;
}

/** The groups of stored filters, without those that are not objects. */
export function getGroups(filters: JsonObject): JsonObject[] {
  return objectsIn(filters.groups);
}

/** The property filters of a group or condition, without those that are not objects. */
export function getProperties(group: JsonObject): JsonObject[] {
  return objectsIn(group.properties);
}

/** The variants of stored filters, without those that are not objects. */
export function getVariants(filters: JsonObject): JsonObject[] {
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
