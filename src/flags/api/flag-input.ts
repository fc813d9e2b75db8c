/** From the fields of a request to the fields of a flag. */

import type { Static } from "@sinclair/typebox";
import { InvalidField } from "../../lib/errors.ts";
import type { Json, JsonObject } from "../../lib/json.ts";
import type { FlagFields } from "../store/flag.ts";
import type { FlagInput } from "./flag-shapes.ts";

/**
 * The fields that were sent, in the names of the store.
 *
 * @throws {InvalidField} `surveys` or `features` is neither an object nor empty.
 */
export function flagFields(input: Partial<Static<typeof FlagInput>>): Partial<FlagFields> {
  const fields: Partial<FlagFields> = {
    key: input.key,
    name: input.name,
    filters: input.filters,
    active: input.active,
    deleted: input.deleted,
    ensureExperienceContinuity: input.ensure_experience_continuity,
    isRemoteConfiguration: input.is_remote_configuration,
    hasEncryptedPayloads: input.has_encrypted_payloads,
    hasEnrichedAnalytics: input.has_enriched_analytics,
    performedRollback: input.performed_rollback,
    rollbackConditions: input.rollback_conditions,
    rolloutPercentage: input.rollout_percentage ?? undefined,
    experimentSet: input.experiment_set === null ? [] : input.experiment_set,
    surveys: freeForm("surveys", input.surveys),
    features: freeForm("features", input.features),
    // Null leaves tags alone (contract: management-api 3.2).
    tags: input.tags ?? undefined,
    evaluationTags: input.evaluation_tags ?? undefined,
    evaluationRuntime: input.evaluation_runtime,
    bucketingIdentifier: input.bucketing_identifier,
    creationContext: input.creation_context,
    analyticsDashboards: input.analytics_dashboards,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

/** Servers that list surveys here send `[]` for none; a client that echoes that means none as well. */
function freeForm(field: string, value: Json | undefined): JsonObject | undefined {
  if (value === undefined) return undefined;
  if (value === null || (Array.isArray(value) && value.length === 0)) return {};
  if (typeof value === "object" && !Array.isArray(value)) return value;
  const found = Array.isArray(value) ? "list" : typeof value === "string" ? "str" : typeof value;
  throw new InvalidField(field, "not_a_dict", `Expected a dictionary of items but got type "${found}".`);
}
