/** Permissions of a key, or of a session created with one: scopes and restrictions (contract: management-api 2.2). */

import { InvalidFieldError } from "../lib/errors.ts";
import type { Scope } from "./route-scopes.ts";

/** Permissions of a key or session. Empty lists of ids: no restriction. No scopes: no access. */
export interface KeyRestrictions {
  scopes: string[];
  projectIds: number[];
  organizationIds: string[];
}

/** Permissions of a session that was not created with a key. */
export const unlimited: KeyRestrictions = { scopes: ["*"], projectIds: [], organizationIds: [] };

/** Whether these scopes include `wanted`. Writing implies reading. */
export function allows(scopes: readonly string[], wanted: Scope): boolean {
  return covers(scopes, wanted);
}

/** Whether everything is allowed everywhere. */
export function isUnlimited({ scopes, projectIds, organizationIds }: KeyRestrictions): boolean {
  return scopes.includes("*") && projectIds.length === 0 && organizationIds.length === 0;
}

/**
 * Whether `inner` allows nothing beyond `outer`.
 *
 * Restrictions are compared by kind: a restriction to projects that replaces one to organizations is not within it.
 */
export function isWithin(inner: KeyRestrictions, outer: KeyRestrictions): boolean {
  return (
    inner.scopes.every((scope) => covers(outer.scopes, scope)) &&
    isRestrictedTo(inner.projectIds, outer.projectIds) &&
    isRestrictedTo(inner.organizationIds, outer.organizationIds)
  );
}

function covers(scopes: readonly string[], wanted: string): boolean {
  if (scopes.includes("*") || scopes.includes(wanted)) return true;
  return wanted.endsWith(":read") && scopes.includes(`${wanted.slice(0, -":read".length)}:write`);
}

function isRestrictedTo<Id>(inner: readonly Id[], outer: readonly Id[]): boolean {
  return outer.length === 0 || (inner.length > 0 && inner.every((id) => outer.includes(id)));
}

/** Objects that this server has, plus those that PostHog's key presets name. */
const scopeObjects = new Set([
  "access_control",
  "action",
  "activity_log",
  "annotation",
  "batch_export",
  "cohort",
  "dashboard",
  "dashboard_template",
  "dataset",
  "early_access_feature",
  "element",
  "endpoint",
  "error_tracking",
  "evaluation",
  "event",
  "event_definition",
  "experiment",
  "experiment_saved_metric",
  "export",
  "external_data_source",
  "feature_flag",
  "file_system",
  "group",
  "hog_function",
  "ingestion_warning",
  "insight",
  "insight_variable",
  "integration",
  "llm_analytics",
  "logs",
  "notebook",
  "organization",
  "organization_member",
  "person",
  "plugin",
  "product_tour",
  "project",
  "property_definition",
  "query",
  "revenue_analytics",
  "session_recording",
  "session_recording_playlist",
  "sharing_configuration",
  "subscription",
  "survey",
  "task",
  "usage_metric",
  "user",
  "warehouse_table",
  "warehouse_view",
  "web_experiment",
  "webhook",
  "workflow",
]);

/**
 * @returns the scopes without duplicates.
 * @throws {InvalidFieldError} on `scopes`: the list is empty, or names a scope that does not exist.
 */
export function checkScopes(scopes: readonly string[]): string[] {
  if (scopes.length === 0) {
    throw new InvalidFieldError("scopes", "invalid_input", "A key needs at least one scope.");
  }
  for (const scope of scopes) {
    if (scope === "*") continue;
    const [object = "", action = "", rest] = scope.split(":");
    if (rest !== undefined || !scopeObjects.has(object) || (action !== "read" && action !== "write")) {
      throw new InvalidFieldError("scopes", "invalid_input", `Invalid scope: ${scope}`);
    }
  }
  return [...new Set(scopes)];
}
