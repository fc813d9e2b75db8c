/** Records of this product and of PostHog: events, and persons and groups, which become the events that set them. Pure. */

import { exportColumns } from "../../events/export/columns.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { objectFrom } from "../read/json-text.ts";
import type { RecordMembers } from "../read/record-copier.ts";
import { idOf, jsonText, listOf, objectOf, propertiesOf } from "./loose-json.ts";
import { eventOf, type MappedEvent, unusable } from "./mapped.ts";

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
const ownColumns = new Set(
  exportColumns.events.map(({ name }) => name).filter((name) => !eventMembers.has(name)),
);
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
/** An event with one of these is PostHog's. */
export const posthogMarks = ["person_id", "team_id", "elements_chain"].concat([
  ...["person_properties", "person", "inserted_at"],
]);
const none: ReadonlySet<string> = new Set();
/** Only a row of an own export has columns to leave out: elsewhere they may mean something. */
const ownMarks = ["received_at", "seq"];
/** Flagkeep's API answers as PostHog's does, and says more. */
const ownApiColumns = ["seq", "historical"];
const ownApiMarks = [...ownApiColumns, "elements"];
/** How tables name single properties. */
const propertyColumn = "properties.";

/** An event of this product: of an own export, or of any table or file with the fields of an event. */
export function fromOwn(record: JsonObject): MappedEvent[] {
  return isOwnExport(record)
    ? fromColumns(record, ownColumns).map((mapped) => ({ ...mapped, isOwnExport: true }))
    : fromColumns(record, none);
}

/** An event of PostHog's batch exports, API or tables. */
export function fromPostHog(record: JsonObject): MappedEvent[] {
  return fromColumns(
    record,
    hasAll(record, ownApiMarks) ? new Set([...posthogColumns, ...ownApiColumns]) : posthogColumns,
  );
}

/** A row of an own export of events. */
export function isOwnExport(record: JsonObject): boolean {
  return hasAll(record, ["uuid", "properties", ...ownMarks]);
}

function hasAll(record: JsonObject, names: readonly string[]): boolean {
  return names.every((name) => Object.hasOwn(record, name));
}

/** What `fromOwn` does to usual records. */
export const ownMembers: RecordMembers = {
  ...{ leftOut: [], leftOutWithMarks: ownColumns, marks: ownMarks, isTimeFree: true },
  chain: "elements_chain",
};

/** What `fromPostHog` does to usual records. */
export const posthogMembers: RecordMembers = {
  ...{ leftOut: posthogColumns, leftOutWithMarks: ownApiColumns, marks: ownApiMarks, isTimeFree: false },
  ...{ chain: "elements_chain", otherUuid: "id" },
};

/** Members that are no part of an event are properties, so that flat tables can be loaded. */
function fromColumns(record: JsonObject, leftOut: ReadonlySet<string>): MappedEvent[] {
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
  event.properties = isJsonObject(properties) ? { ...objectFrom(more), ...properties } : properties;
  for (const name of ["$set", "$set_once"])
    if (event[name] !== undefined) event[name] = jsonText(event[name]);
  const uuid = idOf(record.uuid ?? (leftOut.has("id") ? record.id : undefined));
  const { timestamp: _, ...others } = record;
  // A table has properties as text.
  const content = { ...others, properties };
  return [
    {
      event,
      sourceId: uuid ?? idOf(record.$insert_id ?? objectOf(event.properties).$insert_id),
      ...(uuid === undefined ? {} : { isUuid: true }),
      source: { name: record.event, ids: [idOf(record.distinct_id)], content },
    },
  ];
}

/**
 * A person of an own export or of PostHog: its properties are set at the time it was created, under its first distinct id,
 * into which its other ids are merged.
 */
export function fromPerson(record: JsonObject): MappedEvent[] {
  const properties = propertiesOf(record.properties);
  if (!isJsonObject(properties)) return unusable(properties);
  const [first, ...others] = idsOf(record);
  const time = record.created_at;
  const content = hashOf(record);
  return [
    {
      event: eventOf("$set", first, time, { $set: properties }),
      sourceId: `person:${content}`,
      isOwnExport: true,
    },
    ...others.map(
      (alias, at): MappedEvent => ({
        event: eventOf("$merge_dangerously", first, time, { alias: alias ?? null }),
        sourceId: `person:${content}:${at}`,
        isOwnExport: true,
      }),
    ),
  ];
}

/**
 * The distinct ids of a person. PostHog's batch export has a row for each, and only its own id of the person tells which
 * belong together: it becomes an id of the person too.
 */
function idsOf(record: JsonObject): (string | undefined)[] {
  const listed = listOf(record.distinct_ids).map(idOf);
  return listed.length > 0
    ? listed
    : [idOf(record.distinct_id), ...[record.person_id ?? []].flat().map(idOf)];
}

/** A group of an own export: its properties are set at the time it was created. */
export function fromGroup(record: JsonObject): MappedEvent[] {
  const properties = propertiesOf(record.properties ?? record.group_properties);
  if (!isJsonObject(properties)) return unusable(properties);
  const type = idOf(record.type ?? record.group_type);
  const key = idOf(record.key ?? record.group_key);
  // Without them the event has no name, and ingestion refuses it.
  const name = type === undefined || key === undefined ? undefined : "$groupidentify";
  return [
    {
      event: eventOf(name, `$${type}_${key}`, record.created_at, {
        $group_type: type ?? null,
        $group_key: key ?? null,
        $group_set: properties,
      }),
      sourceId: `group:${hashOf(record)}`,
      isOwnExport: true,
    },
  ];
}

function hashOf(record: JsonObject): string {
  return new Bun.CryptoHasher("sha256").update(JSON.stringify(record)).digest("hex");
}
