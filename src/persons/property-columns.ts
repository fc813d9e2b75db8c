/** Encoding of properties and their write times in the columns of a row. */

import type { Database } from "bun:sqlite";
import { intern } from "../lib/bounded-cache.ts";
import { canonicalJson, sanitizeJson } from "../lib/json/canonical.ts";
import { parseExactJson } from "../lib/json/exact.ts";
import { PropertyNames } from "./identity/property-names.ts";
import { PropertyState, type PropertyStateData } from "./identity/property-state.ts";
import { isCompact, readProperties } from "./property-key-sets.ts";

/** The columns in addition to the properties; groups have no `unsetTimes`. */
export interface TimeColumns {
  /** See `packTimes`. */
  propertyTimes: Uint8Array;
  /** A JSON array of [name, time], or null. */
  unsetTimes: string | null;
}

/** @param stored as `readProperties` reads it, or a JSON object */
export function readPropertyState(
  client: Database,
  stored: string,
  propertyTimes: Uint8Array,
  unsetTimes: string | null,
): PropertyState {
  const values = isCompact(stored) ? readProperties(client, stored) : readObject(stored);
  return toState(values, propertyTimes, unsetTimes);
}

/** @param json an object */
export function readObjectState(
  json: string,
  propertyTimes: Uint8Array,
  unsetTimes: string | null,
): PropertyState {
  return toState(readObject(json), propertyTimes, unsetTimes);
}

function toState(
  { names, texts }: Pick<PropertyStateData, "names" | "texts">,
  propertyTimes: Uint8Array,
  unsetTimes: string | null,
): PropertyState {
  const times = unpackTimes(propertyTimes, names.count);
  // Many persons are in memory at a time, and most values are shared.
  const shared = texts.map(intern);
  return new PropertyState({ names, texts: shared, times, unsetTimes: readUnsetTimes(unsetTimes) });
}

function readObject(json: string): Pick<PropertyStateData, "names" | "texts"> {
  // Versions before 0.2 stored JSON that DuckDB cannot read.
  const values = parseExactJson(sanitizeJson(json)) as Record<string, unknown>;
  const names = Object.keys(values);
  return { names: PropertyNames.from(names), texts: names.map((name) => canonicalJson(values[name])) };
}

/** The write times of properties as stored in a row of a person or group, in the order of the properties. */
export function timeColumns(bag: PropertyState): TimeColumns {
  const unset = bag.unsetTimes;
  return {
    propertyTimes: packTimes(bag.content),
    unsetTimes: unset.size === 0 ? null : JSON.stringify([...unset]),
  };
}

function readUnsetTimes(json: string | null): Map<string, number> {
  return json === null ? new Map() : new Map(JSON.parse(json) as [string, number][]);
}

const timeBytes = Float64Array.BYTES_PER_ELEMENT;

/** Number of distinct times that an index byte can address. */
const indexedTimesMax = 255;

/**
 * Packs the realtime write times of all values (negative infinity if none), in JSON order. Format: the number of
 * distinct times (1 byte), the times (64-bit floats, little-endian), and an index byte per property unless there is one
 * time only. A first byte of 0 means eight bytes per property.
 */
function packTimes({ times }: Pick<PropertyStateData, "times">): Uint8Array {
  const distinct: number[] = [];
  const indexes: number[] = [];
  let index = 0;
  for (const time of times) {
    // Most values have the time of the previous one.
    if (distinct[index] !== time) index = distinct.indexOf(time);
    if (index === -1) index = distinct.push(time) - 1;
    if (index >= indexedTimesMax) return packAllTimes(times);
    indexes.push(index);
  }
  if (distinct.length === 1) indexes.length = 0;
  const bytes = Buffer.allocUnsafe(1 + distinct.length * timeBytes + indexes.length);
  bytes[0] = distinct.length;
  let end = 1;
  for (const time of distinct) end = bytes.writeDoubleLE(time, end);
  for (const index of indexes) {
    bytes[end] = index;
    end += 1;
  }
  return bytes;
}

function packAllTimes(times: readonly number[]): Uint8Array {
  const bytes = Buffer.alloc(1 + times.length * timeBytes);
  let end = 1;
  for (const time of times) end = bytes.writeDoubleLE(time, end);
  return bytes;
}

/** Values without a time (a manually edited row) are treated as realtime writes at the epoch. */
function unpackTimes(bytes: Uint8Array, values: number): number[] {
  const count = bytes[0] ?? 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const whole = Math.floor(Math.max(0, bytes.length - 1) / timeBytes);
  const packed = Array.from({ length: count === 0 ? whole : Math.min(count, whole) }, (_, index) =>
    view.getFloat64(1 + index * timeBytes, true),
  );
  const indexesStart = 1 + count * timeBytes;
  const times: number[] = [];
  for (let position = 0; position < values; position++) {
    const index = count === 0 ? position : count === 1 ? 0 : (bytes[indexesStart + position] ?? -1);
    times.push(packed[index] ?? 0);
  }
  return times;
}
