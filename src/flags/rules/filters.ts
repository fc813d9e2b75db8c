/**
 * Validates and normalizes `filters` for saving. Any object is allowed: known members are checked, the rest is
 * preserved. Source: contract, management-api 4.3 and 4.4; decisions 10 and 11.
 *
 * Pure: facts about other flags and cohorts are passed in.
 */

import { isJsonObject, type Json, type JsonObject, typeName } from "../../lib/json/value.ts";
import { normalizeOperator, type RecordMisfit } from "../../lib/values/operators.ts";
import { checkConditions, checkPropertyTypes, checkVariantSum } from "./condition-rules.ts";
import { checkDependencies, dependencyReferences } from "./dependency-rules.ts";
import { filtersInvalid, InvalidFlagError } from "./errors.ts";
import { checkShape } from "./filters-schema.ts";
import { mapProperties, toPercentage, withGroups } from "./stored-filters.ts";
import {
  type CohortFacts,
  type FlagFacts,
  getGroups,
  getGroupType,
  getProperties,
  getVariants,
} from "./types.ts";

export interface FiltersContext {
  /** The ID of the changed flag; null for a new one. */
  flagId: number | null;
  /** The key that the flag will have. */
  flagKey: string;
  isRemoteConfiguration: boolean;
  /** The `rollout_percentage` sent next to `filters`, if it is a change. */
  rolloutPercentage?: number;
  /** Whether an early-access feature is linked to the flag. */
  hasEarlyAccessFeature?: boolean;
  cohorts: CohortFacts;
  flags: FlagFacts;
  /** Receives values that match nothing; without it they are rejected. */
  recordMisfit?: RecordMisfit;
}

const sizeMaxBytes = 512 * 1024;

/**
 * The filters to store for a new flag.
 *
 * @param sent the `filters` of the request; undefined when absent: the flag is off for everyone until it has a
 *             condition set (contract, decision 11).
 * @throws {InvalidFlagError} the first rule that is broken.
 */
export function filtersOfNewFlag(sent: unknown, context: FiltersContext): JsonObject {
  if (sent === undefined) return finish({ groups: [] }, {}, [], context);
  const input = dictionary(sent);
  return finish(input, input, [], context);
}

/**
 * The filters to store for a changed flag: sent top-level members replace the stored ones, null clears, all others
 * stay. Payloads of variants that no longer exist are deleted, unless payloads were sent too.
 *
 * @param sent   the `filters` of the request; undefined when absent, so that only the flag around them changes.
 * @throws {InvalidFlagError} the first rule that is broken.
 */
export function filtersOfChangedFlag(sent: unknown, stored: JsonObject, context: FiltersContext): JsonObject {
  if (sent === undefined && context.rolloutPercentage === undefined) {
    return withRemoteConfigRollout(stored, context);
  }
  const input = sent === undefined ? {} : dictionary(sent);
  const merged: JsonObject = { ...stored, ...input };
  if (!Object.hasOwn(input, "payloads") && isJsonObject(merged.payloads)) {
    merged.payloads = fittingPayloads(merged.payloads, merged);
  }
  return finish(merged, input, dependencyReferences(stored), context);
}

/**
 * @param merged the new filters.
 * @param sent  the part of them in the request.
 */
function finish(
  merged: JsonObject,
  sent: JsonObject,
  knownDependencies: readonly string[],
  context: FiltersContext,
): JsonObject {
  checkShape(merged);
  const normal = withRemoteConfigRollout(normalizeProperties(withRollout(merged, sent, context)), context);
  checkPropertyTypes(normal, context);
  checkVariantSum(normal);
  checkConditions(normal, context.cohorts, context.recordMisfit);
  if (Object.hasOwn(merged, "payloads")) normal.payloads = normalizePayloads(merged.payloads, normal);
  checkDependencies(normal, knownDependencies, context);
  checkSize(normal);
  return normal;
}

function dictionary(sent: unknown): JsonObject {
  if (sent === null) throw new InvalidFlagError("null", "This field may not be null.", "filters");
  if (isJsonObject(sent)) return sent;
  const detail = `Expected a dictionary of items but got type "${typeName(sent)}".`;
  throw new InvalidFlagError("not_a_dict", detail, "filters");
}

/** A remote configuration is always on: without condition sets it gets one, and empty rollouts become full ones. */
function withRemoteConfigRollout(filters: JsonObject, { isRemoteConfiguration }: FiltersContext): JsonObject {
  if (!isRemoteConfiguration) return filters;
  const groups = getGroups(filters);
  if (groups.length === 0) return { ...filters, groups: [{ properties: [], rollout_percentage: 100 }] };
  const full = groups.map((group) =>
    group.rollout_percentage ? group : { ...group, rollout_percentage: 100 },
  );
  return { ...filters, groups: full };
}

function normalizeProperties(filters: JsonObject): JsonObject {
  let normal = filters;
  for (const list of ["groups", "super_groups", "holdout_groups"] as const) {
    normal = mapProperties(normal, list, normalizeProperty);
  }
  if (!Array.isArray(normal.groups)) return normal;
  return { ...normal, groups: getGroups(normal).map((group) => withPropertyTypes(group, filters)) };
}

function normalizeProperty(property: JsonObject): JsonObject {
  const { cohort_name: cohortName, ...others } = normalizeOperator(property);
  const normal: JsonObject = { ...others, key: String(property.key) };
  if (property.type !== "cohort")
    return cohortName === undefined ? normal : { ...normal, cohort_name: cohortName };
  // Cohort names are added on every read; a stored copy would become stale. IDs are compared as numbers.
  if (typeof property.value === "string" && /^\d{1,15}$/.test(property.value))
    normal.value = Number(property.value);
  return normal;
}

