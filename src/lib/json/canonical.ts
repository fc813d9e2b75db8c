/** Canonical JSON: one string per value, for comparing, counting and storing. */

import { parseExactJson } from "./exact.ts";
import { isDeeperThan } from "./value.ts";

/** Deeper values have no canonical string: some can be parsed, but not serialized again. */
export const nestingMax = 200;

/** Replaces the string of a value that is nested too deeply. */
export const tooDeep = "";

/** Like `JSON.stringify`, but lone surrogates become U+FFFD; `tooDeep` for values nested too deeply. */
export function canonicalJson(value: unknown): string {
  if (isDeeperThan(value, nestingMax)) return tooDeep;
  return withoutHalves(JSON.stringify(value));
}

/** Whether two strings are the same value: object members have no order. */
export function isSameJson(a: string, b: string): boolean {
  if (a === b) return true;
  const first = a.charCodeAt(0);
  if (first !== b.charCodeAt(0) || (first !== openBrace && first !== openBracket)) return false;
  return Bun.deepEquals(parseExactJson(a), parseExactJson(b), true);
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

/**
 * Replaces characters that JSON allows and the stores do not: NUL and lone surrogates become U+FFFD.
 *
 * Works on JSON text without parsing it: backslashes occur only inside strings, so reading escapes from left to right
 * never misinterprets them.
 */

const suspect = /\\u(?:0000|[dD][89a-fA-F])/;
const escapeSequence = /\\(?:u([0-9a-fA-F]{4})|.)/g;

/** Whether the text contains escapes that `sanitizeJson` has to check. */
export function hasSurrogateEscape(json: string): boolean {
  // Fixed-string search is many times faster than the pattern, and most escapes are of other characters.
  const canMatch = json.includes("\\u0000") || json.includes("\\ud") || json.includes("\\uD");
  return canMatch && suspect.test(json);
}

/**
 * JSON text whose strings can be stored; text without anything to replace is returned unchanged.
 *
 * Different member names can become equal.
 */
export function sanitizeJson(json: string): string {
  if (!hasSurrogateEscape(json)) return json.isWellFormed() ? json : json.toWellFormed();
  let hasNul = false;
  // Each half of a pair may be an escape or a character: unescaped halves can be matched.
  const unescaped = json.replace(escapeSequence, (found, hex: string | undefined) => {
    if (hex === undefined) return found;
    const unit = Number.parseInt(hex, 16);
    if (unit === 0) {
      hasNul = true;
      return "\\ufffd";
    }
    return isSurrogate(unit) ? String.fromCharCode(unit) : found;
  });
  if (!hasNul && unescaped.isWellFormed()) return json;
  return unescaped.toWellFormed();
}

/** Like `sanitizeJson` for a parsed string. */
export function sanitizeString(text: string): string {
  const clean = text.includes("\0") ? text.replaceAll("\0", "\ufffd") : text;
  return clean.isWellFormed() ? clean : clean.toWellFormed();
}

function isSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdfff;
}
