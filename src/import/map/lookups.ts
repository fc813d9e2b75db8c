/** Lookup files: tables without events that complement the events of a source (contract, import 2.6, 2.11). Pure. */

import type { Json, JsonObject } from "../../lib/json/value.ts";
import { detectFormat, type ImportFormat, type RecordFormat } from "./formats.ts";
import { getId } from "./lenient-json.ts";
import { isEmpty } from "./members.ts";

interface Lookup {
  /** For messages. */
  title: string;
  /** The format of the associated events, and the name of their file. */
  source: RecordFormat;
  events: string;
  /** Members with the lookup ID, best first. */
  keys: readonly string[];
  /** Members used in addition to the keys; absent: all. */
  used?: readonly string[];
  /** Members reported as not taken, when all others are used. */
  omitted?: readonly string[];
  matches: (has: Has, record: JsonObject, table: string) => boolean;
}
type Has = (...names: string[]) => boolean;

const datum = ["data_key", "event_key", "session_key", "data_type", "event_data_type"];
const datumValues = ["string_value", "number_value", "date_value"];
const umami = { source: "umami", events: "Umami's table website_event" } as const;
const heap = { source: "heap", events: "Heap Connect's tables of events" } as const;

/** In order of detection. */
const lookups = {
  event_data: {
    ...umami,
    title: "Umami's table event_data",
    // In some versions `event_id` is the row's own id.
    keys: ["website_event_id", "event_id"],
    used: [...datum, ...datumValues],
    matches: (has) => isDatum(has) && (has("event_id") || has("website_event_id")),
  },
  session_data: {
    ...umami,
    title: "Umami's table session_data",
    keys: ["session_id"],
    used: [...datum, ...datumValues],
    matches: (has) => isDatum(has) && has("session_id"),
  },
  revenue: {
    ...umami,
    title: "Umami's table revenue",
    keys: ["event_id"],
    used: ["revenue", "currency"],
    matches: (has) =>
      has("website_id", "event_id", "revenue", "currency") && !has("url_path") && !has("event_type"),
  },
  session: {
    ...umami,
    title: "Umami's table session",
    keys: ["session_id"],
    omitted: ["website_id", "created_at"],
    matches: (has) =>
      has("website_id", "session_id") &&
      (has("browser") || has("os") || has("device") || has("country") || has("distinct_id")) &&
      !["event_id", "url_path", "event_type", "visit_id"].some((name) => has(name)),
  },
  users: {
    ...heap,
    title: "Heap Connect's table users",
    keys: ["user_id"],
    matches: (has, record, table) =>
      has("user_id") &&
      (has("identity") || has("joindate") || table === "users") &&
      !["event", "time", "timestamp", "session_id", "event_id"].some((name) => has(name)) &&
      detectFormat(record) === undefined,
  },
  // Rows of these two join persons after all events (contract, import O1).
  user_migrations: {
    ...heap,
    title: "Heap Connect's table user_migrations",
    keys: ["from_user_id"],
    used: ["to_user_id", "time"],
    matches: (has) => has("from_user_id", "to_user_id") && !has("event_id"),
  },
  amplitude_merges: {
    source: "amplitude",
    events: "Amplitude's export of events",
    title: "Amplitude's file of merged ids",
    keys: ["amplitude_id"],
    used: ["merged_amplitude_id", "merge_event_time", "merge_server_time"],
    matches: (has) => has("amplitude_id", "merged_amplitude_id") && !has("event_type"),
  },
} satisfies Record<string, Lookup>;

function isDatum(has: Has): boolean {
  const isNamed = has("data_key") || has("event_key") || has("session_key");
  return isNamed && datumValues.some((name) => has(name));
}

export type LookupKind = keyof typeof lookups;

/** Kinds whose rows merge two source users. */
export const mergeKinds = ["amplitude_merges", "user_migrations"] as const satisfies LookupKind[];
export type MergeKind = (typeof mergeKinds)[number];

/** @param format of the import: only its lookup files are recognized. @param table see `MapContext`. */
export function detectLookup(
  record: JsonObject,
  table: string,
  format: ImportFormat,
): LookupKind | undefined {
  const has: Has = (...names) => names.every((name) => Object.hasOwn(record, name));
  const found = (Object.entries(lookups) as [LookupKind, Lookup][]).find(([, lookup]) =>
    lookup.matches(has, record, table),
  );
  if (found === undefined) return undefined;
  return format === "auto" || format === found[1].source ? found[0] : undefined;
}

export function getLookup(kind: LookupKind): Omit<Lookup, "matches"> {
  return lookups[kind];
}

/** A row of a file of merges: the IDs of one source user become part of another one. */
export interface SourceMerge {
  from: string;
  into: string;
  /** As in the row. */
  time: Json | undefined;
}

/** @returns undefined for a row without the two IDs. */
export function sourceMerge(kind: MergeKind, row: JsonObject): SourceMerge | undefined {
  const isAmplitude = kind === "amplitude_merges";
  const from = getId(isAmplitude ? row.amplitude_id : row.from_user_id);
  const into = getId(isAmplitude ? row.merged_amplitude_id : row.to_user_id);
  if (from === undefined || into === undefined) return undefined;
  const times = isAmplitude ? [row.merge_event_time, row.merge_server_time] : [row.time];
  return { from, into, time: times.find((time) => !isEmpty(time)) };
}

/** The ID by which a row is found. */
export function lookupKey(kind: LookupKind, row: JsonObject): string | undefined {
  return lookups[kind].keys.map((name) => getId(row[name])).find((id) => id !== undefined);
}

/** Why a lookup file cannot be imported without the events. */
export function lookupAlone(name: string, kind: LookupKind): string {
  const { title, events } = lookups[kind];
  return `${name} is ${title}, which contains no events. It belongs with ${events}: put both in one folder.`;
}
