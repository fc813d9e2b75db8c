/** The formats of records: what each is called, how it is detected, and how a record is mapped. Pure. */

import type { JsonObject } from "../../lib/json.ts";
import type { RecordMembers } from "../read/record-copier.ts";
import { fromAmplitude } from "./amplitude.ts";
import { flagkeepMembers, fromFlagkeep, fromGroup, fromPerson, isOwnExport } from "./flagkeep.ts";
import { fromGa4, fromGa4User } from "./ga4.ts";
import { fromHeap } from "./heap.ts";
import { objectOf } from "./loose-json.ts";
import type { MappedRecord } from "./mapped.ts";
import { fromMatomo } from "./matomo.ts";
import { fromMixpanel, fromMixpanelGroups, fromMixpanelPeople } from "./mixpanel.ts";
import { fromPlausible } from "./plausible.ts";
import { fromPostHog, posthogMarks, posthogMembers } from "./posthog.ts";
import { fromSegment } from "./segment.ts";
import { isWarehouseRow } from "./segment-tables.ts";
import { fromSnowplow } from "./snowplow.ts";
import { fromUmami, type UmamiLookup } from "./umami.ts";

/** What a record's neighbors say about it: its file, and the lookup files of the same folder or archive. */
export interface MapContext {
  /** Of the table: the file's name without its folder and endings. */
  table: string;
  umami: (eventId: string | undefined, sessionId: string | undefined) => UmamiLookup;
  /** A row of Heap's table `users`. */
  heapUser: (userId: string | undefined) => JsonObject | undefined;
}

/** A record alone. */
export const noContext: MapContext = {
  table: "",
  umami: () => ({}),
  heapUser: () => undefined,
};

type Has = (...names: string[]) => boolean;

interface Format {
  /** For a sentence. */
  title: string;
  map: (record: JsonObject, context: MapContext) => MappedRecord;
  /** Where a record is an event already: what its members are. */
  members?: RecordMembers;
  /** Whether a record with these members is one; not all of them need to have a value. */
  matches: (has: Has, record: JsonObject) => boolean;
}

const segmentTypes = new Set(["track", "identify", "page", "screen", "group", "alias"]);

