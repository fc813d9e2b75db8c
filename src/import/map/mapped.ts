/** The result of mapping a record, before its time is parsed and its UUID derived. Pure. */

import type { Json, JsonObject } from "../../lib/json/value.ts";

/** A device and a user that a record or a row of merges names together. */
export type Pair = readonly [device: string, user: string];

/** An event in the format of `/batch/`, and metadata from its source. */
export interface MappedEvent {
  /** Its `timestamp` is as in the record. */
  event: JsonObject;
  /** Its ID in the source. */
  sourceId: string | undefined;
  /** The source ID that older versions used, if it differs: their IDs contain it (contract, import E3). */
  legacySourceId?: string;
  /** The source ID is the event's UUID, if it has the form of one. */
  isUuid?: true;
  /** What its UUID is derived from in addition to source ID and time; absent: the source ID alone is unique. */
  source?: EventSource;
  /** The device and the user of the record, when it names both: linked if the gate permits. */
  pair?: Pair;
  /** The source's ID of the event's user or device, if a file of merges may name it. */
  sourceUser?: SourceUser;
  /**
   * The event itself links the pair, as each login does: it is sent without `$anon_distinct_id` when the gate rejects
   * the link.
   */
  isLink?: true;
  /** An ID of the record is a placeholder. */
  hasPlaceholder?: true;
  /** Groups whose properties the record contains. */
  groups?: readonly MappedGroup[];
  /** Its time as older versions parsed it, if that differs: their IDs contain it (contract, import E3). */
  legacyTime?: Json;
  /** The record was stored by Flagkeep before: its time is valid, whatever it is. */
  isOwnExport?: true;
}

/** An event as in its source; must never change once released, or repeated imports would load everything twice. */
export interface EventSource {
  name: Json | undefined;
  /** All that may identify the person. */
  ids: readonly (string | undefined)[];
  /** For events without a source ID: content that distinguishes events of the same name, time and person. */
  content?: JsonObject;
  /** The content of which version 0.2 made the UUID, if it differs. */
  formerContent?: JsonObject;
  /** Equal records of this copy of a table are counted separately: they are those of the table. */
  copy?: string;
}

/** A user with an ID in the source, and the distinct IDs that a record has for this user. */
export interface SourceUser {
  id: string;
  /** Without placeholders. */
  ids: readonly { distinctId: string; isUser: boolean }[];
}

export interface MappedGroup {
  type: string;
  key: string;
  properties: JsonObject;
}

/** A row that describes a person: of several rows of one person the highest version counts (contract, import O2). */
export interface PersonSnapshot {
  kind: "person";
  /** The person's ID in the source. */
  id: string;
  distinctIds: readonly string[];
  properties: JsonObject;
  /** As in the record; undefined when the source has none. */
  time: Json | undefined;
  version: number | bigint;
  /** Version of the assignment of the distinct IDs. */
  idVersion: number | bigint;
  isDeleted: boolean;
}

/** A row that describes a group. */
export interface GroupSnapshot {
  kind: "group";
  type: string;
  key: string;
  properties: JsonObject;
  time: Json | undefined;
  version: number | bigint;
  isDeleted: boolean;
}

export type Snapshot = PersonSnapshot | GroupSnapshot;

/** The events of a record, and the members that they do not carry. */
export interface MappedRecord {
  events: readonly MappedEvent[];
  /** The record describes a person or a group: its events are sent after those of all files (contract, import O1). */
  snapshot?: Snapshot;
  /** Members that are in no event (contract, import L1). */
  omitted?: Iterable<string>;
  /** Codes of warnings for the summary. */
  warnings?: readonly string[];
  /** Why the record is deliberately not an event (contract, import L3). */
  leftOut?: string;
}

/** An event of these parts; ingestion reports missing ones. */
export function toEvent(
  name: Json | undefined,
  distinctId: Json | undefined,
  timestamp: Json | undefined,
  properties: JsonObject,
): JsonObject {
  const event: JsonObject = { event: name ?? null, distinct_id: distinctId ?? null, properties };
  if (timestamp !== undefined && timestamp !== null) event.timestamp = timestamp;
  return event;
}

/**
 * The event of a record that ingestion rejects: its properties are not an object, or an ID is missing.
 *
 * @param name of the event; without it ingestion reports the missing name.
 */
export function rejectRecord(properties: Json, name?: string): MappedRecord {
  const event: JsonObject = name === undefined ? { properties } : { event: name, properties };
  return { events: [{ event, sourceId: undefined }] };
}

/** Why a record that is marked as deleted in the source is not an event. */
export const deletedReason = "deleted in the source";

/** A record that is deliberately not an event. */
export function leaveOut(reason: string): MappedRecord {
  return { events: [], leftOut: reason };
}
