/** Drizzle schema of `people.sqlite`; `migrations/` creates the tables and documents the columns. */

import { blob, customType, integer, primaryKey, real, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { parseExactJson } from "../lib/json/exact.ts";

/** JSON object with exact large integers. */
const exactJson = customType<{ data: Record<string, unknown>; driverData: string }>({
  dataType: () => "text",
  fromDriver: (text) => parseExactJson(text) as Record<string, unknown>,
  toDriver: (value) => JSON.stringify(value),
});

export const person = sqliteTable("person", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  uuid: text("uuid").notNull(),
  mainDistinctId: text("main_distinct_id").notNull(),
  isMainAlias: integer("is_main_alias", { mode: "boolean" }).notNull(),
  joinedCount: integer("joined_count").notNull(),
  isIdentified: integer("is_identified", { mode: "boolean" }).notNull(),
  createdMicros: integer("created_at").notNull(),
  version: integer("version").notNull(),
  searchText: text("search_text"),
  /** See `property-key-sets.ts`. */
  properties: text("properties").notNull(),
  propertyTimes: blob("property_times", { mode: "buffer" }).notNull(),
  unsetTimes: text("unset_times"),
});

export const distinctId = sqliteTable(
  "distinct_id",
  {
    projectId: integer("project_id").notNull(),
    distinctId: text("distinct_id").notNull(),
    personId: integer("person_id").notNull(),
    joined: integer("joined").notNull(),
  },
  (table) => [primaryKey({ columns: [table.projectId, table.distinctId] })],
);

export const groupType = sqliteTable(
  "group_type",
  {
    projectId: integer("project_id").notNull(),
    typeIndex: integer("type_index").notNull(),
    name: text("name").notNull(),
    createdMicros: integer("created_at").notNull(),
  },
  (table) => [primaryKey({ columns: [table.projectId, table.typeIndex] })],
);

export const projectGroup = sqliteTable("project_group", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  typeIndex: integer("type_index").notNull(),
  groupKey: text("group_key").notNull(),
  createdMicros: integer("created_at").notNull(),
  version: integer("version").notNull(),
  properties: exactJson("properties").notNull(),
  propertyTimes: blob("property_times", { mode: "buffer" }).notNull(),
});

export const cohortMember = sqliteTable(
  "cohort_member",
  { cohortId: integer("cohort_id").notNull(), personId: integer("person_id").notNull() },
  (table) => [primaryKey({ columns: [table.cohortId, table.personId] })],
);

export const change = sqliteTable("change", {
  changeId: integer("change_id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  personUuid: text("person_uuid").notNull(),
  distinctId: text("distinct_id"),
  isDeleted: integer("is_deleted", { mode: "boolean" }).notNull(),
});

export const laneCursor = sqliteTable("lane_cursor", {
  lane: text("lane", { enum: ["realtime", "historical"] }).primaryKey(),
  seq: integer("seq").notNull(),
});

export const ingestionWarning = sqliteTable("ingestion_warning", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  type: text("type").notNull(),
  subject: text("subject").notNull(),
  hour: integer("hour").notNull(),
  details: text("details", { mode: "json" }).$type<Record<string, unknown>>().notNull(),
  firstMicros: integer("first_at").notNull(),
  lastMicros: integer("last_at").notNull(),
  count: integer("count").notNull(),
});

export const usageDay = sqliteTable(
  "usage_day",
  {
    projectId: integer("project_id").notNull(),
    day: text("day").notNull(),
    identified: integer("identified").notNull(),
    anonymous: integer("anonymous").notNull(),
    historical: integer("historical").notNull(),
    duplicates: integer("duplicates").notNull(),
    dropped: integer("dropped").notNull(),
  },
  (table) => [primaryKey({ columns: [table.projectId, table.day] })],
);

export const eventRate = sqliteTable("event_rate", {
  projectId: integer("project_id").primaryKey(),
  firstMinute: integer("first_minute").notNull(),
  minutes: text("minutes", { mode: "json" })
    .$type<[minute: number, count: number, inSpike: 0 | 1][]>()
    .notNull(),
});

export const spike = sqliteTable("spike", {
  id: integer("id").primaryKey({ autoIncrement: true }),
  projectId: integer("project_id").notNull(),
  startedMicros: integer("started_at").notNull(),
  endedMicros: integer("ended_at"),
  lastAboveMicros: integer("last_above_at").notNull(),
  peakPerMinute: integer("peak_per_minute").notNull(),
  baselinePerMinute: real("usual_per_minute").notNull(),
  events: text("events", { mode: "json" }).$type<[name: string, count: number][]>().notNull(),
  distinctIds: text("distinct_ids", { mode: "json" })
    .$type<[distinctId: string, count: number][]>()
    .notNull(),
});