/** A property without a type applies to the subject of its condition. */
function withPropertyTypes(group: JsonObject, filters: JsonObject): JsonObject {
  if (!Array.isArray(group.properties)) return group;
  const groupType = getGroupType(group, filters);
  const implied: JsonObject =
    groupType === null ? { type: "person" } : { type: "group", group_type_index: groupType };
  const properties = getProperties(group).map((property) =>
    property.type === undefined || property.type === null ? { ...property, ...implied } : property,
  );
  return { ...group, properties };
}

function fittingPayloads(payloads: JsonObject, filters: JsonObject): JsonObject {
  const variants = getVariants(filters).map(({ key }) => key);
  const isFitting = (key: string) =>
    key.startsWith("holdout-") || (variants.length > 0 ? variants.includes(key) : key === "true");
  return Object.fromEntries(Object.entries(payloads).filter(([key]) => isFitting(key)));
}

function checkSize(filters: JsonObject): void {
  const size = Buffer.byteLength(JSON.stringify(filters));
  if (size <= sizeMaxBytes) return;
  throw filtersInvalid(
    `Feature flag filters exceed maximum size of ${sizeMaxBytes}. Current size: ${size}. ` +
      "Please simplify conditions or reduce payload sizes.",
  );
}

/** Payloads: JSON text per variant, or under `true` for boolean flags. Source: contract, management-api 4.4. */

/**
 * Payloads in stored form: every value is a JSON string. Null clears them.
 *
 * @throws {InvalidFlagError} not an object, a string that is not JSON, a key that is not a value of the flag.
 */
function normalizePayloads(payloads: Json | undefined, filters: JsonObject): JsonObject {
  if (payloads === null) return {};
  if (!isJsonObject(payloads)) throw filtersInvalid("Payloads must be passed as a dictionary");
  const texts = Object.entries(payloads).map(([key, payload]): [string, string] => [key, encode(payload)]);
  checkKeys(Object.keys(payloads), filters);
  return Object.fromEntries(texts);
}

function encode(payload: Json): string {
  if (typeof payload !== "string") return JSON.stringify(payload);
  try {
    JSON.parse(payload);
  } catch {
    throw filtersInvalid("Payload value is not valid JSON");
  }
  return payload;
}

function checkKeys(keys: readonly string[], filters: JsonObject): void {
  const holdouts = new Set(holdoutVariants(filters));
  const variants = new Set(getVariants(filters).map(({ key }) => key));
  const others = keys.filter((key) => !holdouts.has(key));
  if (variants.size > 0) {
    if (others.every((key) => variants.has(key))) return;
    throw filtersInvalid("Payload keys must match a variant key for multivariate flags");
  }
  if (others.every((key) => key === "true")) return;
  throw filtersInvalid("Payload keys must be 'true' for boolean flags");
}

/** Users in a holdout get its name as their variant, so it may have a payload too. */
function holdoutVariants(filters: JsonObject): (Json | undefined)[] {
  const holdout = isJsonObject(filters.holdout) ? [`holdout-${filters.holdout.id}`] : [];
  return [...holdout, ...getGroups({ groups: filters.holdout_groups ?? [] }).map(({ variant }) => variant)];
}

/*
 * `rollout_percentage` next to `filters`: the rollout of a flag's only condition set. Source: decision 10.
 *
 * Pure. A changed percentage is never ignored: it is applied or rejected.
 */

/**
 * The filters with the percentage in their only condition set; without one, a set without conditions is added.
 *
 * @param filters of the right shape.
 * @param sent   the part of them in the same request.
 * @param percentage an integer from 0 to 100; undefined when absent from the request, or equal to the value that
 *                   reading returns.
 * @throws {InvalidFlagError} there are several condition sets, the request has another percentage in `filters`, or a remote
 * configuration would be off.
 */
export function withRollout(
  filters: JsonObject,
  sent: JsonObject,
  { rolloutPercentage: percentage, isRemoteConfiguration }: RolloutRequest,
): JsonObject {
  if (percentage === undefined) return filters;
  if (isRemoteConfiguration && percentage === 0) {
    throw rejection("A remote configuration is always on. Send `active`: false to disable it.");
  }
  const groups = getGroups(withGroups(filters));
  const [only] = groups;
  if (only === undefined) return { ...filters, groups: [{ properties: [], rollout_percentage: percentage }] };
  if (groups.length > 1) {
    throw rejection(
      `The flag has ${groups.length} condition sets; send the rollout of each in \`filters.groups\` instead.`,
    );
  }
  const isSaid = Array.isArray(sent.groups) && Object.hasOwn(only, "rollout_percentage");
  if (!isSaid) return { ...filters, groups: [{ ...only, rollout_percentage: percentage }] };
  const message = toPercentage(only);
  // A client may send back a rounded fraction that it has read.
  if (Math.round(message) === percentage) return filters;
  throw rejection(
    `\`filters\` in the same request have the rollout ${message}, not ${percentage}. Send the rollout once, or the same value in both.`,
  );
}

interface RolloutRequest {
  rolloutPercentage?: number;
  isRemoteConfiguration: boolean;
}

function rejection(detail: string): InvalidFlagError {
  return new InvalidFlagError("invalid_input", detail, "rollout_percentage");
}
