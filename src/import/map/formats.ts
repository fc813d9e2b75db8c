/** Record formats: their names, detection, and mapping. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import type { RecordMembers } from "../read/record-copier.ts";
import { fromAmplitude } from "./amplitude.ts";
import { flagkeepMembers, fromFlagkeep, fromGroup, fromPerson, isOwnExport } from "./flagkeep.ts";
import { fromGa4, fromGa4User } from "./ga4.ts";
import { fromHeap } from "./heap.ts";
import { isPlaceholder } from "./identity.ts";
import { getId, toObject } from "./lenient-json.ts";
import type { MappedRecord } from "./mapped.ts";
import { fromMatomo } from "./matomo.ts";
import { isEmpty } from "./members.ts";
import { fromMixpanel, fromMixpanelGroups, fromMixpanelPeople, mixpanelUser } from "./mixpanel.ts";
import { fromPlausible } from "./plausible.ts";
import { fromPostHog, posthogFields, posthogMembers } from "./posthog.ts";
import { fromSegment } from "./segment.ts";
import { isWarehouseRow } from "./segment-tables.ts";
import { fromSnowplow } from "./snowplow.ts";
import { fromUmami, type UmamiLookup } from "./umami.ts";

/*
 * Detects reports: totals per day, page or campaign, as the interfaces of analytics products export them. Their records
 * are not events (contract, import 1.9). Pure.
 */

/** Totals that no event has, in lower case: of Plausible's, GA4's and Umami's interfaces. */
const totals = new Set([
  "visitors",
  "visits",
  "pageviews",
  "page views",
  "views",
  "sessions",
  "users",
  "bounces",
  "bounce_rate",
  "bounce rate",
  "visit_duration",
  "views_per_visit",
  "totaltime",
  "active users",
  "new users",
  "total users",
  "returning users",
  "event count",
  "engaged sessions",
  "engagement rate",
  "key events",
  "total revenue",
  "unique_conversions",
  "total_conversions",
  "unique_entrances",
  "total_entrances",
  "unique_exits",
  "total_exits",
  "exit_rate",
  "uniques",
  "unique users",
  "total events",
]);
/** Columns of a report by time, which has any other numbers. */
const days = new Set(["date", "day", "week", "month", "nth day", "nth week", "nth month", "date range"]);
/** Totals in a report by time. */
const values = new Set(["value", "count", "total"]);
const dayForm = /^\d{4}-\d\d-\d\d(?:[T ].*)?$/;
/** A row about one user or device is no total. */
const idForm = /(?:^|[\W_])(?:id|uuid|user|user ?name|email|device|client|customer|visitor|account|person)$/i;
/** Members of Mixpanel's reports. */
const reports: readonly (readonly string[])[] = [
  ["computed_at", "series"],
  ["legend_size", "data"],
  ["date_range", "series"],
];

/** @param record of no known format. */
export function isTotals(record: JsonObject): boolean {
  const names = Object.keys(record);
  if (reports.some((members) => members.every((name) => Object.hasOwn(record, name)))) return true;
  if (isByDay(names) || (isJsonObject(record.data) && isByDay(Object.keys(record.data)))) return true;
  // Umami's API.
  if (names.length > 0 && names.every((name) => name === "x" || name === "y" || name === "t")) return true;
  if (names.some((name) => idForm.test(name))) return false;
  const lower = names.map((name) => name.trim().toLowerCase());
  if (lower.some((name) => totals.has(name))) return true;
  const others = names.filter((_, at) => !days.has(lower[at]!));
  if (others.length === names.length || others.length === 0) return false;
  return lower.some((name) => values.has(name)) || others.every((name) => isNumber(record[name]));
}

/** Whether the columns of a table are days. */
function isByDay(names: readonly string[]): boolean {
  return names.some((name) => dayForm.test(name));
}

function isNumber(value: unknown): boolean {
  return typeof value === "number" || (typeof value === "string" && /^-?[\d.,]+%?$/.test(value));
}

/** Context of a record: its file, and the lookup files of the same folder or archive. */
export interface MapContext {
  /** Name of the table: the file's name without its folder and extensions. */
  table: string;
  umami: (eventId: string | undefined, sessionId: string | undefined) => UmamiLookup;
  /** A row of Heap's table `users`. */
  heapUser: (userId: string | undefined) => JsonObject | undefined;
}

/** A record without context. */
export const noContext: MapContext = {
  table: "",
  umami: () => ({}),
  heapUser: () => undefined,
};

type Has = (...names: string[]) => boolean;

