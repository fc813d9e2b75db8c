/**
 * Compiles a flag for evaluation: conditions with their tests, variants, payloads, holdouts.
 *
 * Accepts stored filters of any shape without throwing; invalid parts do not match.
 */

import { toNumber } from "../../lib/json/exact.ts";
import {
  isJsonObject,
  type Json,
  type JsonObject,
  toDisplayString,
  wholeNumber,
} from "../../lib/json/value.ts";
import { compileMatcher, isDateOperator } from "../operators/matchers.ts";
import { withGroups } from "../rules/stored-filters.ts";
import {
  type FlagDefinition,
  getGroups,
  getGroupType,
  getProperties,
  getVariants,
  redactedPayload,
} from "../rules/types.ts";
import type { VariantRange } from "./bucketing.ts";
import { type CompiledCohort, type CompiledCohorts, missingCohort } from "./cohorts.ts";
import type { CompiledCondition, CompiledFilter, CompiledFlag, CompiledHoldout } from "./model.ts";
import { Failure } from "./reasons.ts";

/** Compiles one flag against the cohorts of its project. */
export function compileFlag(definition: FlagDefinition, cohorts: CompiledCohorts): CompiledFlag {
  const filters = withGroups(definition.filters);
  const variants = compileVariants(filters);
  const groupTypeIndex = getGroupType({}, filters);
  const compile = (group: JsonObject, index: number) =>
    compileCondition(group, index, filters, variants, cohorts);
  const conditions = getGroups(filters).map(compile);
  const hasEnrollment = filters.feature_enrollment === true;
  const superGroup = hasEnrollment ? undefined : getGroups({ groups: filters.super_groups ?? [] })[0];
  const flag: CompiledFlag = {
    id: definition.id,
    position: -1,
    key: definition.key,
    version: definition.version,
    active: definition.active,
    definition,
    runtime: getRuntime(definition.evaluationRuntime),
    contexts: definition.evaluationTags,
    usesDeviceId: definition.bucketingIdentifier === "device_id",
    hasContinuity: definition.ensureExperienceContinuity === true,
    groupTypeIndex,
    enrollmentKey: hasEnrollment ? `$feature_enrollment/${definition.key}` : null,
    superCondition: superGroup && getProperties(superGroup).length > 0 ? compile(superGroup, 0) : null,
    holdouts: compileHoldouts(filters, cohorts),
    conditions,
    variants,
    endsAtFirstRolloutMiss: filters.early_exit === true,
    payloads: compilePayloads(filters, definition.hasEncryptedPayloads === true),
    dependencies: conditions.flatMap(({ filters: parts }) =>
      parts.flatMap((part) => (part.kind === "flag" ? [part.flagId] : [])),
    ),
    isRepeatable: true,
    cachedResults: [],
  };
  flag.isRepeatable = [...getFilters(flag)].every(isRepeatable);
  return flag;
}

/** All filters that affect a flag's result. */
export function* getFilters(flag: CompiledFlag): Generator<CompiledFilter> {
  if (flag.superCondition !== null) yield* flag.superCondition.filters;
  for (const holdout of flag.holdouts) yield* holdout.filters;
  for (const condition of flag.conditions) yield* condition.filters;
}

function isRepeatable(filter: CompiledFilter): boolean {
  switch (filter.kind) {
    case "person":
      return !isDateOperator(getOperator(filter.written));
    case "cohort": {
      const { cohort } = filter;
      return cohort instanceof Failure || !(cohort.needsMemberLists || cohort.isDateOperator);
    }
    case "unusable":
      return true;
    case "group":
    case "flag":
      return false;
  }
}

function getOperator({ operator }: JsonObject): string | null {
  return typeof operator === "string" ? operator : null;
}

/** Compiles the filters of a condition about persons, or about groups of one type. */
export function compileFilters(
  properties: readonly JsonObject[],
  groupTypeIndex: number | null,
  cohorts: CompiledCohorts,
): CompiledFilter[] {
  const all = properties.map((written) => compileFilter(written, groupTypeIndex, cohorts));
  return [...all.filter(({ kind }) => kind !== "cohort"), ...all.filter(({ kind }) => kind === "cohort")];
}

function compileCondition(
  group: JsonObject,
  index: number,
  flagFilters: JsonObject,
  variants: readonly VariantRange[],
  cohorts: CompiledCohorts,
): CompiledCondition {
  const groupTypeIndex = getGroupType(group, flagFilters);
  return {
    index,
    filters: compileFilters(supportedProperties(group), groupTypeIndex, cohorts),
    rolloutPercentage: toPercentage(group.rollout_percentage),
    variant: variants.find(({ key }) => key === group.variant)?.key || null,
    groupTypeIndex,
  };
}

