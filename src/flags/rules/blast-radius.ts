/**
 * The question "how many would this reach?", as it is asked: with the fields of a flag, or with one condition.
 *
 * Source: contract, management-api 5.17; decision 18.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { checkShape } from "./filters-shape.ts";
import { filtersInvalid, flagInvalid } from "./flag-invalid.ts";
import { withRollout } from "./rollout.ts";
import { percentageOf } from "./stored-filters.ts";
import { groupsOf, groupTypeOf } from "./types.ts";

/** A condition set whose reach is asked for. */
interface ReachSet {
  /** Joined by AND; none: everybody. */
  filters: JsonObject[];
  /** 0 to 100; null is everybody. */
  rolloutPercentage: number | null;
}

export interface ReachQuestion {
  /** Condition sets, joined by OR. */
  sets: ReachSet[];
  /** Groups of which type are counted; null for persons. */
  groupTypeIndex: number | null;
  /** What rollouts are hashed with; empty for a flag that has no key yet. */
  flagKey: string;
}

/** How many subjects match the conditions, and how many of those are within the rollouts, too. */
export interface Reach {
  total: number;
  /** Match at least one set. */
  matching: number;
  /** Match at least one set within its rollout. */
  reached: number;
  sets: { matching: number; reached: number }[];
  /** Why the conditions cannot be evaluated; the counts mean nothing then. */
  problem?: string;
}

/** The fields of a request, of the types that its schema says. */
export interface BlastRadiusBody {
  condition?: JsonObject | null;
  group_type_index?: number | null;
  filters?: JsonObject | null;
  rollout_percentage?: number | null;
  key?: string;
}

/** The filters as saving would store them. @throws {FlagInvalid} saving would reject them. */
export type CheckAsSaving = (filters: JsonObject, flagKey: string) => JsonObject;

/**
 * Reads the body of a blast-radius request. Rejects what saving rejects (contract, third round B6).
 *
 * @throws {FlagInvalid} no condition, or it next to `filters` (attr null), a filter about another group type (attr
 *   null), filters that cannot be saved (attr `filters`).
 */
export function parseBlastRadius(body: BlastRadiusBody, checkAsSaving: CheckAsSaving): ReachQuestion {
  const flagKey = body.key ?? "";
  const type = body.group_type_index ?? null;
  const given = readFilters(body);
  questionOf(given, type);
  const flagType = given.aggregation_group_type_index ?? type;
  const checked = checkAsSaving({ ...given, aggregation_group_type_index: flagType }, flagKey);
  return { ...questionOf(checked, type), flagKey };
}

/** The condition sets that a request asks about, as filters. */
function readFilters(body: BlastRadiusBody): JsonObject {
  const hasFields = isGiven(body.filters) || isGiven(body.rollout_percentage);
  if (hasFields) {
    if (isGiven(body.condition)) throw flagInvalid("Send either `filters` or `condition`, not both.");
    return filtersOf(body);
  }
  if (!Object.hasOwn(body, "condition")) throw flagInvalid("Missing condition for which to get blast radius");
  const { aggregation_group_type_index: type, ...others } = body.condition ?? {};
  // A condition by itself that says null leaves it to what was asked for.
  const condition = isGiven(type) ? { ...others, aggregation_group_type_index: type } : others;
  return { groups: [condition] };
}

function filtersOf({ filters, rollout_percentage: rolloutPercentage }: BlastRadiusBody): JsonObject {
  const given = filters ?? {};
  checkShape(given);
  const request = { rolloutPercentage: rolloutPercentage ?? undefined, isRemoteConfiguration: false };
  return withRollout(given, given, request);
}

function questionOf(filters: JsonObject, askedType: number | null): Omit<ReachQuestion, "flagKey"> {
  const groups = groupsOf(filters);
  const flagType = filters.aggregation_group_type_index ?? askedType;
  const types = groups.map((group) => groupTypeOf(group, { aggregation_group_type_index: flagType }));
  const [groupTypeIndex = askedType] = types;
  if (types.some((type) => type !== groupTypeIndex)) {
    throw flagInvalid("The condition sets are about different kinds of groups; ask for them one by one.");
  }
  const sets = groups.map((group, index) => ({
    filters: propertiesOf(group, groups.length === 1 ? "properties" : `groups[${index}].properties`),
    rolloutPercentage: percentageOf(group),
  }));
  if (
    groupTypeIndex !== null &&
    !sets.every((set) => set.filters.every((one) => isAboutGroup(one, groupTypeIndex)))
  ) {
    throw flagInvalid("Invalid group type index for feature flag condition.");
  }
  return { sets, groupTypeIndex };
}

function propertiesOf(condition: JsonObject, path: string): JsonObject[] {
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
