/** What a record of another product becomes, before its time is read and its uuid made. Pure. */

import type { Json, JsonObject } from "../../lib/json.ts";

/** An event as `/batch/` takes it, and what its source says beside it. */
export interface MappedEvent {
  /** Its `timestamp` as it stands in the record. */
  event: JsonObject;
  /** What its source calls it: same id, same event. */
  sourceId: string | undefined;
  /** The device and the user of the record, when it names both: they are one person. */
  pair?: readonly [device: string, user: string];
  /** Groups whose properties the record gives. */
  groups?: readonly MappedGroup[];
  /** The record was stored by Flagkeep before: its time is right, whatever it is. */
  isOwnExport?: true;
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

/** Both ids, when they are two. */
export function pairOf(
  device: string | undefined,
  user: string | undefined,
): { pair?: readonly [string, string] } {
  const isPair = device !== undefined && user !== undefined && device !== user;
  return isPair && device.trim() !== "" && user.trim() !== "" ? { pair: [device, user] } : {};
}
