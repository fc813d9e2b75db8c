/** One text for each value of JSON: what is compared, counted and stored in the place of values. */

import { parseExactJson } from "./exact-json.ts";

/** Nesting of a value beyond which it has no text: far deeper ones could be read, but not written out again. */
export const nestingMax = 200;

/** Stands for the text of a value that has none. */
export const tooDeep = "";

/** What `JSON.stringify` writes, but for halves of surrogate pairs, which become U+FFFD; `tooDeep` where a value is. */
export function canonicalJson(value: unknown): string {
  if (isTooDeep(value, nestingMax)) return tooDeep;
  return withoutHalves(JSON.stringify(value));
}

/** Whether two texts are the same value: members of objects have no order. */
export function isSameJson(one: string, other: string): boolean {
  if (one === other) return true;
  const first = one.charCodeAt(0);
  if (first !== other.charCodeAt(0) || (first !== openBrace && first !== openBracket)) return false;
  return Bun.deepEquals(parseExactJson(one), parseExactJson(other), true);
}

/** JSON text without escaped halves of surrogate pairs, which other readers of JSON refuse. */
export function jsonText(value: unknown): string {
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
