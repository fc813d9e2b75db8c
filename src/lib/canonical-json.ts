/** Canonical JSON: one string per value, for comparing, counting and storing. */

import { parseExactJson } from "./exact-json.ts";

/** Deeper values have no canonical string: some can be parsed, but not serialized again. */
export const nestingMax = 200;

/** Replaces the string of a value that is nested too deeply. */
export const tooDeep = "";

/** Like `JSON.stringify`, but lone surrogates become U+FFFD; `tooDeep` for values nested too deeply. */
export function canonicalJson(value: unknown): string {
  if (isTooDeep(value, nestingMax)) return tooDeep;
  return withoutHalves(JSON.stringify(value));
}

/** Whether two strings are the same value: object members have no order. */
export function isSameJson(one: string, other: string): boolean {
  if (one === other) return true;
  const first = one.charCodeAt(0);
  if (first !== other.charCodeAt(0) || (first !== openBrace && first !== openBracket)) return false;
  return Bun.deepEquals(parseExactJson(one), parseExactJson(other), true);
}

/** JSON without escaped lone surrogates, which other JSON parsers reject. */
export function toJsonString(value: unknown): string {
  return withoutHalves(JSON.stringify(value));
}

const openBrace = "{".charCodeAt(0);
const openBracket = "[".charCodeAt(0);

function withoutHalves(text: string): string {
  if (!text.includes("\\ud")) return text;
  return text.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, "$1\ufffd");
}

function isTooDeep(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  for (const member of Object.values(value)) {
    if (isTooDeep(member, levels - 1)) return true;
  }
  return false;
}
