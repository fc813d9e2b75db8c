/**
 * Whether `filters` may be saved, and in which form. Any object may: what is known in it is checked, the rest is kept.
 * Source: contract, management-api 4.3 and 4.4; decisions 10 and 11.
 *
 * Pure: what the rules want to know of other flags and of cohorts comes in as facts.
 */

import { isJsonObject, type JsonObject, typeName } from "../../lib/json.ts";
import type { NoteMisfit } from "../../lib/operator-values.ts";
import { withPresentOperator } from "../../lib/operators.ts";
import { checkConditions, checkPropertyTypes, checkVariantSum } from "./condition-rules.ts";
import { checkDependencies, dependencyReferences } from "./dependency-rules.ts";
import { checkShape } from "./filters-shape.ts";
import { FlagInvalid, filtersInvalid } from "./flag-invalid.ts";
import { normalizePayloads } from "./payloads.ts";
import { withRollout } from "./rollout.ts";
import { mapProperties } from "./stored-filters.ts";
import {
  type CohortFacts,
  type FlagFacts,
  groupsOf,
  groupTypeOf,
  propertiesOf,
  variantsOf,
} from "./types.ts";

export interface FiltersContext {
  /** The id of the flag that is changed; null when it is created. */
  flagId: number | null;
  /** The key the flag will have. */
  flagKey: string;
  isRemoteConfiguration: boolean;
  /** The `rollout_percentage` that was sent beside `filters`, when it says something new. */
  rolloutPercentage?: number;
  /** Whether an early-access feature is linked to the flag. */
  hasEarlyAccessFeature?: boolean;
  cohorts: CohortFacts;
  flags: FlagFacts;
  /** Takes values that match nothing; without it they are rejected. */
  noteMisfit?: NoteMisfit;
}

const sizeMaxBytes = 512 * 1024;

/**
 * The filters to store for a new flag.
 *
 * @param sent the `filters` of the request; undefined when there were none: the flag is off for everyone until it has a
 *             condition set (contract, decision 11).
 * @throws {FlagInvalid} the first rule that is broken.
 */
export function filtersOfNewFlag(sent: unknown, context: FiltersContext): JsonObject {
  if (sent === undefined) return finish({ groups: [] }, {}, [], context);
  const given = dictionary(sent);
  return finish(given, given, [], context);
}

/**
 * The filters to store for a changed flag: top-level members that were sent replace the stored ones, null clears,
 * all others stay. Payloads of variants that no longer exist go, unless payloads were sent as well.
 *
 * @param sent   the `filters` of the request; undefined when it has none, so that only the flag around them changes.
 * @throws {FlagInvalid} the first rule that is broken.
 */
export function filtersOfChangedFlag(sent: unknown, stored: JsonObject, context: FiltersContext): JsonObject {
  if (sent === undefined && context.rolloutPercentage === undefined) {
    return withRemoteConfigRollout(stored, context);
  }
  const given = sent === undefined ? {} : dictionary(sent);
  const merged: JsonObject = { ...stored, ...given };
  if (!Object.hasOwn(given, "payloads") && isJsonObject(merged.payloads)) {
    merged.payloads = fittingPayloads(merged.payloads, merged);
  }
  return finish(merged, given, dependencyReferences(stored), context);
}

/**
 * @param merged the filters to be.
 * @param given  what of them is in the request.
 */
function finish(
  merged: JsonObject,
  given: JsonObject,
  knownDependencies: readonly string[],
  context: FiltersContext,
): JsonObject {
  checkShape(merged);
  const normal = withRemoteConfigRollout(normalizeProperties(withRollout(merged, given, context)), context);
  checkPropertyTypes(normal, context);
  checkVariantSum(normal);
  checkConditions(normal, context.cohorts, context.noteMisfit);
  if (Object.hasOwn(merged, "payloads")) normal.payloads = normalizePayloads(merged.payloads, normal);
  checkDependencies(normal, knownDependencies, context);
  checkSize(normal);
  return normal;
}

function dictionary(sent: unknown): JsonObject {
  if (sent === null) throw new FlagInvalid("null", "This field may not be null.", "filters");
  if (isJsonObject(sent)) return sent;
  const detail = `Expected a dictionary of items but got type "${typeName(sent)}".`;
  throw new FlagInvalid("not_a_dict", detail, "filters");
}

/** A remote configuration is always on: without condition sets it gets one, and empty rollouts become full ones. */
function withRemoteConfigRollout(filters: JsonObject, { isRemoteConfiguration }: FiltersContext): JsonObject {
  if (!isRemoteConfiguration) return filters;
  const groups = groupsOf(filters);
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
  return { ...normal, groups: groupsOf(normal).map((group) => withPropertyTypes(group, filters)) };
}

function normalizeProperty(property: JsonObject): JsonObject {
  const { cohort_name: cohortName, ...others } = withPresentOperator(property);
  const normal: JsonObject = { ...others, key: String(property.key) };
  if (property.type !== "cohort")
    return cohortName === undefined ? normal : { ...normal, cohort_name: cohortName };
  // Names of cohorts are put in on every read; a stored copy would go stale. Ids are compared as numbers.
  if (typeof property.value === "string" && /^\d{1,15}$/.test(property.value))
    normal.value = Number(property.value);
  return normal;
}

/** A property that names no type is about whom its condition is about. */
function withPropertyTypes(group: JsonObject, filters: JsonObject): JsonObject {
  if (!Array.isArray(group.properties)) return group;
  const groupType = groupTypeOf(group, filters);
  const implied: JsonObject =
    groupType === null ? { type: "person" } : { type: "group", group_type_index: groupType };
  const properties = propertiesOf(group).map((property) =>
    property.type === undefined || property.type === null ? { ...property, ...implied } : property,
  );
  return { ...group, properties };
}

function fittingPayloads(payloads: JsonObject, filters: JsonObject): JsonObject {
  const variants = variantsOf(filters).map(({ key }) => key);
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
