/**
 * The tables of the metadata store for drizzle. They must agree with `migrations/`, which creates them
 * (test/accounts/schema.test.ts compares them).
 */

import { integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import type { Json, JsonObject } from "../lib/json/value.ts";
import { flagged, instant, json } from "./product-schema.ts";
import type { FlagView, WebGoal } from "./project-settings.ts";

export * from "./product-schema.ts";

export const organization = sqliteTable("organization", {
  id: text("id").primaryKey(),
  name: text("name").notNull(),
  slug: text("slug").notNull(),
  featureFlagsAccessLevel: integer("feature_flags_access_level").notNull().default(37),
  createdAt: instant("created_at").notNull(),
});

export const project = sqliteTable("project", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  uuid: text("uuid").notNull(),
  organizationId: text("organization_id").notNull(),
  name: text("name").notNull(),
  apiToken: text("api_token").notNull(),
  secretToken: text("secret_token").notNull(),
  timezone: text("timezone").notNull().default("UTC"),
  anonymizeIps: flagged("anonymize_ips").notNull().default(false),
  ingestedEvent: flagged("ingested_event").notNull().default(false),
  archivedAt: instant("archived_at"),
  approvals: text("approvals").$type<"off" | "critical" | "all">().notNull().default("off"),
  formerApiToken: text("former_api_token"),
  formerApiTokenEndsAt: instant("former_api_token_ends_at"),
  formerApiTokenUsedAt: instant("former_api_token_used_at"),
  formerApiTokenRequests: integer("former_api_token_requests").notNull().default(0),
  presentApiTokenRequests: integer("present_api_token_requests").notNull().default(0),
  formerSecretToken: text("former_secret_token"),
  formerSecretTokenEndsAt: instant("former_secret_token_ends_at"),
  formerSecretTokenUsedAt: instant("former_secret_token_used_at"),
  formerSecretTokenRequests: integer("former_secret_token_requests").notNull().default(0),
  presentSecretTokenRequests: integer("present_secret_token_requests").notNull().default(0),
  eventsRetentionDays: integer("events_retention_days"),
  weekStartDay: integer("week_start_day").$type<0 | 1>(),
  webGoals: json<WebGoal[]>("web_goals").notNull().default([]),
  countScreens: flagged("count_screens").notNull().default(false),
  flagViews: json<FlagView[]>("flag_views").notNull().default([]),
  createdAt: instant("created_at").notNull(),
});

export const user = sqliteTable("user", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  uuid: text("uuid").notNull(),
  distinctId: text("distinct_id").notNull(),
  email: text("email").notNull(),
  firstName: text("first_name").notNull().default(""),
  lastName: text("last_name").notNull().default(""),
  isEmailVerified: flagged("is_email_verified"),
  roleAtOrganization: text("role_at_organization"),
  hedgehogConfig: json<JsonObject>("hedgehog_config"),
  isActive: flagged("is_active").notNull().default(true),
  currentProjectId: integer("current_project_id"),
  currentOrganizationId: text("current_organization_id"),
  createdAt: instant("created_at").notNull(),
});

