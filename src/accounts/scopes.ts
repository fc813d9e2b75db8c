/** Scopes of personal keys (contract: management-api 2.2, 2.5). */

import { InvalidFieldError } from "../lib/errors.ts";

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