/** Filters that are not objects become filters that match nothing: dropping them would include more users. */
function supportedProperties(group: JsonObject): JsonObject[] {
  const { properties } = group;
  if (properties === undefined || properties === null) return [];
  if (!Array.isArray(properties)) return [{ type: "unreadable" }];
  return properties.map((filter) => (isJsonObject(filter) ? filter : { type: "unreadable" }));
}

function compileFilter(
  written: JsonObject,
  conditionGroupTypeIndex: number | null,
  cohorts: CompiledCohorts,
): CompiledFilter {
  const operator = getOperator(written);
  const key = typeof written.key === "number" ? String(written.key) : written.key;
  // A filter without a type applies to the subject of its condition, as in SDKs.
  switch (written.type ?? (conditionGroupTypeIndex === null ? "person" : "group")) {
    // `negation` of a person or group filter has no effect in flags, only inside of cohorts.
    case "person":
      if (typeof key !== "string") break;
      return {
        written,
        kind: "person",
        key,
        test: compileMatcher(operator, written.value),
        slot: undefined,
      };
    case "group": {
      const groupTypeIndex = getIndex(written.group_type_index) ?? conditionGroupTypeIndex;
      if (typeof key !== "string" || groupTypeIndex === null) break;
      return { written, kind: "group", groupTypeIndex, key, test: compileMatcher(operator, written.value) };
    }
    case "cohort":
      if (operator !== null && operator !== "in" && operator !== "not_in") break;
      return {
        written,
        kind: "cohort",
        cohort: findCohort(written.value, cohorts),
        isInverted: (operator === "not_in") !== (written.negation === true),
      };
    case "flag":
      if (operator !== "flag_evaluates_to") break;
      return { written, kind: "flag", flagId: wholeNumber(key), wanted: written.value };
  }
  return { written, kind: "unusable" };
}

function findCohort(id: Json | undefined, cohorts: CompiledCohorts): CompiledCohort | Failure {
  if (typeof id !== "number" || !Number.isInteger(id)) {
    return new Failure("cohort_filters_parsing_error", "A cohort filter does not name a cohort by its id");
  }
  const cohort = cohorts.get(id);
  return cohort === undefined ? missingCohort(id) : (cohort.failure ?? cohort);
}

function compileVariants(filters: JsonObject): VariantRange[] {
  return getVariants(filters).flatMap((variant) =>
    typeof variant.key === "string"
      ? [{ key: variant.key, rolloutPercentage: toNumber(variant.rollout_percentage) ?? 0 }]
      : [],
  );
}

/** `holdout` replaces the older `holdout_groups`, which are read only without it. */
function compileHoldouts(filters: JsonObject, cohorts: CompiledCohorts): CompiledHoldout[] {
  const { holdout } = filters;
  if (isJsonObject(holdout)) {
    const percentage = toNumber(holdout.exclusion_percentage);
    const { id } = holdout;
    if (
      percentage === undefined ||
      Number.isNaN(percentage) ||
      (typeof id !== "number" && typeof id !== "string")
    ) {
      return [];
    }
    return [{ variant: `holdout-${id}`, percentage: Math.min(Math.max(percentage, 0), 100), filters: [] }];
  }
  return getGroups({ groups: filters.holdout_groups ?? [] }).map((group) => ({
    variant: typeof group.variant === "string" && group.variant !== "" ? group.variant : "holdout",
    percentage: toPercentage(group.rollout_percentage),
    filters: compileFilters(supportedProperties(group), null, cohorts),
  }));
}

function compilePayloads(filters: JsonObject, isEncrypted: boolean): Map<string, string> {
  const payloads = new Map<string, string>();
  if (!isJsonObject(filters.payloads)) return payloads;
  for (const [key, payload] of Object.entries(filters.payloads)) {
    payloads.set(key, isEncrypted ? redactedPayload : payloadJson(payload));
  }
  return payloads;
}

/** Clients expect a JSON string; imported definitions may contain the value itself. */
export function payloadJson(payload: Json): string {
  if (typeof payload === "string") return payload;
  return toDisplayString(payload) === undefined ? "null" : JSON.stringify(payload);
}

function toPercentage(percentage: Json | undefined): number | null {
  if (percentage === null || percentage === undefined) return null;
  return toNumber(percentage) ?? Number.NaN;
}

function getIndex(index: Json | undefined): number | null {
  return typeof index === "number" && Number.isInteger(index) ? index : null;
}

function getRuntime(runtime: string | null): CompiledFlag["runtime"] {
  return runtime === "client" || runtime === "server" ? runtime : "all";
}
