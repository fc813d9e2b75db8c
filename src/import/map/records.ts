/**
 * Turns records of other products into events as `/batch/` takes them.
 *
 * Pure. What is missing or wrong in an event is found by ingestion's own rules (`check.ts`), not here.
 */

import { canonicalUuid } from "../../ingestion/event-uuid.ts";
import { parseInstant, parseNumericTime } from "../../ingestion/timestamp.ts";
import type { Json, JsonObject } from "../../lib/json.ts";
import { numberText, objectFrom } from "../read/json-text.ts";
import { idOf, isObject, jsonText, objectOf, propertiesOf } from "./loose-json.ts";
import { fromAmplitude, fromMixpanel, fromSegment } from "./other-products.ts";

export const importFormats = [
  ...["ndjson", "csv", "parquet", "posthog", "amplitude", "mixpanel", "segment"],
] as const;
export type ImportFormat = "ndjson" | "csv" | "parquet" | "posthog" | "amplitude" | "mixpanel" | "segment";

/** An event, and what its source calls it: same id, same event. */
export interface MappedEvent {
  event: JsonObject;
  sourceId: string | undefined;
}

const eventMembers = new Set([
  "uuid",
  "event",
  "distinct_id",
  "timestamp",
  "properties",
  "$set",
  "$set_once",
  "offset",
]);
/** Columns of this product's own exports that a store makes itself. */
const ownColumns = new Set(["received_at", "elements_chain", "historical", "seq", "person_id"]);
/** The same of PostHog's batch exports, API and tables. */
const posthogColumns = new Set([
  ...["id", "person", "person_id", "person_properties", "person_mode", "person_created_at", "person_version"],
  ...["elements", "elements_chain", "elements_hash", "set", "set_once", "ip", "site_url", "team_id"],
  ...[
    "project_id",
    "created_at",
    "inserted_at",
    "_inserted_at",
    "bq_ingested_timestamp",
    "historical_migration",
  ],
  ...["_timestamp", "_offset", "_partition", "group_0", "group_1", "group_2", "group_3", "group_4"],
]);
const none: ReadonlySet<string> = new Set();
/** How tables name single properties. */
const propertyColumn = "properties.";

/** Maps one record. */
export function mapRecord(format: ImportFormat, record: JsonObject): MappedEvent {
  if (format === "amplitude") return fromAmplitude(record);
  if (format === "mixpanel") return fromMixpanel(record);
  if (format === "segment") return fromSegment(record);
  return fromOwn(record, format === "posthog" ? posthogColumns : ownColumnsOf(record));
}

/** Renames members; `properties.x` as a target puts the value among the properties. */
export function renamed(record: JsonObject, names: ReadonlyMap<string, string>): JsonObject {
  if (names.size === 0) return record;
  const members: [string, Json][] = [];
  const inside: [string, Json][] = [];
  for (const [name, value] of Object.entries(record)) {
    const target = names.get(name) ?? name;
    if (target.startsWith(propertyColumn)) inside.push([target.slice(propertyColumn.length), value]);
    else members.push([target, value]);
  }
  const result = objectFrom(members);
  const properties = propertiesOf(result.properties);
  if (inside.length > 0 && isObject(properties)) result.properties = { ...properties, ...objectFrom(inside) };
  return result;
}

/** Only a record that is a row of an own export has columns to leave out: elsewhere they may mean something. */
function ownColumnsOf(record: JsonObject): ReadonlySet<string> {
  const isOwnExport = ["uuid", "properties", "received_at", "seq"].every((name) =>
    Object.hasOwn(record, name),
  );
  return isOwnExport ? ownColumns : none;
}

/** Members that are no part of an event are properties, so that flat tables can be loaded. */
function fromOwn(record: JsonObject, leftOut: ReadonlySet<string>): MappedEvent {
  const properties = propertiesOf(record.properties);
  const event: JsonObject = {};
  const more: [string, Json][] = [];
  for (const [name, value] of Object.entries(record)) {
    if (eventMembers.has(name)) event[name] = value;
    else if (leftOut.has(name) || value === null) continue;
    else more.push([name.startsWith(propertyColumn) ? name.slice(propertyColumn.length) : name, value]);
  }
  const chain = leftOut.size === 0 ? undefined : record.elements_chain;
  if (typeof chain === "string" && chain !== "") more.push(["$elements_chain", chain]);
  event.properties = isObject(properties) ? { ...objectFrom(more), ...properties } : properties;
  for (const name of ["$set", "$set_once"])
    if (event[name] !== undefined) event[name] = jsonText(event[name]);
  const uuid = record.uuid ?? (leftOut.has("id") ? record.id : undefined);
  return { event, sourceId: idOf(uuid ?? record.$insert_id ?? objectOf(event.properties).$insert_id) };
}

/**
 * The uuid of an event: its own, else one that its source id and time always lead to, else one made of its line number and
 * what stands there, so that neither another name of the file nor packing it makes other events of it.
 *
 * What is made carries the time of the event (version 7), by which the event store finds it fast.
 *
 * @param record as it was read, before anything is renamed.
 */
export function uuidOf({ event, sourceId }: MappedEvent, line: number, record: JsonObject): string {
  const own = sourceId === undefined ? undefined : canonicalUuid(sourceId);
  if (own !== undefined) return own;
  const name = sourceId === undefined ? `line:${line}:${JSON.stringify(record)}` : `id:${sourceId}`;
  const hash = Bun.randomUUIDv5(name, namespace);
  const ms = timeOf(event.timestamp);
  if (ms === undefined) return hash;
  const time = ms.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hash.slice(15)}`;
}

/** Milliseconds since 1970, as far as a uuid can hold them. */
function timeOf(timestamp: Json | undefined): number | undefined {
  const time = numberText(timestamp) ?? timestamp;
  const micros =
    typeof time === "string"
      ? parseInstant(time)
      : typeof time === "number"
        ? parseNumericTime(time)
        : undefined;
  const ms = micros === undefined ? -1 : Math.floor(micros / 1_000);
  return ms >= 0 && ms < 2 ** 48 ? ms : undefined;
}

/** Of this product's imports alone; never to be changed, or repeated imports would load everything twice. */
const namespace = "6f1a6a0e-5d0b-5c56-9d5c-3f6f2b2f7a11";