/** In the order in which they are tried: those that more members identify come first. */
const formats = {
  flagkeep: {
    title: "Flagkeep's export of events",
    map: fromFlagkeep,
    members: flagkeepMembers,
    matches: (_, record) => isOwnExport(record),
  },
  persons: {
    title: "persons",
    map: fromPerson,
    matches: (has) =>
      has("properties") && (has("distinct_ids") || has("distinct_id", "person_id")) && !has("event"),
  },
  groups: {
    title: "groups",
    map: fromGroup,
    matches: (has) =>
      !has("event") &&
      (has("type", "key", "properties", "type_index") || has("group_type", "group_key", "group_properties")),
  },
  "mixpanel-people": {
    title: "Mixpanel's export of people",
    map: fromMixpanelPeople,
    matches: (has) => has("$distinct_id", "$properties"),
  },
  "mixpanel-groups": {
    title: "Mixpanel's export of group profiles",
    map: fromMixpanelGroups,
    matches: (has) => has("$group_key", "$group_id", "$properties"),
  },
  ga4: {
    title: "GA4's export to BigQuery",
    map: fromGa4,
    matches: (has) => has("event_name", "event_timestamp") && (has("user_pseudo_id") || has("event_params")),
  },
  "ga4-users": {
    title: "GA4's export of users to BigQuery",
    map: fromGa4User,
    matches: (has) =>
      has("user_properties", "user_info") && (has("pseudo_user_id") || has("user_id")) && !has("event_name"),
  },
  umami: {
    title: "Umami's table website_event",
    map: (record, { umami }) => {
      const [event, session] = [record.event_id, record.session_id];
      return fromUmami(record, umami(textOf(event), textOf(session)));
    },
    matches: (has) => has("website_id", "session_id", "created_at") && (has("url_path") || has("event_type")),
  },
  plausible: {
    title: "Plausible's table events_v2",
    map: fromPlausible,
    matches: (has) =>
      has("name", "user_id", "timestamp") && has("pathname", "hostname") && (has("site_id") || has("domain")),
  },
  matomo: {
    title: "Matomo's visits",
    map: fromMatomo,
    matches: (has) =>
      has("idVisit", "visitorId") && (has("actionDetails") || has("actionDetails_0_type") || has("idSite")),
  },
  snowplow: {
    title: "Snowplow's enriched events",
    map: fromSnowplow,
    matches: (has) => has("event_id", "collector_tstamp") && (has("domain_userid") || has("v_collector")),
  },
  heap: {
    title: "Heap Connect's tables",
    map: (record, { table, heapUser }) => fromHeap(record, table, heapUser(textOf(record.user_id))),
    matches: (has) =>
      has("user_id", "session_id", "time") &&
      (has("event_id") || has("event_table_name") || has("landing_page")) &&
      !has("event_type"),
  },
  amplitude: {
    title: "Amplitude's export",
    map: fromAmplitude,
    matches: (has) => has("event_type") && (has("user_id") || has("device_id") || has("amplitude_id")),
  },
  mixpanel: {
    title: "Mixpanel's raw export",
    map: fromMixpanel,
    matches: (has, record) => {
      const properties = objectOf(record.properties);
      const isTimed = Object.hasOwn(properties, "time");
      return has("event", "properties") && isTimed && !has("timestamp") && !has("distinct_id");
    },
  },
  rudderstack: {
    title: "RudderStack's messages",
    map: fromSegment,
    matches: (has, record) => {
      const library = objectOf(objectOf(record.context).library).name ?? record.context_library_name;
      const isRudder = has("rudderId") || has("rudder_id") || /rudder/i.test(String(library ?? ""));
      return isRudder && (isSegmentMessage(has, record) || isWarehouseRow(record));
    },
  },
  segment: {
    title: "Segment's messages",
    map: fromSegment,
    matches: (has, record) => isSegmentMessage(has, record) || isWarehouseRow(record),
  },
  posthog: {
    title: "PostHog's export of events",
    map: fromPostHog,
    members: posthogMembers,
    matches: (has) => has("event", "distinct_id") && posthogMarks.some((name) => has(name)),
  },
  events: {
    title: "events",
    map: fromFlagkeep,
    members: flagkeepMembers,
    matches: (has) => has("event") || has("distinct_id"),
  },
} satisfies Record<string, Format>;

function isSegmentMessage(has: Has, record: JsonObject): boolean {
  const isNamed = has("userId") || has("anonymousId") || has("messageId");
  return isNamed && segmentTypes.has(String(record.type));
}

const textOf = (value: unknown) =>
  typeof value === "string" || typeof value === "number" ? String(value) : undefined;

/** How records are mapped. */
export type RecordFormat = keyof typeof formats;

/** What `--format` takes: `auto`, a format of records in any shape of file, or a shape that holds events. */
export const importFormats = [
  "auto",
  "ndjson",
  "csv",
  "parquet",
  ...(Object.keys(formats) as RecordFormat[]),
];
export type ImportFormat = "auto" | "ndjson" | "csv" | "parquet" | RecordFormat;

/** Whether a format says only how records stand in the file. */
export function isShape(format: ImportFormat): format is "ndjson" | "csv" | "parquet" {
  return format === "ndjson" || format === "csv" || format === "parquet";
}

/** Members of tables that hold totals per day: no record of them can become an event. */
const totals: readonly (readonly string[])[] = [
  ["date", "visitors"],
  ["date", "pageviews"],
  ["date", "sessions"],
];

/** What a record is by its members; undefined when none of the formats has such ones. */
export function detectFormat(record: JsonObject): RecordFormat | "totals" | undefined {
  const has = (...names: string[]) => names.every((name) => Object.hasOwn(record, name));
  const found = Object.entries(formats).find(([, format]) => (format as Format).matches(has, record));
  if (found !== undefined) return found[0] as RecordFormat;
  return totals.some((names) => has(...names)) ? "totals" : undefined;
}

export function titleOf(format: RecordFormat): string {
  return formats[format].title;
}

/** What the members of usual records are; undefined where a record is not simply an event. */
export function membersOf(format: RecordFormat): RecordMembers | undefined {
  return (formats[format] as Format).members;
}

/** The events of one record; what is missing or wrong in them is found by ingestion's own rules, not here. */
export function mapRecord(
  format: RecordFormat,
  record: JsonObject,
  context: MapContext = noContext,
): MappedRecord {
  return (formats[format] as Format).map(record, context);
}
