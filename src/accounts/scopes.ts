/** Which scopes a personal key may hold, and what each allows (contract: management-api 2.2, 2.5). */

import { InvalidField } from "../lib/errors.ts";
import type { Scope } from "./route-scopes.ts";

/** Objects that this server has, and those that key presets made for PostHog name as well. */
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
 * Checks the scopes of a key.
 *
 * @returns the scopes without repetitions; an empty list stands for everything and becomes `["*"]`.
 * @throws {InvalidField} on `scopes`, naming the first that does not exist.
 */
export function checkScopes(scopes: readonly string[]): string[] {
  for (const scope of scopes) {
    if (scope === "*") continue;
    const [object = "", action = "", rest] = scope.split(":");
    if (rest !== undefined || !scopeObjects.has(object) || (action !== "read" && action !== "write")) {
      throw new InvalidField("scopes", "invalid_input", `Invalid scope: ${scope}`);
    }
  }
  return scopes.length === 0 ? ["*"] : [...new Set(scopes)];
}

/** Whether a key with these scopes may do what needs `wanted`. Writing implies reading. */
export function allows(scopes: readonly string[], wanted: Scope): boolean {
  if (scopes.includes("*") || scopes.includes(wanted)) return true;
  return wanted.endsWith(":read") && scopes.includes(`${wanted.slice(0, -":read".length)}:write`);
}
