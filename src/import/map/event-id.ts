/** Deterministic UUIDs for events of other products, the same in every import. Pure. */

import { canonicalUuid } from "../../lib/ids.ts";
import { formatNumber } from "../../lib/json/exact.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { objectFrom } from "../read/json-text.ts";
import { parseListString, toJsonString, withoutFilling } from "./lenient-json.ts";
import type { MappedEvent } from "./mapped.ts";

/** Only for this product's imports; must never change, or repeated imports would load everything twice. */
export const importNamespace = "6f1a6a0e-5d0b-5c56-9d5c-3f6f2b2f7a11";

/** Numbers equal records: 1 for the first. */
export type OrdinalOf = (content: string) => number;

/**
 * The UUID of an event: its own; else derived from its source ID with time, name and IDs; else from its content, with
 * the number among equal records. It does not depend on the position in a file, or the file's name or compression.
 *
 * A derived UUID contains the time of the event (version 7), by which the event store finds it fast. Source: contract,
 * import 1.6 E1 and E2.
 *
 * @param micros the time of the event.
 */
export function getEventId(mapped: MappedEvent, micros: number | undefined, getOrdinal: OrdinalOf): string {
  return getEventIds(mapped, micros, getOrdinal, false)[0]!;
}

/** @returns the UUID, and if requested the one that 0.2 derived from the content, if it differs. */
export function getEventIds(
  mapped: MappedEvent,
  micros: number | undefined,
  getOrdinal: OrdinalOf,
  hasFormer: boolean,
): string[] {
  const { sourceId, isUuid, source } = mapped;
  const own = isUuid && sourceId !== undefined ? canonicalUuid(sourceId) : undefined;
  if (own !== undefined) return [own];
  if (source === undefined) return [getLegacyId(sourceId, micros, 0, {})];
  const key = [micros ?? null, source.name ?? null, source.ids.map((id) => id ?? null)];
  if (sourceId !== undefined) return [timed(`key:${JSON.stringify([sourceId, ...key])}`, micros)];
  const { content = null, formerContent = content, copy } = source;
  const canonical = canonicalString([...key, content && withoutNotation(content)]);
  const ordinal = getOrdinal(copy === undefined ? canonical : `${copy}:${canonical}`);
  const getId = (text: string) => timed(`content:${ordinal}:${text}`, micros);
  const uuid = getId(canonical);
  const former = hasFormer ? getId(canonicalString([...key, formerContent])) : uuid;
  return former === uuid ? [uuid] : [uuid, former];
}

/**
 * The UUID that versions before 0.2 gave an event, derived from the source ID or line alone.
 *
 * @param record as it was read, before renaming.
 * @param index  of the event in the record.
 */
export function getLegacyId(
  sourceId: string | undefined,
  micros: number | undefined,
  line: number,
  record: JsonObject,
  index = 0,
): string {
  const own = sourceId === undefined ? undefined : canonicalUuid(sourceId);
  if (own !== undefined) return own;
  if (sourceId !== undefined) return timed(`id:${sourceId}`, micros);
  return timed(`line:${line}:${JSON.stringify(record)}${index === 0 ? "" : `:${index}`}`, micros);
}

/** The UUID of a snapshot's event: the same for the same content. @param timestamp ISO. */
export function getSnapshotId(key: string, timestamp: string): string {
  return timed(key, Date.parse(timestamp) * 1_000);
}

function timed(text: string, micros: number | undefined): string {
  const hash = Bun.randomUUIDv5(text, importNamespace);
  const ms = micros === undefined ? -1 : Math.floor(micros / 1_000);
  // The time must fit into a UUID.
  if (ms < 0 || ms >= 2 ** 48) return hash;
  const time = ms.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hash.slice(15)}`;
}

const decimal = /^-?(?:0|[1-9]\d*)\.\d+$/;
/** Longer text is no number, and cannot be one value in the notations of several writers. */
const decimalLengthMax = 100;

/**
 * The members of a record, independent of how its file writes them: tables have lists, objects, numbers and booleans as
 * text. Must never change: it is part of UUIDs.
 */
function withoutNotation(record: JsonObject): JsonObject {
  return objectFrom(Object.entries(record).map(([name, value]) => [name, plainValue(value)]));
}

function plainValue(written: Json): Json {
  if (typeof written === "boolean") return String(written);
  const number = formatNumber(written);
  if (number !== undefined) return plainNumber(number);
  if (typeof written !== "string") return written;
  const value = withoutFilling(written);
  if (decimal.test(value)) return plainNumber(value);
  const object = toJsonString(value);
  return typeof object === "string" ? (parseListString(value) ?? value) : object;
}

/** `12.50` is `12.5`. */
function plainNumber(text: string): string {
  return text.length <= decimalLengthMax && decimal.test(text) ? text.replace(/\.?0+$/, "") : text;
}

/**
 * One string per value, independent of the file format: members sorted, null and empty values left out, numbers as
 * strings, lists as in JSON instead of Parquet. Must never change: it is part of UUIDs.
 */
export function canonicalString(value: Json): string {
  return canonical(value) ?? "null";
}

/** @returns undefined for an empty value. */
function canonical(value: Json): string | undefined {
  if (typeof value === "string") return value === "" ? undefined : JSON.stringify(value);
  if (typeof value === "number") return `"${value}"`;
  if (typeof value === "boolean") return String(value);
  if (value === null) return undefined;
  if (Array.isArray(value)) {
    if (value.length === 0) return undefined;
    return `[${value.map((item) => canonical(item) ?? "null").join()}]`;
  }
  const number = formatNumber(value);
  if (number !== undefined) return JSON.stringify(number);
  const object = value as JsonObject;
  const names = Object.keys(object);
  if (names[0] === "list" && names.length === 1) {
    const list = parquetList(object);
    if (list !== undefined) return canonical(list);
  }
  let text = "";
  for (const name of names.sort()) {
    const member = canonical(object[name]!);
    if (member !== undefined) text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${member}`;
  }
  return text === "" ? undefined : `{${text}}`;
}

/** Parquet represents `[1]` as `{"list":[{"element":1}]}`. */
function parquetList({ list }: JsonObject): Json[] | undefined {
  if (!Array.isArray(list)) return undefined;
  const isWrapped = (item: Json): item is JsonObject =>
    isJsonObject(item) && Object.keys(item).join() === "element";
  return list.every(isWrapped) ? list.map((item) => item.element!) : undefined;
}
