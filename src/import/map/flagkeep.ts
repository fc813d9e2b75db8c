/** Flagkeep's own exports, and any table or file with the fields of an event (contract, import 2.8). Pure. */

import { exportColumns } from "../../events/export/columns.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import type { RecordMembers } from "../read/record-copier.ts";
import { eventFromColumns, identifiedEvent, isEventMember } from "./event-columns.ts";
import { getId, getProperties, toList } from "./lenient-json.ts";
import { type MappedRecord, rejectRecord } from "./mapped.ts";
import { getRest, isTrue } from "./members.ts";

/** Columns of Flagkeep's exports that a store derives itself. */
const flagkeepColumns = new Set(
  exportColumns.events.map(({ name }) => name).filter((name) => !isEventMember(name)),
);
/** Columns are omitted only in rows of Flagkeep's exports: elsewhere they may mean something. */
const flagkeepMarks = ["received_at", "seq"];

/** How the fast path copies typical records of `fromFlagkeep`. */
export const flagkeepMembers: RecordMembers = {
  leftOut: [],
  leftOutWithMarks: flagkeepColumns,
  marks: flagkeepMarks,
  isTimeFree: true,
  carried: [],
  chain: "elements_chain",
};

/** An event of a Flagkeep export, or of any table or file with the fields of an event. */
export function fromFlagkeep(record: JsonObject): MappedRecord {
  const isOwn = isOwnExport(record);
  const chain = isOwn ? record.elements_chain : undefined;
  const { event, omitted } = eventFromColumns(
    isOwn ? "flagkeep" : "events",
    record,
    (name) => isOwn && flagkeepColumns.has(name),
    typeof chain === "string" && chain !== "" ? [["$elements_chain", chain]] : [],
  );
  const mapped = identifiedEvent(record, event, getId(record.uuid));
  return {
    events: [isOwn ? { ...mapped, isOwnExport: true } : mapped],
    omitted: omitted.filter((name) => name !== "elements_chain"),
  };
}

/** Whether a record is a row of a Flagkeep export of events. */
export function isOwnExport(record: JsonObject): boolean {
  return ["uuid", "properties", ...flagkeepMarks].every((name) => Object.hasOwn(record, name));
}

const deletionMarks = ["is_deleted", "deleted", "$is_deleted"];

function isDeletedRow(record: JsonObject): boolean {
  return deletionMarks.some((name) => isTrue(record[name]));
}

/**
 * A person of a Flagkeep or PostHog export: its properties are set at its creation time, under its first distinct ID,
 * into which its other IDs are merged.
 */
export function fromPerson(record: JsonObject): MappedRecord {
  const properties = getProperties(record.properties);
  if (!isJsonObject(properties)) return rejectRecord(properties);
  const listed = toList(record.distinct_ids)
    .map(getId)
    .filter((id) => id !== undefined);
  const own = getId(record.distinct_id);
  const distinctIds = listed.length > 0 ? listed : own === undefined ? [] : [own];
  const id = getId(record.person_id) ?? getId(record.id) ?? getId(record.uuid) ?? distinctIds[0];
  const isDeleted = isDeletedRow(record);
  if (id === undefined || (distinctIds.length === 0 && !isDeleted)) return rejectRecord(properties, "$set");
  return {
    events: [],
    snapshot: {
      kind: "person",
      id,
      distinctIds,
      properties,
      time: record.created_at,
      isDeleted,
      version: getVersion(record.person_version ?? record.version ?? record._version),
      idVersion: getVersion(record.person_distinct_id_version ?? record.version),
    },
    omitted: getRest(record, [
      // A string that is not a list in any known form is reported.
      ...(listed.length > 0 ? ["distinct_ids"] : []),
      "properties",
      "distinct_id",
      "person_id",
      "id",
      "created_at",
      "person_version",
      "version",
      "_version",
      "person_distinct_id_version",
      ...deletionMarks,
    ]),
  };
}

/** A group of a Flagkeep or PostHog export: its properties are set at its creation time. */
export function fromGroup(record: JsonObject): MappedRecord {
  const properties = getProperties(record.properties ?? record.group_properties);
  if (!isJsonObject(properties)) return rejectRecord(properties);
  const type = getId(record.type ?? record.group_type);
  const key = getId(record.key ?? record.group_key);
  if (type === undefined || key === undefined) return rejectRecord(properties, "$groupidentify");
  return {
    events: [],
    snapshot: {
      kind: "group",
      type,
      key,
      properties,
      time: record.created_at,
      version: getVersion(record.version ?? record._version),
      isDeleted: isDeletedRow(record),
    },
    omitted: getRest(record, [
      "properties",
      "group_properties",
      "type",
      "group_type",
      "key",
      "group_key",
      "created_at",
      "type_index",
      "version",
      "_version",
      ...deletionMarks,
    ]),
  };
}

const int64Max = 2n ** 63n - 1n;

/** A version with all its digits, as far as the store has them. */
function getVersion(value: Json | undefined): number | bigint {
  const written = getId(value)?.trim() ?? "0";
  if (/^\d{16,19}$/.test(written) && BigInt(written) <= int64Max) return BigInt(written);
  const version = Number(written);
  return Number.isFinite(version) ? version : 0;
}
