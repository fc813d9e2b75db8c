/** Parses JSON of other programs with limited depth, and without losing digits. Pure. */

import { nestingMax } from "../../ingestion/payload.ts";
import { exactNumber } from "../../lib/json/exact.ts";
import { NestingTooDeepError } from "../../lib/json/limits.ts";
import { endOfValue, skipSpace } from "../../lib/json/spans.ts";
import type { Json, JsonObject } from "../../lib/json/value.ts";

/**
 * Matches JSON that may contain a number beyond JavaScript's precision, at the start of a value. Checking only values
 * excludes UUIDs, most of which contain something like `8e71`: exact parsing takes about twice as long.
 */
const longNumber = /(?:^|[:[,])\s*-?[\d.]*?(?:\d{16}|\d[eE][+-]?\d{2}|\.\d{15})/;

/**
 * Parses JSON of limited depth: code that recurses over a record later must not overflow its stack. Numbers with more
 * digits than a JavaScript number keep their source: `JSON.stringify` writes it, `formatNumber` returns it.
 *
 * @throws {NestingTooDeepError} @throws {SyntaxError}
 */
export function parseJsonString(text: string): Json {
  // Shorter texts cannot contain enough brackets.
  if (text.length > nestingMax) checkNesting(text);
  return parseCheckedJson(text);
}

/** As `parseJsonString`, for text that was parsed before and may be one object deeper now. */
export function parseCheckedJson(text: string): Json {
  return longNumber.test(text) ? (JSON.parse(text, exact as never) as Json) : (JSON.parse(text) as Json);
}

/** An object of these members; unlike an assignment it treats `__proto__` like any other name. */
export function objectFrom(entries: Iterable<readonly [string, Json]>): JsonObject {
  return Object.fromEntries(entries) as JsonObject;
}

function checkNesting(text: string): void {
  const tally = { members: 0, deepest: 0 };
  try {
    endOfValue(text, skipSpace(text, 0), tally);
  } catch {
    // It is not JSON: the parser reports that.
    return;
  }
  if (tally.deepest > nestingMax) throw new NestingTooDeepError(0, nestingMax);
}

function exact(_: string, value: Json, { source }: { source?: string }): Json {
  if (typeof value !== "number" || source === undefined || String(value) === source) return value;
  const isRetained = Number.isFinite(value) && significant(source) <= 15;
  return isRetained ? value : (exactNumber(source) as Json);
}

function significant(number: string): number {
  return number
    .replace(/[eE].*$/, "")
    .replace(/[-.]/g, "")
    .replace(/^0+/, "").length;
}

/** Whether text is the beginning of a JSON object that goes further. */
export function isBeginningOfJson(text: string): boolean {
  const start = text.trim();
  if (!start.startsWith("{")) return false;
  let closers = "";
  let isString = false;
  for (let at = 0; at < start.length; at++) {
    const character = start[at]!;
    if (isString) {
      if (character === "\\") at += 1;
      else if (character === '"') isString = false;
    } else if (character === '"') isString = true;
    else if (character === "{") closers = `}${closers}`;
    else if (character === "[") closers = `]${closers}`;
    else if (character === "}" || character === "]") closers = closers.slice(1);
    if (closers.length > nestingMax) return false;
  }
  if (closers === "") return false;
  const tail = start.length - tailLength;
  const ends = isString
    ? [start, start.slice(0, -1), start.replace(openEscape, "")].map((each) => `${each}"`)
    : [start.slice(0, Math.max(0, tail)) + start.slice(Math.max(0, tail)).replace(openWord, "null")];
  const rests = ["", "null", ":null"].map((more) => `${more}${closers}`);
  return ends.some(
    (end) => rests.some((rest) => isJson(end + rest)) || isJson(end.replace(/,$/, "") + closers),
  );
}

/** Of a word such as `tru` or `-1.`. */
const tailLength = 50;
const openWord = /(?<=[:[,]\s{0,9})[\w.+-]+$/;
/** An escape without its end. */
const openEscape = /\\u[0-9a-fA-F]{0,3}$/;

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
