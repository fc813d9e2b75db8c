/** Lookup files: tables that hold no events, but belong with the events of a source (contract, import 2.6, 2.11). Pure. */

import type { JsonObject } from "../../lib/json.ts";
import { detectFormat, type ImportFormat, type RecordFormat } from "./formats.ts";
import { idOf } from "./loose-json.ts";

interface Lookup {
  /** For a sentence. */
  title: string;
  /** The format of the events that it belongs with, and the name of their file. */
  source: RecordFormat;
  events: string;
  /** Members that hold the id by which rows are found, best first. */
  keys: readonly string[];
  /** Members that are used besides the keys; left out: all. */
  used?: readonly string[];
  /** Members that are reported as not taken, where all others are used. */
  omitted?: readonly string[];
  matches: (has: Has, record: JsonObject, table: string) => boolean;
}
type Has = (...names: string[]) => boolean;

const datum = ["data_key", "event_key", "session_key", "data_type", "event_data_type"];
const datumValues = ["string_value", "number_value", "date_value"];
const umami = { source: "umami", events: "Umami's table website_event" } as const;
const heap = { source: "heap", events: "Heap Connect's tables of events" } as const;

/** In the order in which they are tried. */
const lookups = {
  event_data: {
    ...umami,
    title: "Umami's table event_data",
    keys: ["event_id", "website_event_id"],
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
    omitted: ["joindate", "last_modified"],
    matches: (has, record, table) =>
      has("user_id") &&
      (has("identity") || has("joindate") || table === "users") &&
      !["event", "time", "timestamp", "session_id", "event_id"].some((name) => has(name)) &&
      detectFormat(record) === undefined,
  },
} satisfies Record<string, Lookup>;

function isDatum(has: Has): boolean {
  const isNamed = has("data_key") || has("event_key") || has("session_key");
  return isNamed && datumValues.some((name) => has(name));
}

export type LookupKind = keyof typeof lookups;
/** @param format of the import: only lookup files that belong with it are recognized. @param table see `MapContext`. */
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

export function lookupOf(kind: LookupKind): Omit<Lookup, "matches"> {
  return lookups[kind];
}

/** The id by which a row is found. */
export function lookupKey(kind: LookupKind, row: JsonObject): string | undefined {
  return lookups[kind].keys.map((name) => idOf(row[name])).find((id) => id !== undefined);
}

/** Why a lookup file cannot be imported without the events. */
export function lookupAlone(name: string, kind: LookupKind): string {
  const { title, events } = lookups[kind];
  return `${name} is ${title}, which holds no events of its own. It belongs with ${events}: put both in one folder.`;
}
