/** The scopes that routes ask for. The console's page has this module too: it offers them for a new key. */

/** Each is asked for by some route. */
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
  ...(["query:read", "group:read"] as const),
  ...(["event_definition:read", "property_definition:read"] as const),
  ...(["ingestion_warning:read", "activity_log:read"] as const),
] as const;

/** What a route may ask for: one that is not in the list does not compile. */
export type Scope = (typeof routeScopes)[number];
