/** How properties with their write times lie in the columns of a row. */

import { PropertyBag } from "./identity/property-bag.ts";

/** The three columns that hold the properties of a person; groups have no `unsetTimes`. */
export interface PropertyColumns {
  /** A JSON object. */
  properties: string;
  /** See `packTimes`. */
  propertyTimes: Uint8Array;
  /** A JSON array of [name, time], or null. */
  unsetTimes: string | null;
}

/** A UTF-16 unit takes at most this many bytes in UTF-8. */
const bytesPerUnitMax = 3;

export function readBag(
  properties: string,
  propertyTimes: Uint8Array,
  unsetTimes: string | null,
): PropertyBag {
  const values = withoutPrototype<unknown>(properties);
  const { baseTime, times } = unpackTimes(propertyTimes, values);
  const bytesMax = properties.length * bytesPerUnitMax;
  return new PropertyBag({ values, baseTime, times, unsetTimes: readUnsetTimes(unsetTimes), bytesMax });
}

export function propertyColumns(bag: PropertyBag): PropertyColumns {
  return { properties: jsonText(bag.values), ...timeColumns(bag) };
}

/** The columns that change when the values stay the same. */
export function timeColumns(bag: PropertyBag): Omit<PropertyColumns, "properties"> {
  const unset = bag.unsetTimes;
  return {
    propertyTimes: packTimes(bag),
    unsetTimes: unset.size === 0 ? null : JSON.stringify([...unset]),
  };
}

/** JSON text without escaped halves of surrogate pairs, which other JSON readers refuse. */
export function jsonText(value: unknown): string {
  const text = JSON.stringify(value);
  if (!text.includes("\\ud")) return text;
  return text.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, "$1\ufffd");
}

/** An object from JSON in which a property named `__proto__` is one like any other. */
function withoutPrototype<Value>(json: string): Record<string, Value> {
  return Object.setPrototypeOf(JSON.parse(json), null) as Record<string, Value>;
}

function readUnsetTimes(json: string | null): Map<string, number> {
  return new Map(json === null ? [] : (JSON.parse(json) as [string, number][]));
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
function packTimes(bag: PropertyBag): Uint8Array {
  const distinct: number[] = [];
  const indexes: number[] = [];
  for (const name in bag.values) {
    const time = bag.timeOf(name);
    let index = distinct.indexOf(time);
    if (index === -1) index = distinct.push(time) - 1;
    if (index >= indexedTimesMax) return packAllTimes(bag);
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

function packAllTimes(bag: PropertyBag): Uint8Array {
  const names = Object.keys(bag.values);
  const bytes = Buffer.alloc(1 + names.length * timeBytes);
  let end = 1;
  for (const name of names) end = bytes.writeDoubleLE(bag.timeOf(name), end);
  return bytes;
}

/** Values without a time, where a row was edited by hand, count as written in realtime at the epoch. */
function unpackTimes(
  bytes: Uint8Array,
  values: Record<string, unknown>,
): { baseTime: number; times: Record<string, number> } {
  const count = bytes[0] ?? 0;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const timeAt = (index: number) => {
    const start = 1 + index * timeBytes;
    return start + timeBytes <= bytes.length ? view.getFloat64(start, true) : 0;
  };
  const baseTime = timeAt(0);
  const times: Record<string, number> = Object.create(null);
  if (count === 1) return { baseTime, times };
  const indexesStart = 1 + count * timeBytes;
  let position = 0;
  for (const name in values) {
    const index = count === 0 ? position : bytes[indexesStart + position];
    if (index !== 0) times[name] = index === undefined ? 0 : timeAt(index);
    position += 1;
  }
  return { baseTime, times };
}
