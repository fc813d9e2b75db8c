/**
 * JSON values as flags meet them: definitions written by people, properties sent by SDKs.
 *
 * Everything here accepts any value and never throws: bad data must not stop an evaluation.
 */

import { numberText } from "./exact-json.ts";

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [name: string]: Json;
}

/** True for `{…}`, false for null, lists and scalars, also for numbers that are kept as they were written. */
export function isJsonObject(value: unknown): value is JsonObject {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && numberText(value) === undefined
  );
}

/** A whole number of at least 0, also as its digits; undefined for everything else. */
export function wholeNumber(value: Json | undefined): number | undefined {
  const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
  return typeof number === "number" && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

/** The object's own member, or undefined. Names such as `constructor` or `__proto__` are ordinary names here. */
export function ownMember(object: Readonly<JsonObject> | null | undefined, name: string): Json | undefined {
  return object !== null && object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined;
}

/**
 * The text an operator compares: strings as they are, everything else as compact JSON.
 *
 * Members of objects are sorted by code point, so two equal objects have equal texts whatever their order.
 * Returns undefined for values too deep to be written down. Source: contract, flag-evaluation 12.
 */
export function textOf(value: Json): string | undefined {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
      // JSON has no such numbers; the request decoder turns them into null, so read them as null here too.
      return Number.isFinite(value) ? String(value) : "null";
    case "boolean":
      return value ? "true" : "false";
    default:
      return value === null ? "null" : (numberText(value) ?? structureText(value));
  }
}

/** The name of a JSON value's type as the contract's messages have it. */
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
      return numberText(value) === undefined ? "dict" : "int";
  }
}

/** Lower-cases A to Z only, as the contract folds case: `İ` or `ẞ` stay as they are. */
export function foldCase(text: string): string {
  const lower = text.toLowerCase();
  if (lower === text) return text;
  return isAscii(text) ? lower : text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

const depthMax = 200;

function structureText(value: Json): string | undefined {
  const sorted = sortMembers(value, 0);
  return sorted === undefined ? undefined : JSON.stringify(sorted);
}

function sortMembers(value: Json, depth: number): Json | undefined {
  if (typeof value !== "object" || value === null || numberText(value) !== undefined) return value;
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

/** Order by code point; JavaScript's own order is by UTF-16 unit and differs above U+FFFF. */
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