interface Format {
  /** For messages. */
  title: string;
  map: (record: JsonObject, context: MapContext) => MappedRecord;
  /** If records are events already: the meaning of their members. */
  members?: RecordMembers;
  /** If records name devices and users: the user, as in the record. */
  user?: (record: JsonObject) => Json | undefined;
  /** Members of a record of this format, each or one of several; some may be without a value. */
  requires: readonly (string | readonly string[])[];
  /** Whether a record has this format; absent: if it has the required members. */
  matches?: (has: Has, record: JsonObject) => boolean;
}

const segmentTypes = new Set(["track", "identify", "page", "screen", "group", "alias"]);

/** In order of detection: those identified by more members come first. */
const formats = {
  flagkeep: {
    title: "Flagkeep's export of events",
    map: fromFlagkeep,
    members: flagkeepMembers,
    requires: ["uuid", "properties", "received_at", "seq"],
    matches: (_, record) => isOwnExport(record),
  },
  persons: {
    title: "persons",
    map: fromPerson,
    requires: ["properties", ["distinct_ids", "distinct_id"], ["distinct_ids", "person_id"]],
    matches: (has, record) => !has("event") && lacks("persons", record).length === 0,
  },
  groups: {
    title: "groups",
    map: fromGroup,
    requires: [
      ["group_type", "type"],
      ["group_key", "key"],
      ["group_properties", "properties"],
    ],
    matches: (has) =>
      !has("event") &&
      (has("type", "key", "properties", "type_index") ||
        (has("group_properties") && (has("group_type") || has("type")) && (has("group_key") || has("key")))),
  },
  "mixpanel-people": {
    title: "Mixpanel's export of people",
    map: fromMixpanelPeople,
    requires: ["$distinct_id", "$properties"],
  },
  "mixpanel-groups": {
    title: "Mixpanel's export of group profiles",
    map: fromMixpanelGroups,
    requires: ["$group_key", "$group_id", "$properties"],
  },
  ga4: {
    title: "GA4's export to BigQuery",
    map: (record, { table }) => fromGa4(record, table),
    user: ({ user_id }) => user_id,
    requires: ["event_name", "event_timestamp", ["user_pseudo_id", "event_params"]],
  },
  "ga4-users": {
    title: "GA4's export of users to BigQuery",
    map: fromGa4User,
    requires: ["user_properties", "user_info", ["pseudo_user_id", "user_id"]],
    matches: (has, record) => !has("event_name") && lacks("ga4-users", record).length === 0,
  },
  umami: {
    title: "Umami's table website_event",
    map: (record, { umami }) => {
      const event = record.event_id;
      const session = record.session_id;
      return fromUmami(record, umami(toDisplayString(event), toDisplayString(session)));
    },
    user: ({ distinct_id }) => distinct_id,
    requires: ["website_id", "session_id", "created_at", ["url_path", "event_type"]],
  },
  plausible: {
    title: "Plausible's table events_v2",
    map: fromPlausible,
    requires: ["name", "user_id", "timestamp", "pathname", "hostname", ["site_id", "domain"]],
  },
  matomo: {
    title: "Matomo's visits",
    map: fromMatomo,
    user: ({ userId }) => userId,
    requires: ["idVisit", "visitorId", ["actionDetails", "actionDetails_0_type", "idSite"]],
  },
  snowplow: {
    title: "Snowplow's enriched events",
    map: fromSnowplow,
    user: ({ user_id }) => user_id,
    requires: ["event_id", "collector_tstamp", ["domain_userid", "v_collector"]],
  },
  heap: {
    title: "Heap Connect's tables",
    map: (record, { table, heapUser }) => fromHeap(record, table, heapUser(toDisplayString(record.user_id))),
    requires: ["user_id", "session_id", "time", ["event_id", "event_table_name", "landing_page"]],
    matches: (has, record) => !has("event_type") && lacks("heap", record).length === 0,
  },
  amplitude: {
    title: "Amplitude's export",
    map: fromAmplitude,
    user: ({ user_id }) => user_id,
    requires: ["event_type", ["user_id", "device_id", "amplitude_id"]],
  },
  mixpanel: {
    title: "Mixpanel's raw export",
    map: fromMixpanel,
    user: mixpanelUser,
    requires: ["event", "properties", "properties.time"],
    matches: (has, record) => {
      const properties = toObject(record.properties);
      const isTimed = Object.hasOwn(properties, "time");
      return has("event", "properties") && isTimed && !has("timestamp") && !has("distinct_id");
    },
  },
  rudderstack: {
    title: "RudderStack's messages",
    map: (record, { table }) => fromSegment("rudderstack", record, table),
    user: segmentUser,
    requires: ["type", ["userId", "anonymousId", "messageId"], ["rudderId", "rudder_id"]],
    matches: (has, record) => {
      const library = toObject(toObject(record.context).library).name ?? record.context_library_name;
      const isRudder = has("rudderId") || has("rudder_id") || /rudder/i.test(String(library ?? ""));
      return isRudder && (isSegmentMessage(has, record) || isWarehouseRow(record));
    },
  },
  segment: {
    title: "Segment's messages",
    map: (record, { table }) => fromSegment("segment", record, table),
    user: segmentUser,
    requires: ["type", ["userId", "anonymousId", "messageId"]],
    matches: (has, record) => isSegmentMessage(has, record) || isWarehouseRow(record),
  },
  posthog: {
    title: "PostHog's export of events",
    map: fromPostHog,
    members: posthogMembers,
    requires: ["event", "distinct_id", posthogFields],
  },
  events: {
    title: "events",
    map: fromFlagkeep,
    members: flagkeepMembers,
    requires: ["event", "distinct_id", "timestamp"],
    matches: (has) => has("event") || has("distinct_id"),
  },
} satisfies Record<string, Format>;

