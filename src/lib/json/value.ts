/**
 * JSON values in flags: definitions written by users, properties sent by SDKs.
 *
 * Every function accepts any value and never throws: bad data must not stop an evaluation.
 */

import { formatNumber } from "./exact.ts";

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [name: string]: Json;
}

/** True for `{…}`, false for null, lists and scalars, including numbers that keep their source form. */
export function isJsonObject(value: unknown): value is JsonObject {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && formatNumber(value) === undefined
  );
}

/** An integer of at least 0, also as a string of digits; undefined for everything else. */
export function wholeNumber(value: Json | undefined): number | undefined {
  const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

/** The object's own member, or undefined. Names such as `constructor` or `__proto__` are ordinary names here. */
export function getOwnProperty(
  object: Readonly<JsonObject> | null | undefined,
  name: string,
): Json | undefined {
  return object !== null && object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined;
}

/**
 * The string that operators compare: strings unchanged, everything else as compact JSON.
 *
 * Object members are sorted by code point, so that equal objects have equal strings. Returns undefined for values
 * nested too deeply to serialize. Source: contract, flag-evaluation 12.
 */
export function toDisplayString(value: Json): string | undefined {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
      // JSON has no such numbers; the request decoder turns them into null, so they are null here too.
      return Number.isFinite(value) ? String(value) : "null";
    case "boolean":
      return value ? "true" : "false";
    default:
      return value === null ? "null" : (formatNumber(value) ?? structureString(value));
  }
}

/** The type name of a JSON value in the contract's messages. */
export function typeName(value: unknown): string {
  if (value === null || value === undefined) return "NoneType";
  if (Array.isArray(value)) return "list";
  switch (typeof value) {
    case "string":
      return "str";
    case "boolean":
      return "bool";
    case "number":
      return Number.isInteger(value) ? "int" : "float";
    default:
      return formatNumber(value) === undefined ? "dict" : "int";
  }
}

/** Lower-cases only A to Z, like the contract's case folding: `İ` and `ẞ` stay unchanged. */
export function foldCase(text: string): string {
  const lower = text.toLowerCase();
  if (lower === text) return text;
  return isAscii(text) ? lower : text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

const depthMax = 200;

function structureString(value: Json): string | undefined {
  const sorted = sortMembers(value, 0);
  return sorted === undefined ? undefined : JSON.stringify(sorted);
}

function sortMembers(value: Json, depth: number): Json | undefined {
  if (typeof value !== "object" || value === null || formatNumber(value) !== undefined) return value;
  if (depth > depthMax) return undefined;
  if (Array.isArray(value)) {
    const items: Json[] = [];
    for (const item of value) {
      const sorted = sortMembers(item, depth + 1);
      if (sorted === undefined) return undefined;
      items.push(sorted);
    }
    return items;
  }
  const members: [string, Json][] = [];
  for (const name of Object.keys(value).sort(byCodePoint)) {
    const sorted = sortMembers(value[name] as Json, depth + 1);
    if (sorted === undefined) return undefined;
    members.push([name, sorted]);
  }
  return Object.fromEntries(members);
}

/** Compares by code point; JavaScript compares UTF-16 units, which differs above U+FFFF. */
function byCodePoint(a: string, b: string): number {
  if (isAscii(a) && isAscii(b)) return a < b ? -1 : a > b ? 1 : 0;
  const left = Array.from(a, (c) => c.codePointAt(0) ?? 0);
  const right = Array.from(b, (c) => c.codePointAt(0) ?? 0);
  for (let i = 0; i < left.length && i < right.length; i++) {
    const difference = left[i]! - right[i]!;
    if (difference !== 0) return difference;
  }
  return left.length - right.length;
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false;
  return true;
}

/** Whether arrays and objects are nested in more levels. It descends no deeper than these. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  for (const member of Object.values(value)) {
    if (isDeeperThan(member, levels - 1)) return true;
  }
  return false;
}
