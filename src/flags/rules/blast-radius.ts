/**
 * The question "how many would this reach?", as it is asked: with the fields of a flag, or with one condition.
 *
 * Source: contract, management-api 5.17; decision 18.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { isKnownOperator } from "../../lib/operators.ts";
import { compilePattern } from "../../lib/regex.ts";
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

/**
 * Reads the body of a blast-radius request.
 *
 * @throws {FlagInvalid} no condition, or it beside `filters` (attr null), a filter about another group type (attr
 *   null), filters that nothing can be tested with (attr `filters`).
 */
export function parseBlastRadius(body: BlastRadiusBody): ReachQuestion {
  const flagKey = body.key ?? "";
  const hasFields = isGiven(body.filters) || isGiven(body.rollout_percentage);
  if (hasFields) {
    if (isGiven(body.condition)) throw flagInvalid("Send either `filters` or `condition`, not both.");
    return { ...questionOf(filtersOf(body), body.group_type_index), flagKey };
  }
  if (!Object.hasOwn(body, "condition")) throw flagInvalid("Missing condition for which to get blast radius");
  const { aggregation_group_type_index: type, ...others } = body.condition ?? {};
  // A condition by itself that says null leaves it to what was asked for.
  const condition = isGiven(type) ? { ...others, aggregation_group_type_index: type } : others;
  return { ...questionOf({ groups: [condition] }, body.group_type_index), flagKey };
}

function filtersOf({ filters, rollout_percentage: rolloutPercentage }: BlastRadiusBody): JsonObject {
  const given = filters ?? {};
  checkShape(given);
  const request = { rolloutPercentage: rolloutPercentage ?? undefined, isRemoteConfiguration: false };
  return withRollout(given, given, request);
}

function questionOf(
  filters: JsonObject,
  askedType: number | null | undefined,
): Omit<ReachQuestion, "flagKey"> {
  const groups = groupsOf(filters);
  const flagType = filters.aggregation_group_type_index ?? askedType ?? null;
  const types = groups.map((group) => groupTypeOf(group, { aggregation_group_type_index: flagType }));
  const [groupTypeIndex = askedType ?? null] = types;
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
    checkTestable(filter, `${path}[${index}]`);
    return filter;
  });
}

function isGiven<Value>(value: Value | null | undefined): value is Value {
  return value !== undefined && value !== null;
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
