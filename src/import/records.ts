/**
 * Turns records of other products into events as `/batch/` takes them.
 *
 * Pure. What is missing or wrong in an event is found by ingestion's own rules (`check.ts`), not here.
 */

import { isJsonObject, type Json, type JsonObject } from "../flags/json.ts";
import { canonicalUuid } from "../ingestion/event-uuid.ts";
import { parseInstant, parseUnixTime } from "../ingestion/timestamp.ts";

export const importFormats = [
  ...["ndjson", "csv", "parquet", "posthog", "amplitude", "mixpanel", "segment"],
] as const;
export type ImportFormat = "ndjson" | "csv" | "parquet" | "posthog" | "amplitude" | "mixpanel" | "segment";

/** An event, and what its source calls it: same id, same event. */
export interface MappedEvent {
  event: JsonObject;
  sourceId: string | undefined;
}

const EVENT_MEMBERS = new Set([
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
const OWN_COLUMNS = new Set(["received_at", "elements_chain", "historical", "seq", "person_id"]);
/** The same of PostHog's batch exports, API and tables. */
const POSTHOG_COLUMNS = new Set([
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
const NONE: ReadonlySet<string> = new Set();
/** How tables name single properties. */
const PROPERTY_COLUMN = "properties.";

/** Maps one record. */
export function mapRecord(format: ImportFormat, record: JsonObject): MappedEvent {
  if (format === "amplitude") return fromAmplitude(record);
  if (format === "mixpanel") return fromMixpanel(record);
  if (format === "segment") return fromSegment(record);
  return fromOwn(record, format === "posthog" ? POSTHOG_COLUMNS : ownColumnsOf(record));
}

/** Renames members; `properties.x` as a target puts the value among the properties. */
export function renamed(record: JsonObject, names: ReadonlyMap<string, string>): JsonObject {
  if (names.size === 0) return record;
  const result: JsonObject = {};
  const inside: JsonObject = {};
  for (const [name, value] of Object.entries(record)) {
    const target = names.get(name) ?? name;
    if (target.startsWith("properties.")) inside[target.slice("properties.".length)] = value;
    else result[target] = value;
  }
  if (Object.keys(inside).length > 0) result.properties = { ...objectOf(result.properties), ...inside };
  return result;
}

/** Only a record that is a row of an own export has columns to leave out: elsewhere they may mean something. */
function ownColumnsOf(record: JsonObject): ReadonlySet<string> {
  const isOwnExport = ["uuid", "properties", "received_at", "seq"].every((name) =>
    Object.hasOwn(record, name),
  );
  return isOwnExport ? OWN_COLUMNS : NONE;
}

/** Members that are no part of an event are properties, so that flat tables can be loaded. */
function fromOwn(record: JsonObject, leftOut: ReadonlySet<string>): MappedEvent {
  const properties = jsonText(record.properties ?? {});
  const event: JsonObject = {};
  const more: JsonObject = {};
  for (const [name, value] of Object.entries(record)) {
    if (EVENT_MEMBERS.has(name)) event[name] = value;
    else if (leftOut.has(name) || value === null) continue;
    else more[name.startsWith(PROPERTY_COLUMN) ? name.slice(PROPERTY_COLUMN.length) : name] = value;
  }
  const chain = leftOut.size === 0 ? undefined : record.elements_chain;
  if (typeof chain === "string" && chain !== "") more.$elements_chain = chain;
  event.properties = isJsonObject(properties) ? { ...more, ...properties } : properties;
  for (const name of ["$set", "$set_once"])
    if (event[name] !== undefined) event[name] = jsonText(event[name]);
  const uuid = record.uuid ?? (leftOut.has("id") ? record.id : undefined);
  return { event, sourceId: idOf(uuid ?? record.$insert_id ?? objectOf(event.properties).$insert_id) };
}

/** Source: Amplitude's export and HTTP formats; times without a zone are UTC. */
function fromAmplitude(record: JsonObject): MappedEvent {
  const properties: JsonObject = { ...objectOf(record.event_properties) };
  const user = objectOf(record.user_properties);
  if (Object.keys(user).length > 0) properties.$set = user;
  copy(record, properties, {
    ...{
      ip_address: "$ip",
      ip: "$ip",
      os_name: "$os",
      os_version: "$os_version",
      device_type: "$device_type",
    },
    ...{ city: "$geoip_city_name", country: "$geoip_country_name", region: "$geoip_subdivision_1_name" },
    ...{
      version_name: "$app_version",
      language: "$language",
      platform: "platform",
      session_id: "$amplitude_session_id",
    },
  });
  const groups = objectOf(record.groups);
  if (Object.keys(groups).length > 0) properties.$groups = groups;
  const distinctId = record.user_id || record.device_id || record.amplitude_id;
  return {
    event: event(
      record.event_type,
      distinctId,
      record.event_time ?? record.time ?? record.client_event_time,
      properties,
    ),
    sourceId: idOf(record.uuid ?? record.$insert_id ?? record.insert_id),
  };
}

/** Source: Mixpanel's raw export; `time` counts seconds or milliseconds, UTC. */
function fromMixpanel(record: JsonObject): MappedEvent {
  const { distinct_id, time, $insert_id, ...properties } = objectOf(record.properties);
  copy(properties, properties, { $city: "$geoip_city_name", mp_country_code: "$geoip_country_code" });
  const distinctId = distinct_id || properties.$user_id || properties.$device_id;
  return { event: event(record.event, distinctId, time, properties), sourceId: idOf($insert_id) };
}

/** Source: Segment's messages: track, identify, page, screen, group, alias. */
function fromSegment(record: JsonObject): MappedEvent {
  const { userId, anonymousId } = record;
  const traits = objectOf(record.traits);
  const properties: JsonObject = { ...objectOf(record.properties), ...contextOf(objectOf(record.context)) };
  let name = record.event as Json | undefined;
  if (record.type === "identify") {
    name = "$identify";
    properties.$set = traits;
    if (userId && anonymousId) properties.$anon_distinct_id = anonymousId;
  } else if (record.type === "page") name = "$pageview";
  else if (record.type === "screen") name = "$screen";
  else if (record.type === "alias") {
    name = "$create_alias";
    properties.alias = record.previousId ?? null;
  } else if (record.type === "group") {
    name = "$groupidentify";
    Object.assign(properties, {
      $group_type: "company",
      $group_key: record.groupId ?? null,
      $group_set: traits,
    });
  }
  if (record.type === "screen" && record.name) properties.$screen_name = record.name;
  const time = record.originalTimestamp ?? record.timestamp ?? record.receivedAt;
  return {
    event: event(name, userId || anonymousId, record.timestamp ?? time, properties),
    sourceId: idOf(record.messageId),
  };
}

function contextOf(context: JsonObject): JsonObject {
  const properties: JsonObject = {};
  copy(context, properties, {
    ip: "$ip",
    userAgent: "$user_agent",
    locale: "$locale",
    timezone: "$timezone",
  });
  copy(objectOf(context.page), properties, {
    ...{ url: "$current_url", path: "$pathname", referrer: "$referrer", title: "title" },
  });
  return properties;
}

function event(
  name: Json | undefined,
  distinctId: Json | undefined,
  timestamp: Json | undefined,
  properties: JsonObject,
): JsonObject {
  const made: JsonObject = { event: name ?? null, distinct_id: distinctId ?? null, properties };
  if (timestamp !== undefined && timestamp !== null) made.timestamp = timestamp;
  return made;
}

function copy(from: JsonObject, to: JsonObject, names: Record<string, string>): void {
  for (const [name, target] of Object.entries(names)) {
    const value = from[name];
    if (value !== undefined && value !== null && value !== "" && to[target] === undefined) to[target] = value;
  }
}

function idOf(value: Json | undefined): string | undefined {
  return (typeof value === "string" && value !== "") || typeof value === "number" ? String(value) : undefined;
}

function objectOf(value: Json | undefined): JsonObject {
  const parsed = value === undefined ? undefined : jsonText(value);
  return isJsonObject(parsed) ? parsed : {};
}

/** Tables hold objects as JSON text. */
function jsonText(value: Json): Json {
  if (typeof value !== "string" || !value.trimStart().startsWith("{")) return value;
  try {
    return JSON.parse(value) as Json;
  } catch {
    return value;
  }
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
  const micros =
    typeof timestamp === "string"
      ? parseInstant(timestamp)
      : typeof timestamp === "number"
        ? parseUnixTime(timestamp)
        : undefined;
  const ms = micros === undefined ? -1 : Math.floor(micros / 1_000);
  return ms >= 0 && ms < 2 ** 48 ? ms : undefined;
}

/** Of this product's imports alone; never to be changed, or repeated imports would load everything twice. */
const namespace = "6f1a6a0e-5d0b-5c56-9d5c-3f6f2b2f7a11";
