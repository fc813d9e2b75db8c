/** What a record of another product becomes, before its time is read and its uuid made. Pure. */

import type { Json, JsonObject } from "../../lib/json.ts";

/** An event as `/batch/` takes it, and what its source says beside it. */
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

/** An event of these parts; what is not there is left to ingestion, which says what is missing. */
export function eventOf(
  name: Json | undefined,
  distinctId: Json | undefined,
  timestamp: Json | undefined,
  properties: JsonObject,
): JsonObject {
  const made: JsonObject = { event: name ?? null, distinct_id: distinctId ?? null, properties };
  if (timestamp !== undefined && timestamp !== null) made.timestamp = timestamp;
  return made;
}

/** The event of a record whose properties are no object: ingestion refuses it. */
export function unusable(properties: Json): MappedEvent[] {
  return [{ event: { properties }, sourceId: undefined }];
}

/** Takes members over under other names, where they have a value and the target has none. */
export function copy(from: JsonObject, to: JsonObject, names: Readonly<Record<string, string>>): void {
  for (const [name, target] of Object.entries(names)) {
    const value = from[name];
    if (value !== undefined && value !== null && value !== "" && to[target] === undefined) to[target] = value;
  }
}
