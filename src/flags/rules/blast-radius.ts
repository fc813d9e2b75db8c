/**
 * Requests for the blast radius of a flag's fields, or of one condition.
 *
 * Source: contract, management-api 5.17; decision 18.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { filtersInvalid, flagInvalid } from "./errors.ts";
import { withRollout } from "./filters.ts";
import { checkShape } from "./filters-schema.ts";
import { toPercentage } from "./stored-filters.ts";
import { getGroups, getGroupType } from "./types.ts";

/** A condition set to count. */
interface BlastRadiusSet {
  /** Joined by AND; empty: every user. */
  filters: JsonObject[];
  /** 0 to 100; null includes every user. */
  rolloutPercentage: number | null;
}

export interface BlastRadiusQuery {
  /** Condition sets, joined by OR. */
  sets: BlastRadiusSet[];
  /** Group type to count; null for persons. */
  groupTypeIndex: number | null;
  /** Hash key of the rollouts; empty for a flag without a key yet. */
  flagKey: string;
}

/** Number of subjects that match the conditions, and of those also within the rollouts. */
export interface BlastRadius {
  total: number;
  /** Match at least one set. */
  matching: number;
  /** Match at least one set within its rollout. */
  reached: number;
  sets: { matching: number; reached: number }[];
  /** Why the conditions cannot be evaluated; the counts are meaningless then. */
  problem?: string;
}

/** The fields of a request, validated by its schema. */
export interface BlastRadiusBody {
  condition?: JsonObject | null;
  group_type_index?: number | null;
  filters?: JsonObject | null;
  rollout_percentage?: number | null;
  key?: string;
}

/** The filters as saving would store them. @throws {InvalidFlagError} saving would reject them. */
export type CheckAsSaving = (filters: JsonObject, flagKey: string) => JsonObject;

/**
 * Reads the body of a blast-radius request. Rejects what saving rejects (contract, third round B6).
 *
 * @throws {InvalidFlagError} no condition, or one next to `filters` (attr null), a filter about another group type (attr
 * null), filters that cannot be saved (attr `filters`).
 */
export function parseBlastRadius(body: BlastRadiusBody, checkAsSaving: CheckAsSaving): BlastRadiusQuery {
  const flagKey = body.key ?? "";
  const type = body.group_type_index ?? null;
  const sent = readFilters(body);
  toDraft(sent, type);
  const flagType = sent.aggregation_group_type_index ?? type;
  const checked = checkAsSaving({ ...sent, aggregation_group_type_index: flagType }, flagKey);
  return { ...toDraft(checked, type), flagKey };
}

/** The condition sets of a request, as filters. */
function readFilters(body: BlastRadiusBody): JsonObject {
  const hasFields = isGiven(body.filters) || isGiven(body.rollout_percentage);
  if (hasFields) {
    if (isGiven(body.condition)) throw flagInvalid("Send either `filters` or `condition`, not both.");
    return getFilters(body);
  }
  if (!Object.hasOwn(body, "condition")) throw flagInvalid("Missing condition for which to get blast radius");
  const { aggregation_group_type_index: type, ...others } = body.condition ?? {};
  // A single condition with a null type uses the type of the request.
  const condition = isGiven(type) ? { ...others, aggregation_group_type_index: type } : others;
  return { groups: [condition] };
}

function getFilters({ filters, rollout_percentage: rolloutPercentage }: BlastRadiusBody): JsonObject {
  const sent = filters ?? {};
  checkShape(sent);
  const request = { rolloutPercentage: rolloutPercentage ?? undefined, isRemoteConfiguration: false };
  return withRollout(sent, sent, request);
}

function toDraft(filters: JsonObject, requestedType: number | null): Omit<BlastRadiusQuery, "flagKey"> {
  const groups = getGroups(filters);
  const flagType = filters.aggregation_group_type_index ?? requestedType;
  const types = groups.map((group) => getGroupType(group, { aggregation_group_type_index: flagType }));
  const [groupTypeIndex = requestedType] = types;
  if (types.some((type) => type !== groupTypeIndex)) {
    throw flagInvalid("The condition sets use different group types. Send them separately.");
  }
  const sets = groups.map((group, index) => ({
    filters: getProperties(group, groups.length === 1 ? "properties" : `groups[${index}].properties`),
    rolloutPercentage: toPercentage(group),
  }));
  if (
    groupTypeIndex !== null &&
    !sets.every((set) => set.filters.every((filter) => isAboutGroup(filter, groupTypeIndex)))
  ) {
    throw flagInvalid("Invalid group type index for feature flag condition.");
  }
  return { sets, groupTypeIndex };
}

function getProperties(condition: JsonObject, path: string): JsonObject[] {
  const properties: Json = condition.properties ?? [];
  if (!Array.isArray(properties)) throw filtersInvalid(`${path} must be a list`);
  return properties.map((filter, index) => {
    if (!isJsonObject(filter)) throw filtersInvalid(`${path}[${index}] must be an object`);
    if (typeof filter.key !== "string" && typeof filter.key !== "number")
      throw filtersInvalid(`${path}[${index}].key is required`);
    return filter;
  });
}

function isGiven<Value>(value: Value | null | undefined): value is Value {
  return value !== undefined && value !== null;
}

function isAboutGroup(filter: JsonObject, groupTypeIndex: number): boolean {
  return filter.key === "$group_key" || filter.type === "flag" || filter.group_type_index === groupTypeIndex;
}
