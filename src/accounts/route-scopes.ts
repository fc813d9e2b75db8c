/** Scopes that routes require. The console imports this module too, to offer them for a new key. */

/** Each is required by at least one route. */
export const routeScopes = [
  ...(["feature_flag:read", "feature_flag:write"] as const),
  ...(["cohort:read", "cohort:write"] as const),
  ...(["dashboard:read", "dashboard:write"] as const),
  ...(["insight:read", "insight:write"] as const),
  ...(["event:read", "event:write"] as const),
  ...(["person:read", "person:write"] as const),
  ...(["project:read", "project:write"] as const),
  ...(["organization:read", "organization:write"] as const),
  ...(["organization_member:read", "organization_member:write"] as const),
  ...(["user:read", "user:write"] as const),
  ...(["sharing_configuration:read", "sharing_configuration:write"] as const),
  ...(["annotation:read", "annotation:write"] as const),
  ...(["webhook:read", "webhook:write"] as const),
  ...(["experiment:read", "experiment:write"] as const),
  ...(["experiment_saved_metric:read", "experiment_saved_metric:write"] as const),
  ...(["early_access_feature:read", "early_access_feature:write"] as const),
  ...(["survey:read", "survey:write"] as const),
  ...(["web_experiment:read", "web_experiment:write"] as const),
  ...(["query:read", "group:read"] as const),
  ...(["event_definition:read", "property_definition:read"] as const),
  ...(["ingestion_warning:read", "activity_log:read"] as const),
] as const;

/** Scope of a route; a scope that is not in the list does not compile. */
export type Scope = (typeof routeScopes)[number];
