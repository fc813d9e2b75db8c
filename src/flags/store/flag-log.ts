/** What the activity log tells about flags (contract: management-api 5.10). */

import { type Change, changesBetween, recordActivity, type Trigger } from "../../accounts/activity.ts";
import type { MetadataTx } from "../../accounts/metadata.ts";
import type { JsonObject } from "../../lib/json.ts";
import { rolloutPercentageOf } from "../rules/stored-filters.ts";
import { redactedPayload } from "../rules/types.ts";
import type { Flag } from "./flag.ts";

const tracked = [
  "key",
  "name",
  "filters",
  "active",
  "deleted",
  "ensure_experience_continuity",
  "is_remote_configuration",
  "has_encrypted_payloads",
  "has_enriched_analytics",
  "performed_rollback",
  "rollback_conditions",
  "experiment_set",
  "surveys",
  "features",
  "evaluation_runtime",
  "bucketing_identifier",
  "creation_context",
  "tags",
  "evaluation_tags",
  "version",
];

/** The stored fields of a flag under the names of the API. */
export function storedFields(flag: Flag): JsonObject {
  return {
    key: flag.key,
    name: flag.name,
    filters: flag.filters,
    active: flag.active,
    deleted: flag.deleted,
    ensure_experience_continuity: flag.ensureExperienceContinuity,
    is_remote_configuration: flag.isRemoteConfiguration,
    has_encrypted_payloads: flag.hasEncryptedPayloads,
    has_enriched_analytics: flag.hasEnrichedAnalytics,
    performed_rollback: flag.performedRollback,
    rollback_conditions: flag.rollbackConditions,
    rollout_percentage: rolloutPercentageOf(flag.filters),
    experiment_set: flag.experimentSet,
    surveys: flag.surveys,
    features: flag.features,
    evaluation_runtime: flag.evaluationRuntime,
    bucketing_identifier: flag.bucketingIdentifier,
    creation_context: flag.creationContext,
    analytics_dashboards: flag.analyticsDashboards,
    tags: flag.tags,
    evaluation_tags: flag.evaluationTags,
    version: flag.version,
  };
}

/** The filters with every payload replaced, when the flag's payloads are secret. */
function withoutSecrets(flag: Flag): JsonObject {
  const payloads = flag.filters.payloads;
  if (!flag.hasEncryptedPayloads || typeof payloads !== "object" || payloads === null) return flag.filters;
  const hidden = Object.fromEntries(Object.keys(payloads).map((name) => [name, redactedPayload]));
  return { ...flag.filters, payloads: hidden };
}

/** Writes the entry of a new flag. */
export function recordCreation(
  t: MetadataTx,
  flag: Flag,
  by: number | null,
  now: Date,
  trigger?: Trigger,
): void {
  record(t, "created", flag, by, [], now, trigger);
}

/** Writes what a change changed. `version` is tracked, so every change has an entry. */
export function recordChange(
  t: MetadataTx,
  before: Flag,
  after: Flag,
  by: number | null,
  now: Date,
  trigger?: Trigger,
): void {
  const shown = (flag: Flag) => ({ ...storedFields(flag), filters: withoutSecrets(flag) });
  const changes = changesBetween("FeatureFlag", shown(before), shown(after), tracked);
  const activity = before.deleted === after.deleted ? "updated" : after.deleted ? "deleted" : "restored";
  record(t, activity, after, by, changes, now, trigger);
}

function record(
  t: MetadataTx,
  activity: string,
  flag: Pick<Flag, "id" | "key" | "projectId">,
  by: number | null,
  changes: Change[],
  now: Date,
  trigger?: Trigger,
): void {
  recordActivity(t, {
    userId: by,
    projectId: flag.projectId,
    activity,
    scope: "FeatureFlag",
    itemId: flag.id,
    name: flag.key,
    changes,
    trigger,
    now,
  });
}
