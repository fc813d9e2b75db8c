/**
 * The one place where the JSON of a request is parsed.
 *
 * Parsing cannot be interrupted, and millions of brackets keep it busy for seconds: what is nested deeper, or holds
 * more objects and arrays, than any honest body is refused before.
 */

import { AppError } from "../lib/errors.ts";
import { closingQuote } from "../lib/json-strings.ts";

/** What a text may hold at most. */
export interface JsonLimits {
  /** Levels of nesting: whatever reads stored JSON recursively must not run out of stack. */
  readonly levels: number;
  /** Objects and arrays. */
  readonly containers: number;
}

/** How deep the list of a batch can stand. */
const listDepthMax = 2;

const quote = 34;
const openBracket = 91;
const closeBracket = 93;
const openBrace = 123;
const closeBrace = 125;
const comma = 44;

/** The text holds more levels than is allowed. */
export class NestedTooDeep extends AppError {
  readonly code = "nested_too_deep";
  constructor(
    /** Counted from 0: the element of the outermost list that is at fault; 0 outside of a list. */
    readonly position: number,
    levels: number,
  ) {
    super(`nested deeper than ${levels} levels`);
  }
}

/** The text holds more objects and arrays than is allowed. */
export class TooManyContainers extends AppError {
  readonly code = "too_many_containers";
  constructor(readonly limit: number) {
    super(`more than ${limit} objects and arrays`);
  }
}

/**
 * Parses JSON of a client.
 *
 * @throws {NestedTooDeep} @throws {TooManyContainers} @throws {SyntaxError} not JSON.
 */
export function parseJson(text: string, limits: JsonLimits): unknown {
  checkJson(text, limits);
  return JSON.parse(text);
}

/** What the parser did not like, in its own words. @param error what parsing threw */
export function parserWords(error: unknown): string {
  return error instanceof Error ? error.message.replace(/^JSON Parse error: /, "") : "not JSON";
}

/**
 * Checks that parsing a text takes no longer than its length lets expect; the text need not be JSON.
 *
 * @throws {NestedTooDeep} @throws {TooManyContainers}
 */
export function checkJson(text: string, { levels, containers }: JsonLimits): void {
  if (text.length <= levels) return;
  // A few brackets cannot be deep, and to count them is much faster than to follow them.
  const most = Math.max(levels, containers);
  const count = countOf(text, "{", most) + countOf(text, "[", most);
  if (count > levels && isDeeper(text, levels))
    throw new NestedTooDeep(positionOfDepth(text, levels), levels);
  if (count > containers) throw new TooManyContainers(containers);
}

/** @returns at most one more than `most`. */
function countOf(text: string, searched: string, most: number): number {
  let found = 0;
  for (let at = text.indexOf(searched); at !== -1 && found <= most; at = text.indexOf(searched, at + 1)) {
    found++;
  }
  return found;
}

/** Whether brackets outside of strings are nested deeper. */
function isDeeper(text: string, levels: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      at = closingQuote(text, at);
      if (at === -1) return false;
    } else if (code === openBracket || code === openBrace) {
      if (++depth > levels) return true;
    } else if (code === closeBracket || code === closeBrace) depth--;
  }
  return false;
}

/** Which element of the outermost list goes too deep. */
function positionOfDepth(text: string, levels: number): number {
  let [depth, listDepth, position] = [0, 0, 0];
  for (let at = 0; at < text.length && depth <= levels; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) at = closingQuote(text, at);
    else if (code === openBracket || code === openBrace) {
      depth++;
      if (code === openBracket && listDepth === 0 && depth <= listDepthMax)
        [listDepth, position] = [depth, 0];
    } else if (code === closeBracket || code === closeBrace) {
      if (depth === listDepth) [listDepth, position] = [0, 0];
      depth--;
    } else if (code === comma && depth === listDepth) position++;
  }
  return position;
}