function isSegmentMessage(has: Has, record: JsonObject): boolean {
  const isNamed = has("userId") || has("anonymousId") || has("messageId");
  return isNamed && segmentTypes.has(String(record.type));
}

function segmentUser({ userId, user_id }: JsonObject): Json | undefined {
  return isEmpty(userId) ? user_id : userId;
}

const toDisplayString = (value: unknown) =>
  typeof value === "string" || typeof value === "number" ? String(value) : undefined;

/** Record formats. */
export type RecordFormat = keyof typeof formats;

/** Values of `--format`: `auto`, a record format for any file type, or a file type that contains events. */
export const importFormats = [
  "auto",
  "ndjson",
  "csv",
  "parquet",
  ...(Object.keys(formats) as RecordFormat[]),
];
export type ImportFormat = "auto" | "ndjson" | "csv" | "parquet" | RecordFormat;

/** Whether a format only names the file type. */
export function isFileType(format: ImportFormat): format is "ndjson" | "csv" | "parquet" {
  return format === "ndjson" || format === "csv" || format === "parquet";
}

/** Detects the format of a record by its members; undefined when no format matches. */
export function detectFormat(record: JsonObject): RecordFormat | "totals" | undefined {
  const has = (...names: string[]) => names.every((name) => Object.hasOwn(record, name));
  for (const [name, { matches }] of Object.entries(formats) as [RecordFormat, Format][])
    if (matches === undefined ? lacks(name, record).length === 0 : matches(has, record)) return name;
  return isTotals(record) ? "totals" : undefined;
}

/** The required members of a format that a record does not have: names, or several of which it needs one. */
function lacks(name: string, record: JsonObject): Format["requires"] {
  const hasOne = (member: string) =>
    Object.hasOwn(record, member) ||
    (member.startsWith(inProperties) &&
      Object.hasOwn(toObject(record.properties), member.slice(inProperties.length)));
  const { requires } = (formats as Record<string, Format>)[name]!;
  return requires.filter((group) => !(typeof group === "string" ? hasOne(group) : group.some(hasOne)));
}

const inProperties = "properties.";

/** A format that a record does not match, and its missing members. */
export interface NearFormat {
  format: RecordFormat;
  lacks: Format["requires"];
}

/** The formats of which an unrecognized record has the most members, nearest first. */
export function nearestFormats(record: JsonObject, count: number): NearFormat[] {
  const near = (Object.keys(formats) as RecordFormat[]).map((format) => {
    const lacking = lacks(format, record);
    const { requires } = formats[format];
    return { format, lacks: lacking, share: 1 - lacking.length / requires.length };
  });
  // With equally many members the general format is the nearest.
  const isGeneral = ({ format }: NearFormat) => (format === "events" ? 1 : 0);
  near.sort((a, b) => b.share - a.share || isGeneral(b) - isGeneral(a) || a.lacks.length - b.lacks.length);
  return near.slice(0, count).map(({ format, lacks }) => ({ format, lacks }));
}

export function getTitle(format: RecordFormat): string {
  return formats[format].title;
}

/** Whether records of a format may name a device and a user. */
export function hasUsers(format: RecordFormat): boolean {
  return (formats[format] as Format).user !== undefined;
}

/** The user of a record; undefined when it names none, or only a placeholder. */
export function getUser(format: RecordFormat, record: JsonObject): string | undefined {
  const id = getId((formats[format] as Format).user?.(record));
  return id === undefined || isPlaceholder(id) ? undefined : id;
}

/** The members of typical records; undefined when a record is not simply an event. */
export function getMembers(format: RecordFormat): RecordMembers | undefined {
  return (formats[format] as Format).members;
}

/** Maps a record to events; ingestion's own rules find missing or invalid data, not this function. */
export function mapRecord(
  format: RecordFormat,
  record: JsonObject,
  context: MapContext = noContext,
): MappedRecord {
  return (formats[format] as Format).map(record, context);
}