export const membership = sqliteTable("membership", {
  id: text("id").primaryKey(),
  organizationId: text("organization_id").notNull(),
  userId: integer("user_id").notNull(),
  level: integer("level").notNull(),
  joinedAt: instant("joined_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

export const personalKey = sqliteTable("personal_key", {
  id: text("id").primaryKey(),
  userId: integer("user_id").notNull(),
  label: text("label").notNull(),
  hash: text("hash").notNull(),
  mask: text("mask").notNull(),
  scopes: json<string[]>("scopes").notNull(),
  projectIds: json<number[]>("project_ids").notNull().default([]),
  organizationIds: json<string[]>("organization_ids").notNull().default([]),
  createdAt: instant("created_at").notNull(),
  lastUsedAt: instant("last_used_at"),
  lastRolledAt: instant("last_rolled_at"),
  expiresAt: instant("expires_at"),
  revokedAt: instant("revoked_at"),
});

export const userPassword = sqliteTable("user_password", {
  userId: integer("user_id").primaryKey(),
  hash: text("hash").notNull(),
  changedAt: instant("changed_at").notNull(),
});

export const setupLink = sqliteTable("setup_link", {
  hash: text("hash").primaryKey(),
  userId: integer("user_id").notNull(),
  createdAt: instant("created_at").notNull(),
  expiresAt: instant("expires_at").notNull(),
  createdById: integer("created_by_id"),
  createdWithKeyId: text("created_with_key_id"),
});

export const session = sqliteTable("session", {
  id: text("id").primaryKey(),
  hash: text("hash").notNull(),
  userId: integer("user_id").notNull(),
  keyId: text("key_id"),
  createdAt: instant("created_at").notNull(),
  lastSeenAt: instant("last_seen_at").notNull(),
  confirmedAt: instant("confirmed_at"),
  address: text("address").notNull().default(""),
  browser: text("browser").notNull().default(""),
});

export const role = sqliteTable("role", {
  id: text("id").primaryKey(),
  organizationId: text("organization_id").notNull(),
  name: text("name").notNull(),
  featureFlagsAccessLevel: integer("feature_flags_access_level").notNull(),
  createdById: integer("created_by_id"),
  createdAt: instant("created_at").notNull(),
});

export const roleMembership = sqliteTable("role_membership", {
  id: text("id").primaryKey(),
  roleId: text("role_id").notNull(),
  userId: integer("user_id").notNull(),
  joinedAt: instant("joined_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

export const dashboard = sqliteTable("dashboard", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  name: text("name").notNull(),
  description: text("description").notNull().default(""),
  pinned: flagged("pinned").notNull().default(false),
  deleted: flagged("deleted").notNull().default(false),
  creationMode: text("creation_mode").notNull().default("default"),
  restrictionLevel: integer("restriction_level").notNull().default(21),
  filters: json<JsonObject>("filters").notNull().default({}),
  variables: json<JsonObject>("variables").notNull().default({}),
  createdById: integer("created_by_id"),
  createdAt: instant("created_at").notNull(),
  lastAccessedAt: instant("last_accessed_at"),
});

export const insight = sqliteTable("insight", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  shortId: text("short_id").notNull(),
  name: text("name").notNull(),
  description: text("description").notNull().default(""),
  query: json<JsonObject>("query").notNull(),
  saved: flagged("saved").notNull().default(true),
  deleted: flagged("deleted").notNull().default(false),
  createdById: integer("created_by_id"),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
  derivedName: text("derived_name"),
  favorited: flagged("favorited").notNull().default(false),
});

export const tile = sqliteTable("tile", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  dashboardId: integer("dashboard_id").notNull(),
  insightId: integer("insight_id"),
  body: text("body"),
  layouts: json<JsonObject>("layouts").notNull().default({}),
  color: text("color"),
  position: integer("position").notNull().default(0),
  showDescription: flagged("show_description"),
});

export const flag = sqliteTable("flag", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  key: text("key").notNull(),
  name: text("name").notNull().default(""),
  filters: json<JsonObject>("filters").notNull(),
  active: flagged("active").notNull().default(true),
  deleted: flagged("deleted").notNull().default(false),
  version: integer("version").notNull().default(1),
  ensureExperienceContinuity: flagged("ensure_experience_continuity").default(false),
  isRemoteConfiguration: flagged("is_remote_configuration").default(false),
  hasEncryptedPayloads: flagged("has_encrypted_payloads").default(false),
  hasEnrichedAnalytics: flagged("has_enriched_analytics").default(false),
  performedRollback: flagged("performed_rollback"),
  rollbackConditions: json<Json>("rollback_conditions"),
  rollbackConditionsAt: instant("rollback_conditions_at"),
  surveys: json<JsonObject>("surveys").notNull().default({}),
  features: json<JsonObject>("features").notNull().default({}),
  evaluationTags: json<string[]>("evaluation_tags").notNull().default([]),
  evaluationRuntime: text("evaluation_runtime").default("all"),
  bucketingIdentifier: text("bucketing_identifier").default("distinct_id"),
  creationContext: text("creation_context").notNull().default("feature_flags"),
  usageDashboardId: integer("usage_dashboard_id"),
  searchText: text("search_text").notNull().default(""),
  variantCount: integer("variant_count").notNull().default(0),
  isFullyRolledOut: flagged("is_fully_rolled_out").notNull().default(false),
  createdById: integer("created_by_id"),
  createdAt: instant("created_at").notNull(),
  lastModifiedById: integer("last_modified_by_id"),
  updatedAt: instant("updated_at").notNull(),
  lastCalledAt: instant("last_called_at"),
  experimentSet: json<number[]>("experiment_set").notNull().default([]),
});

export const flagDashboard = sqliteTable(
  "flag_dashboard",
  { flagId: integer("flag_id").notNull(), dashboardId: integer("dashboard_id").notNull() },
  (table) => [primaryKey({ columns: [table.flagId, table.dashboardId] })],
);

export const roleAccess = sqliteTable("role_access", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  flagId: integer("flag_id").notNull(),
  roleId: text("role_id").notNull(),
  addedAt: instant("added_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

export type TaggedKind = "flag" | "dashboard" | "insight";

export const tag = sqliteTable(
  "tag",
  {
    projectId: integer("project_id").notNull(),
    itemKind: text("item_kind").$type<TaggedKind>().notNull(),
    itemId: integer("item_id").notNull(),
    name: text("name").notNull(),
  },
  (table) => [primaryKey({ columns: [table.itemKind, table.itemId, table.name] })],
);

export const cohort = sqliteTable("cohort", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  name: text("name").notNull(),
  description: text("description").notNull().default(""),
  groups: json<Json[]>("groups").notNull().default([]),
  filters: json<JsonObject>("filters").notNull().default({ properties: {} }),
  query: json<Json>("query"),
  deleted: flagged("deleted").notNull().default(false),
  isStatic: flagged("is_static").notNull().default(false),
  isCalculating: flagged("is_calculating").notNull().default(false),
  errorsCalculating: integer("errors_calculating").notNull().default(0),
  personCount: integer("person_count"),
  lastCalculation: instant("last_calculation"),
  createdById: integer("created_by_id"),
  createdAt: instant("created_at").notNull(),
});

export const cohortSize = sqliteTable(
  "cohort_size",
  {
    cohortId: integer("cohort_id").notNull(),
    day: text("day").notNull(),
    count: integer("count").notNull(),
  },
  (table) => [primaryKey({ columns: [table.cohortId, table.day] })],
);

export const scheduledChange = sqliteTable("scheduled_change", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  flagId: integer("flag_id").notNull(),
  payload: json<JsonObject>("payload").notNull(),
  scheduledAt: instant("scheduled_at").notNull(),
  executedAt: instant("executed_at"),
  failureReason: text("failure_reason"),
  createdById: integer("created_by_id").notNull(),
  createdAt: instant("created_at").notNull(),
});

export const requestStates = ["pending", "applied", "rejected", "withdrawn"] as const;

/** For a flag or a cohort. */
export const changeRequest = sqliteTable("change_request", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  flagId: integer("flag_id"),
  cohortId: integer("cohort_id"),
  changes: json<JsonObject>("changes").notNull(),
  original: json<JsonObject>("original").notNull(),
  version: integer("version").notNull(),
  note: text("note").notNull().default(""),
  state: text("state").$type<(typeof requestStates)[number]>().notNull().default("pending"),
  createdById: integer("created_by_id").notNull(),
  createdAt: instant("created_at").notNull(),
  decidedById: integer("decided_by_id"),
  decidedAt: instant("decided_at"),
});

/** Objects that use a flag. */
export const flagLink = sqliteTable(
  "flag_link",
  {
    kind: text("kind").$type<"experiment" | "feature" | "survey">().notNull(),
    objectId: text("object_id").notNull(),
    flagId: integer("flag_id").notNull(),
    name: text("name").notNull(),
    shown: json<JsonObject>("shown").notNull().default({}),
    holds: flagged("holds").notNull().default(false),
  },
  (table) => [primaryKey({ columns: [table.kind, table.objectId, table.flagId] })],
);

export const activity = sqliteTable("activity", {
  id: text("id").primaryKey(),
  organizationId: text("organization_id"),
  projectId: integer("project_id"),
  userId: integer("user_id"),
  isSystem: flagged("is_system").notNull().default(false),
  activity: text("activity").notNull(),
  scope: text("scope").notNull(),
  itemId: text("item_id").notNull(),
  detail: json<JsonObject>("detail").notNull(),
  createdAt: instant("created_at").notNull(),
});

export const webhookFormats = ["json", "slack", "discord", "custom"] as const;
export type WebhookFormat = (typeof webhookFormats)[number];

/** `url` and `secret` are encrypted. */
export const webhook = sqliteTable("webhook", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  name: text("name").notNull().default(""),
  url: text("url").notNull(),
  shownUrl: text("shown_url").notNull(),
  format: text("format").$type<WebhookFormat>().notNull(),
  template: json<JsonObject>("template"),
  events: json<string[]>("events").notNull(),
  secret: text("secret").notNull(),
  active: flagged("active").notNull().default(true),
  skipped: integer("skipped").notNull().default(0),
  summaryWeek: text("summary_week").notNull().default(""),
  createdById: integer("created_by_id"),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

export const deliveryStates = ["pending", "delivered", "failed"] as const;

export const webhookDelivery = sqliteTable("webhook_delivery", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  uuid: text("uuid").notNull(),
  webhookId: integer("webhook_id").notNull(),
  event: text("event").notNull(),
  item: text("item").notNull().default(""),
  subject: json<JsonObject>("subject").notNull(),
  state: text("state").$type<(typeof deliveryStates)[number]>().notNull().default("pending"),
  attempts: integer("attempts").notNull().default(0),
  createdAt: instant("created_at").notNull(),
  nextAttemptAt: instant("next_attempt_at"),
  lastAttemptAt: instant("last_attempt_at"),
  durationMs: integer("duration_ms"),
  status: integer("status"),
  error: text("error"),
});

export const webhookReported = sqliteTable("webhook_reported", {
  name: text("name").primaryKey(),
  value: text("value").notNull(),
});

/** Shows one dashboard or insight to everyone who has the link. */
export const shareLink = sqliteTable("share_link", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  dashboardId: integer("dashboard_id"),
  insightId: integer("insight_id"),
  overview: json<JsonObject | null>("overview"),
  name: text("name").notNull().default(""),
  hash: text("hash").notNull(),
  passwordHash: text("password_hash"),
  expiresAt: instant("expires_at"),
  createdById: integer("created_by_id"),
  createdAt: instant("created_at").notNull(),
});

export const annotationScopes = ["project", "dashboard", "dashboard_item"] as const;

export const annotation = sqliteTable("annotation", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  content: text("content").notNull(),
  dateMarker: instant("date_marker").notNull(),
  scope: text("scope").$type<(typeof annotationScopes)[number]>().notNull().default("project"),
  dashboardId: integer("dashboard_id"),
  insightId: integer("insight_id"),
  deleted: flagged("deleted").notNull().default(false),
  createdById: integer("created_by_id"),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

/** The encryption key of payloads, in one row. */
export const payloadKey = sqliteTable("payload_key", {
  id: integer("id").primaryKey(),
  fingerprint: text("fingerprint").notNull(),
});

export const revision = sqliteTable("revision", {
  name: text("name").primaryKey(),
  value: integer("value").notNull(),
});
