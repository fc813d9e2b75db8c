/** The uuid that an event of another product gets, the same whenever it is imported. Pure. */

import { numberText } from "../../lib/exact-json.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { canonicalUuid } from "../../lib/uuid.ts";
import type { MappedEvent } from "./mapped.ts";

/** Of this product's imports alone; never to be changed, or repeated imports would load everything twice. */
export const importNamespace = "6f1a6a0e-5d0b-5c56-9d5c-3f6f2b2f7a11";

/** Tells which of equal records one is: 1 for the first. */
export type OrdinalOf = (content: string) => number;

/**
 * The uuid of an event: its own; else one of its source id with time, name and ids; else one of its content, with the number
 * that it has among equal records. Neither the place in a file nor its name or packing counts.
 *
 * What is made carries the time of the event (version 7), by which the event store finds it fast.
 * Source: contract, import 1.6 E1 and E2.
 *
 * @param micros the time of the event.
 */
export function eventIdOf(mapped: MappedEvent, micros: number | undefined, ordinalOf: OrdinalOf): string {
  const { sourceId, isUuid, source } = mapped;
  const own = isUuid && sourceId !== undefined ? canonicalUuid(sourceId) : undefined;
  if (own !== undefined) return own;
  if (source === undefined) return legacyIdOf(sourceId, micros, 0, {});
  const key = [micros ?? null, source.name ?? null, source.ids.map((id) => id ?? null)];
  if (sourceId !== undefined) return timed(`key:${JSON.stringify([sourceId, ...key])}`, micros);
  const content = canonicalText([...key, source.content ?? null]);
  return timed(`content:${ordinalOf(content)}:${content}`, micros);
}

/**
 * The uuid that versions before 0.2 gave an event, whose source id or line decided alone.
 *
 * @param record as it was read, before anything is renamed.
 * @param index  of the event in the record.
 */
export function legacyIdOf(
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

/** The uuid of an event that a snapshot becomes: the same for the same content. @param timestamp ISO. */
export function snapshotIdOf(key: string, timestamp: string): string {
  return timed(key, Date.parse(timestamp) * 1_000);
}

function timed(text: string, micros: number | undefined): string {
  const hash = Bun.randomUUIDv5(text, importNamespace);
  const ms = micros === undefined ? -1 : Math.floor(micros / 1_000);
  // As far as a uuid can hold it.
  if (ms < 0 || ms >= 2 ** 48) return hash;
  const time = ms.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${hash.slice(15)}`;
}

/**
 * One text for a value however a file holds it: members sorted, null and what is empty left out, numbers as their text, lists
 * as JSON has them and not as Parquet. Never to be changed: it is part of uuids.
 */
export function canonicalText(value: Json): string {
  return canonical(value) ?? "null";
}

/** @returns undefined for what is empty. */
function canonical(value: Json): string | undefined {
  if (typeof value === "string") return value === "" ? undefined : JSON.stringify(value);
  if (typeof value === "number") return `"${value}"`;
  if (typeof value === "boolean") return String(value);
  if (value === null) return undefined;
  if (Array.isArray(value)) {
    if (value.length === 0) return undefined;
    return `[${value.map((item) => canonical(item) ?? "null").join()}]`;
  }
  const number = numberText(value);
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

/** `{"list":[{"element":1}]}` is how Parquet writes `[1]`. */
function parquetList({ list }: JsonObject): Json[] | undefined {
  if (!Array.isArray(list)) return undefined;
  const isWrapped = (item: Json): item is JsonObject =>
    isJsonObject(item) && Object.keys(item).join() === "element";
  return list.every(isWrapped) ? list.map((item) => item.element!) : undefined;
}
