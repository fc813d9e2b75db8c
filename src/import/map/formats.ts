/** The formats of records: what each is called, how it is recognised, and how a record is mapped. Pure. */

import type { JsonObject } from "../../lib/json.ts";
import type { RecordMembers } from "../read/record-copier.ts";
import { fromAmplitude } from "./amplitude.ts";
import { objectOf } from "./loose-json.ts";
import type { MappedEvent } from "./mapped.ts";
import { fromMixpanel, fromMixpanelPeople } from "./mixpanel.ts";
import {
  fromGroup,
  fromOwn,
  fromPerson,
  fromPostHog,
  isOwnExport,
  ownMembers,
  posthogMarks,
  posthogMembers,
} from "./own.ts";
import { fromSegment, isWarehouseRow } from "./segment.ts";
import { fromGa4, fromMatomo, fromPlausible, fromUmami } from "./web-analytics.ts";

interface Format {
  /** For a sentence. */
  title: string;
  map: (record: JsonObject) => MappedEvent[];
  /** Where a record is an event already: what its members are. */
  members?: RecordMembers;
  /** Whether a record with these members, of which none has to have a value, is one. */
  isOne: (has: (...names: string[]) => boolean, record: JsonObject) => boolean;
}

const segmentTypes = new Set(["track", "identify", "page", "screen", "group", "alias"]);

/** In the order in which they are tried: those that more members tell come first. */
const formats = {
  flagkeep: {
    title: "Flagkeep's export of events",
    map: fromOwn,
    members: ownMembers,
    isOne: (_, record) => isOwnExport(record),
  },
  persons: {
    title: "persons",
    map: fromPerson,
    isOne: (has) =>
      has("properties") && (has("distinct_ids") || has("distinct_id", "person_id")) && !has("event"),
  },
  groups: {
    title: "groups",
    map: fromGroup,
    isOne: (has) => has("type", "key", "properties", "type_index") && !has("event"),
  },
  "mixpanel-people": {
    title: "Mixpanel's export of people",
    map: fromMixpanelPeople,
    isOne: (has) => has("$distinct_id", "$properties"),
  },
  ga4: {
    title: "GA4's export to BigQuery",
    map: fromGa4,
    isOne: (has) => has("event_name", "event_timestamp") && (has("user_pseudo_id") || has("event_params")),
  },
  umami: {
    title: "Umami's table website_event",
    map: fromUmami,
    isOne: (has) => has("website_id", "session_id", "created_at") && (has("url_path") || has("event_type")),
  },
  plausible: {
    title: "Plausible's table events_v2",
    map: fromPlausible,
    isOne: (has) =>
      has("name", "user_id", "timestamp") && has("pathname", "hostname") && (has("site_id") || has("domain")),
  },
  matomo: {
    title: "Matomo's visits",
    map: fromMatomo,
    isOne: (has) =>
      has("idVisit", "visitorId") && (has("actionDetails") || has("actionDetails_0_type") || has("idSite")),
  },
  amplitude: {
    title: "Amplitude's export",
    map: fromAmplitude,
    isOne: (has) => has("event_type") && (has("user_id") || has("device_id") || has("amplitude_id")),
  },
  mixpanel: {
    title: "Mixpanel's raw export",
    map: fromMixpanel,
    isOne: (has, record) => {
      const properties = objectOf(record.properties);
      const isTimed = Object.hasOwn(properties, "time");
      return has("event", "properties") && isTimed && !has("timestamp") && !has("distinct_id");
    },
  },
  rudderstack: {
    title: "Rudderstack's messages",
    map: fromSegment,
    isOne: (has, record) => {
      const library = objectOf(objectOf(record.context).library).name ?? record.context_library_name;
      const isRudder = has("rudderId") || has("rudder_id") || /rudder/i.test(String(library ?? ""));
      return isRudder && (isSegmentMessage(has, record) || isWarehouseRow(record));
    },
  },
  segment: {
    title: "Segment's messages",
    map: fromSegment,
    isOne: (has, record) => isSegmentMessage(has, record) || isWarehouseRow(record),
  },
  posthog: {
    title: "PostHog's export of events",
    map: fromPostHog,
    members: posthogMembers,
    isOne: (has) => has("event", "distinct_id") && posthogMarks.some((name) => has(name)),
  },
  events: {
    title: "events",
    map: fromOwn,
    members: ownMembers,
    isOne: (has) => has("event") || has("distinct_id"),
  },
} satisfies Record<string, Format>;

function isSegmentMessage(has: (...names: string[]) => boolean, record: JsonObject): boolean {
  const isNamed = has("userId") || has("anonymousId") || has("messageId");
  return isNamed && segmentTypes.has(String(record.type));
}

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

/** Totals of Plausible's own export: they are no events, and nothing can make them any. */
const totalsMembers = ["date", "visitors"];

/** What a record is by its members; undefined when none of the formats has such ones. */
export function recognise(record: JsonObject): RecordFormat | "totals" | undefined {
  const has = (...names: string[]) => names.every((name) => Object.hasOwn(record, name));
  const found = Object.entries(formats).find(([, format]) => (format as Format).isOne(has, record));
  if (found !== undefined) return found[0] as RecordFormat;
  return has(...totalsMembers) ? "totals" : undefined;
}

export function titleOf(format: RecordFormat): string {
  return formats[format].title;
}

/** What the members of usual records are; undefined where a record is not simply an event. */
export function membersOf(format: RecordFormat): RecordMembers | undefined {
  return (formats[format] as Format).members;
}

/** The events of one record; what is missing or wrong in them is found by ingestion's own rules, not here. */
export function mapRecord(format: RecordFormat, record: JsonObject): MappedEvent[] {
  return formats[format].map(record);
}
