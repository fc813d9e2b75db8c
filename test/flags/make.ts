/** Short ways to make the values that tests of flags need again and again. */

import type { EvaluationRequest } from "../../src/flags/evaluate/model.ts";
import type { CohortDefinition, FlagDefinition } from "../../src/flags/rules/types.ts";
import type { Json, JsonObject } from "../../src/lib/json/value.ts";

export function flag(
  id: number,
  key: string,
  filters: JsonObject,
  rest: Partial<FlagDefinition> = {},
): FlagDefinition {
  return {
    id,
    key,
    name: "",
    filters,
    active: true,
    deleted: false,
    version: 1,
    ensureExperienceContinuity: false,
    hasEncryptedPayloads: false,
    evaluationRuntime: "all",
    evaluationTags: [],
    bucketingIdentifier: "distinct_id",
    ...rest,
  };
}

/** Filters of one condition set. */
export function when(
  properties: JsonObject[],
  rollout: number | null = 100,
  rest: JsonObject = {},
): JsonObject {
  return { groups: [{ properties, rollout_percentage: rollout, ...rest }] };
}

export function person(key: string, operator: string, value: Json, rest: JsonObject = {}): JsonObject {
  return { key, type: "person", operator, value, ...rest };
}

export function inCohort(id: Json, rest: JsonObject = {}): JsonObject {
  return { key: "id", type: "cohort", operator: "in", value: id, ...rest };
}

export function dependsOn(id: Json, value: Json = true, rest: JsonObject = {}): JsonObject {
  return { key: id, type: "flag", operator: "flag_evaluates_to", value, ...rest };
}

export function cohort(id: number, properties: Json, rest: Partial<CohortDefinition> = {}): CohortDefinition {
  return { id, name: `cohort ${id}`, isStatic: false, filters: { properties }, ...rest };
}

export const testNow = Date.parse("2026-01-01T12:00:00Z");

export function requestFor(distinctId: string, rest: Partial<EvaluationRequest> = {}): EvaluationRequest {
  return { distinctId, now: testNow, timezone: "UTC", ...rest };
}
