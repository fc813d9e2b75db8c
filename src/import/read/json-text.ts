/** Parses JSON that other programs have written: bounded in depth, and without losing a digit. Pure. */

import { endOfValue, skipSpace } from "../../ingestion/json-spans.ts";
import { nestingMax } from "../../ingestion/payload.ts";
import { keptNumber } from "../../lib/exact-json.ts";
import type { Json, JsonObject } from "../../lib/json.ts";

/** What recurses over a record later must not run out of stack. */
export class NestedTooDeep extends Error {}

/**
 * A text that holds a number which a JavaScript number may not hold has one of these where a value begins. Looking at values
 * keeps uuids out, of which most have something like `8e71`: parsing exactly takes about twice as long.
 */
const longNumber = /(?:^|[:[,])\s*-?[\d.]*?(?:\d{16}|\d[eE][+-]?\d{2}|\.\d{15})/;

/**
 * Parses a JSON text. Numbers of more digits than a JavaScript number has are kept as they are written:
 * `JSON.stringify` gives them back, `numberText` tells what they are.
 *
 * @throws {NestedTooDeep} @throws {SyntaxError}
 */
export function parseJsonText(text: string): Json {
  // Shorter texts have no room for so many brackets.
  if (text.length > nestingMax) checkNesting(text);
  return longNumber.test(text) ? (JSON.parse(text, exact as never) as Json) : (JSON.parse(text) as Json);
}

/** An object of these members; unlike an assignment it takes `__proto__` for a name like others. */
export function objectFrom(entries: Iterable<readonly [string, Json]>): JsonObject {
  return Object.fromEntries(entries) as JsonObject;
}

function checkNesting(text: string): void {
  const tally = { members: 0, deepest: 0 };
  try {
    endOfValue(text, skipSpace(text, 0), tally);
  } catch {
    // It is no JSON: the parser will say so.
    return;
  }
  if (tally.deepest > nestingMax) throw new NestedTooDeep();
}

function exact(_: string, value: Json, { source }: { source?: string }): Json {
  if (typeof value !== "number" || source === undefined || String(value) === source) return value;
  const isKept = Number.isFinite(value) && significant(source) <= 15;
  return isKept ? value : (keptNumber(source) as Json);
}

function significant(number: string): number {
  return number
    .replace(/[eE].*$/, "")
    .replace(/[-.]/g, "")
    .replace(/^0+/, "").length;
}
