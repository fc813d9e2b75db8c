/** Tables of experiments, early access features and surveys. */

import { type SQL, sql } from "drizzle-orm";
import { customType, integer, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { formatNumber, parseExactJson } from "../lib/json/exact.ts";
import type { Json, JsonObject } from "../lib/json/value.ts";

/** A time in milliseconds since 1970. */
export const instant = (name: string) => integer(name, { mode: "timestamp_ms" });
export const flagged = (name: string) => integer(name, { mode: "boolean" });
/** JSON as it was sent: a 64-bit id in a condition keeps its digits. */
const toJsonString = customType<{ data: unknown; driverData: string }>({
  dataType: () => "text",
  toDriver: (value) => JSON.stringify(value),
  fromDriver: parseExactJson,
});
export const json = <T>(name: string) => toJsonString(name).$type<T>();

/**
 * A value for a column that any JSON may be written to: drizzle fails at a number that keeps its source form, because
 * such a value has no prototype.
 */
export function anyJsonValue(value: Json): Json | SQL {
  const digits = formatNumber(value);
  return digits === undefined ? value : sql`${digits}`;
}

export const experimentHoldout = sqliteTable("experiment_holdout", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  name: text("name").notNull(),
  description: text("description").notNull().default(""),
  filters: json<JsonObject[]>("filters").notNull(),
  createdById: integer("created_by_id"),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

export const experimentSavedMetric = sqliteTable("experiment_saved_metric", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  name: text("name").notNull(),
  description: text("description").notNull().default(""),
  query: json<JsonObject>("query").notNull(),
  tags: json<string[]>("tags").notNull().default([]),
  createdById: integer("created_by_id"),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
});

export const experiment = sqliteTable("experiment", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  flagId: integer("flag_id").notNull(),
  ownsFlag: flagged("owns_flag").notNull().default(false),
  name: text("name").notNull(),
  description: text("description").notNull().default(""),
  type: text("type").$type<"product" | "web">().notNull().default("product"),
  tags: json<string[]>("tags").notNull().default([]),
  parameters: json<JsonObject>("parameters").notNull().default({}),
  startDate: instant("start_date"),
  endDate: instant("end_date"),
  archived: flagged("archived").notNull().default(false),
  deleted: flagged("deleted").notNull().default(false),
  metrics: json<JsonObject[]>("metrics").notNull().default([]),
  metricsSecondary: json<JsonObject[]>("metrics_secondary").notNull().default([]),
  savedMetrics: json<JsonObject[]>("saved_metrics").notNull().default([]),
  exposureCriteria: json<JsonObject>("exposure_criteria").notNull().default({}),
  statsConfig: json<JsonObject>("stats_config").notNull().default({}),
  onlyCountMaturedUsers: flagged("only_count_matured_users").notNull().default(false),
  minimumExposures: integer("minimum_exposures").notNull().default(100),
  excludedVariants: json<string[]>("excluded_variants").notNull().default([]),
  primaryMetricsOrder: json<string[]>("primary_metrics_order"),
  secondaryMetricsOrder: json<string[]>("secondary_metrics_order"),
  runningTimeCalculation: json<JsonObject>("running_time_calculation").notNull().default({}),
  holdoutId: integer("holdout_id"),
  conclusion: text("conclusion"),
  conclusionComment: text("conclusion_comment"),
  version: integer("version").notNull().default(1),
  createdById: integer("created_by_id"),
  createdAt: instant("created_at").notNull(),
  updatedAt: instant("updated_at").notNull(),
  webVariants: json<JsonObject>("web_variants"),
});

export const earlyAccessFeature = sqliteTable("early_access_feature", {
  id: text("id").primaryKey(),
  projectId: integer("project_id").notNull(),
  flagId: integer("flag_id").notNull(),
  ownsFlag: flagged("owns_flag").notNull().default(false),
  name: text("name").notNull(),
  description: text("description").notNull().default(""),
  stage: text("stage").notNull(),
  documentationUrl: text("documentation_url").notNull().default(""),
  payload: json<JsonObject>("payload").notNull().default({}),
  createdById: integer("created_by_id"),
  createdAt: instant("created_at").notNull(),
});

export const survey = sqliteTable("survey", {
  id: text("id").primaryKey(),
  projectId: integer("project_id").notNull(),
  name: text("name").notNull(),
  description: text("description").notNull().default(""),
  type: text("type").notNull(),
  schedule: text("schedule").notNull().default("once"),
  questions: json<JsonObject[]>("questions").notNull(),
  conditions: json<JsonObject>("conditions").notNull().default({}),
  appearance: json<JsonObject>("appearance").notNull().default({}),
  linkedFlagId: integer("linked_flag_id"),
  targetingFlagId: integer("targeting_flag_id"),
  internalTargetingFlagId: integer("internal_targeting_flag_id").notNull(),
  startDate: instant("start_date"),
  endDate: instant("end_date"),
  archived: flagged("archived").notNull().default(false),
  enablePartialResponses: flagged("enable_partial_responses").notNull().default(false),
  responsesLimit: integer("responses_limit"),
  iterationCount: integer("iteration_count"),
  iterationFrequencyDays: integer("iteration_frequency_days"),
  currentIteration: integer("current_iteration"),
  currentIterationStartDate: instant("current_iteration_start_date"),
  translations: json<JsonObject>("translations").notNull().default({}),
  createdById: integer("created_by_id"),
  createdAt: instant("created_at").notNull(),
});
