/**
 * The stored form of stamped properties: the values as a JSON object, and the stamps as bytes. Most properties of a
 * person were written by few events, so a stamp is written once and referred to by its index. Pure.
 *
 * Bytes: version; number of stamps; the stamps; one index per value, in the order of the object; number of unset names;
 * for each, its index, length and UTF-8. Integers are LEB128, times are float64.
 */

import { canonicalJson } from "../../lib/json/canonical.ts";
import { parseExactJson } from "../../lib/json/exact.ts";
import type { StampedProperties, StampedProperty } from "./stamped-properties.ts";

type Stamp = Omit<StampedProperty, "text">;

const formatVersion = 1;
const kinds = ["set", "once", "unset"] as const;
const historicalFlag = 4;
const timeBytes = 8;

export interface StoredProperties {
  /** A JSON object in the order of JavaScript objects. */
  json: string;
  stamps: Uint8Array;
}

/** @returns what `decodeProperties` reads */
export function encodeProperties(properties: StampedProperties): StoredProperties {
  const present: Record<string, StampedProperty> = Object.create(null);
  const unset: [name: string, property: StampedProperty][] = [];
  for (const [name, property] of properties) {
    if (property.kind === "unset") unset.push([name, property]);
    else present[name] = property;
  }
  const values = Object.entries(present);
  const stamps = new StampList();
  const valueIndexes = values.map(([, property]) => stamps.indexOf(property));
  const unsetIndexes = unset.map(([, property]) => stamps.indexOf(property));
  const writer = new ByteWriter();
  writer.integer(formatVersion);
  writer.integer(stamps.list.length);
  for (const stamp of stamps.list) writeStamp(writer, stamp);
  for (const index of valueIndexes) writer.integer(index);
  writer.integer(unset.length);
  for (const [at, [name]] of unset.entries()) {
    writer.integer(unsetIndexes[at]!);
    writer.string(name);
  }
  const members = values.map(([name, { text }]) => `${JSON.stringify(name)}:${text}`);
  return { json: `{${members.join(",")}}`, stamps: writer.bytes };
}

/** @throws the bytes do not belong to these values */
export function decodeProperties({ json, stamps: bytes }: StoredProperties): StampedProperties {
  const reader = new ByteReader(bytes);
  const version = reader.integer();
  if (version !== formatVersion) throw new Error(`Stamps have the unknown format ${version}.`);
  const stamps = Array.from({ length: reader.integer() }, () => readStamp(reader));
  const read = (text: string): StampedProperty => {
    const stamp = stamps[reader.integer()];
    if (stamp === undefined) throw new Error("A stamp is missing.");
    return { ...stamp, text };
  };
  const properties: StampedProperties = new Map();
  for (const [name, value] of Object.entries(parseExactJson(json) as Record<string, unknown>))
    properties.set(name, read(canonicalJson(value)));
  for (let left = reader.integer(); left > 0; left--) {
    const property = read("");
    properties.set(reader.string(), property);
  }
  if (!reader.isAtEnd) throw new Error("There are stamps of other properties.");
  return properties;
}

class StampList {
  readonly list: Stamp[] = [];
  private readonly indexes = new Map<string, number>();

  indexOf({ text: _, ...stamp }: StampedProperty): number {
    const key = Object.values(stamp).join();
    const found = this.indexes.get(key);
    if (found !== undefined) return found;
    this.indexes.set(key, this.list.length);
    return this.list.push(stamp) - 1;
  }
}

function writeStamp(writer: ByteWriter, stamp: Stamp): void {
  writer.integer(kinds.indexOf(stamp.kind) + (stamp.historical ? historicalFlag : 0));
  writer.integer(stamp.number);
  writer.integer(stamp.realtimeUnset);
  writer.integer(stamp.historicalUnset);
  writer.integer(stamp.realtimeNumber);
  writer.float(stamp.realtimeMicros);
}

function readStamp(reader: ByteReader): Stamp {
  const flags = reader.integer();
  const kind = kinds[flags % historicalFlag];
  if (kind === undefined) throw new Error(`A stamp has the unknown kind ${flags}.`);
  return {
    kind,
    historical: flags >= historicalFlag,
    number: reader.integer(),
    realtimeUnset: reader.integer(),
    historicalUnset: reader.integer(),
    realtimeNumber: reader.integer(),
    realtimeMicros: reader.float(),
  };
}

class ByteWriter {
  private readonly written: number[] = [];

  get bytes(): Uint8Array {
    return Uint8Array.from(this.written);
  }

  /** @param value a safe integer, not negative; shifting would cut it to 32 bits */
  integer(value: number): void {
    let rest = value;
    for (; rest >= 128; rest = Math.floor(rest / 128)) this.written.push(128 + (rest % 128));
    this.written.push(rest);
  }

  float(value: number): void {
    const bytes = new Uint8Array(timeBytes);
    new DataView(bytes.buffer).setFloat64(0, value);
    this.written.push(...bytes);
  }

  string(value: string): void {
    const bytes = Buffer.from(value);
    this.integer(bytes.length);
    for (const byte of bytes) this.written.push(byte);
  }
}

class ByteReader {
  private offset = 0;
  private readonly view: DataView;

  constructor(private readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get isAtEnd(): boolean {
    return this.offset === this.bytes.length;
  }

  integer(): number {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      // Throws at the end.
      const byte = this.view.getUint8(this.offset++);
      value += (byte % 128) * factor;
      if (byte < 128) return value;
    }
  }

  float(): number {
    const value = this.view.getFloat64(this.offset);
    this.offset += timeBytes;
    return value;
  }

  string(): string {
    const length = this.integer();
    const end = this.offset + length;
    if (end > this.bytes.length) throw new RangeError("A name is cut off.");
    const value = Buffer.from(this.bytes.subarray(this.offset, end)).toString();
    this.offset = end;
    return value;
  }
}
