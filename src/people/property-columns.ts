/** How properties with their write times lie in the columns of a row. */

import type { Database } from "bun:sqlite";
import { canonicalJson } from "../lib/canonical-json.ts";
import { parseExactJson } from "../lib/exact-json.ts";
import { sharedText } from "../lib/shared-texts.ts";
import { storableJson } from "../lib/unicode.ts";
import { type BagContent, PropertyBag } from "./identity/property-bag.ts";
import { PropertyNames } from "./identity/property-names.ts";
import { isListed, readProperties } from "./property-lists.ts";

/** The columns that hold the properties of a person or a group besides the properties themselves; groups have no `unsetTimes`. */
export interface TimeColumns {
  /** See `packTimes`. */
  propertyTimes: Uint8Array;
  /** A JSON array of [name, time], or null. */
  unsetTimes: string | null;
}

/** @param stored as `readProperties` reads it, or a JSON object. */
export function readBag(
  client: Database,
  stored: string,
  propertyTimes: Uint8Array,
  unsetTimes: string | null,
): PropertyBag {
  const { names, texts } = isListed(stored) ? readProperties(client, stored) : readObject(stored);
  const times = unpackTimes(propertyTimes, names.count);
  // Many persons are in memory at a time, and most values are those of others, too.
  const shared = texts.map(sharedText);
  return new PropertyBag({ names, texts: shared, times, unsetTimes: readUnsetTimes(unsetTimes) });
}

function readObject(json: string): Pick<BagContent, "names" | "texts"> {
  // Versions before 0.2 stored what DuckDB does not read as JSON.
  const values = parseExactJson(storableJson(json)) as Record<string, unknown>;
  const names = Object.keys(values);
  return { names: PropertyNames.of(names), texts: names.map((name) => canonicalJson(values[name])) };
}

/** When the properties were last written, as a row of a person or group holds it: packed, in the order of the properties. */
export function timeColumns(bag: PropertyBag): TimeColumns {
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

/** Distinct times that an index byte can tell apart. */
const indexedTimesMax = 255;

/**
 * Times of the last realtime writes of all values (negative infinity where there was none), in the order in which the JSON object lists them.
 *
 * One event writes many properties, so there are few different times: the first byte says how many, then they follow
 * as 64-bit floats, little-endian, then one index byte per property (left out when there is one time only). A first
 * byte of 0 says that every property has its own eight bytes.
 */
function packTimes({ times }: Pick<BagContent, "times">): Uint8Array {
  const distinct: number[] = [];
  const indexes: number[] = [];
  let index = 0;
  for (const time of times) {
    // Most have the time of the one before.
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

/** Values without a time, where a row was edited by hand, count as written in realtime at the epoch. */
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
