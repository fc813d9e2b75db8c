/** Flagkeep's own exports, and any table or file with the fields of an event (contract, import 2.8). Pure. */

import { exportColumns } from "../../events/export/columns.ts";
import { isJsonObject, type JsonObject } from "../../lib/json.ts";
import type { RecordMembers } from "../read/record-copier.ts";
import { eventFromColumns, identifiedEvent, isEventMember } from "./event-columns.ts";
import { idOf, listOf, propertiesOf } from "./loose-json.ts";
import { type MappedRecord, unusable } from "./mapped.ts";
import { isTrue, restOf } from "./members.ts";

/** Columns of this product's own exports that a store derives itself. */
const ownColumns = new Set(
  exportColumns.events.map(({ name }) => name).filter((name) => !isEventMember(name)),
);
/** Only a row of an own export has columns to omit: elsewhere they may mean something. */
const ownMarks = ["received_at", "seq"];

/** How the fast path copies usual records of `fromFlagkeep`. */
export const flagkeepMembers: RecordMembers = {
  ...{ leftOut: [], leftOutWithMarks: ownColumns, marks: ownMarks, isTimeFree: true },
  carried: [],
  chain: "elements_chain",
};

/** An event of an own export, or of any table or file with the fields of an event. */
export function fromFlagkeep(record: JsonObject): MappedRecord {
  const isOwn = isOwnExport(record);
  const chain = isOwn ? record.elements_chain : undefined;
  const { event, notTaken } = eventFromColumns(
    record,
    (name) => isOwn && ownColumns.has(name),
    typeof chain === "string" && chain !== "" ? [["$elements_chain", chain]] : [],
  );
  const mapped = identifiedEvent(record, event, idOf(record.uuid));
  return {
    events: [isOwn ? { ...mapped, isOwnExport: true } : mapped],
    notTaken: notTaken.filter((name) => name !== "elements_chain"),
  };
}

/** Whether a record is a row of an own export of events. */
export function isOwnExport(record: JsonObject): boolean {
  return ["uuid", "properties", ...ownMarks].every((name) => Object.hasOwn(record, name));
}

/**
 * A person of an own export or of PostHog: its properties are set at the time it was created, under its first distinct id, into
 * which its other ids are merged.
 */
export function fromPerson(record: JsonObject): MappedRecord {
  const properties = propertiesOf(record.properties);
  if (!isJsonObject(properties)) return unusable(properties);
  const listed = listOf(record.distinct_ids)
    .map(idOf)
    .filter((id) => id !== undefined);
  const own = idOf(record.distinct_id);
  const distinctIds = listed.length > 0 ? listed : own === undefined ? [] : [own];
  const id = idOf(record.person_id) ?? idOf(record.id) ?? idOf(record.uuid) ?? distinctIds[0];
  const isDeleted = isTrue(record.is_deleted) || isTrue(record.deleted) || isTrue(record.$is_deleted);
  if (id === undefined || (distinctIds.length === 0 && !isDeleted)) return unusable(properties, "$set");
  return {
    events: [],
    snapshot: {
      ...{ kind: "person", id, distinctIds, properties, time: record.created_at, isDeleted },
      version: versionOf(record.person_version ?? record.version ?? record._version),
      idVersion: versionOf(record.person_distinct_id_version ?? record.version),
    },
    notTaken: restOf(record, [
      // Text in none of the forms of a list is reported.
      ...(listed.length > 0 ? ["distinct_ids"] : []),
      ...["properties", "distinct_id", "person_id", "id", "created_at"],
      ...["person_version", "version", "_version", "person_distinct_id_version"],
      ...["is_deleted", "deleted", "$is_deleted"],
    ]),
  };
}

/** A group of an own export or of PostHog: its properties are set at the time it was created. */
export function fromGroup(record: JsonObject): MappedRecord {
  const properties = propertiesOf(record.properties ?? record.group_properties);
  if (!isJsonObject(properties)) return unusable(properties);
  const type = idOf(record.type ?? record.group_type);
  const key = idOf(record.key ?? record.group_key);
  if (type === undefined || key === undefined) return unusable(properties, "$groupidentify");
  return {
    events: [],
    snapshot: {
      ...{ kind: "group", type, key, properties, time: record.created_at },
      version: versionOf(record.version ?? record._version),
      isDeleted: isTrue(record.is_deleted) || isTrue(record.deleted),
    },
    notTaken: restOf(record, [
      ...["properties", "group_properties", "type", "group_type", "key", "group_key", "created_at"],
      ...["type_index", "version", "_version", "is_deleted", "deleted"],
    ]),
  };
}

function versionOf(value: unknown): number {
  const version = Number(value ?? 0);
  return Number.isFinite(version) ? version : 0;
}
