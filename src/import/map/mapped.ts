/** What a record of another product becomes, before its time is read and its uuid derived. Pure. */

import type { Json, JsonObject } from "../../lib/json.ts";

/** An event as `/batch/` takes it, and what its source says about it. */
export interface MappedEvent {
  /** Its `timestamp` as it stands in the record. */
  event: JsonObject;
  /** What its source calls it. */
  sourceId: string | undefined;
  /** The source id is the event's uuid, when it is one. */
  isUuid?: true;
  /** What its uuid is made of besides source id and time; left out: the source id alone tells it from all others. */
  source?: EventSource;
  /** The device and the user of the record, when it names both: linked if the gate lets them. */
  pair?: readonly [device: string, user: string];
  /** The event itself links the pair, as each login does: it goes without `$anon_distinct_id` when the gate refuses. */
  isLink?: true;
  /** An id of the record names nobody. */
  hasPlaceholder?: true;
  /** Groups whose properties the record gives. */
  groups?: readonly MappedGroup[];
  /** Its time as older versions read it, where that differs: their ids contain it (contract, import E3). */
  legacyTime?: Json;
  /** The record was stored by Flagkeep before: its time is right, whatever it is. */
  isOwnExport?: true;
}

/** An event as its source has it; never to be changed once released, or repeated imports would load everything twice. */
export interface EventSource {
  name: Json | undefined;
  /** All that may name the person. */
  ids: readonly (string | undefined)[];
  /** For events without a source id: what tells them from others of this name, time and person. */
  content?: JsonObject;
}

export interface MappedGroup {
  type: string;
  key: string;
  properties: JsonObject;
}

/** A row that describes a person: of several rows of one person the highest version counts (contract, import O2). */
export interface PersonSnapshot {
  kind: "person";
  /** What the source calls the person. */
  id: string;
  distinctIds: readonly string[];
  properties: JsonObject;
  /** As it stands in the record; undefined where the source has none. */
  time: Json | undefined;
  version: number;
  /** Of the assignment of the distinct ids. */
  idVersion: number;
  isDeleted: boolean;
}

/** A row that describes a group. */
export interface GroupSnapshot {
  kind: "group";
  type: string;
  key: string;
  properties: JsonObject;
  time: Json | undefined;
  version: number;
  isDeleted: boolean;
}

export type Snapshot = PersonSnapshot | GroupSnapshot;

/** The events of a record, and what of it they do not carry. */
export interface MappedRecord {
  events: readonly MappedEvent[];
  /** The record describes a person or a group: it becomes events after those of all files (contract, import O1). */
  snapshot?: Snapshot;
  /** Members that are in no event (contract, import L1). */
  notTaken?: Iterable<string>;
  /** Codes of doubts that the summary lists. */
  warnings?: readonly string[];
  /** Why it is right that the record is no event (contract, import L3). */
  leftOut?: string;
}

/** An event of these parts; ingestion says what is missing. */
export function eventOf(
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
 * The event of a record that ingestion rejects: its properties are not an object, or it lacks an id.
 *
 * @param name of the event; without it ingestion names the missing event.
 */
export function unusable(properties: Json, name?: string): MappedRecord {
  const event: JsonObject = name === undefined ? { properties } : { event: name, properties };
  return { events: [{ event, sourceId: undefined }] };
}

/** Why a record that the source marks as deleted is no event. */
export const deletedReason = "deleted in the source";

/** A record that is deliberately no event. */
export function leaveOut(reason: string): MappedRecord {
  return { events: [], leftOut: reason };
}
