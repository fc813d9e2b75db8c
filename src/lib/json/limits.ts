/**
 * The only place that parses the JSON of requests.
 *
 * Parsing cannot be interrupted, and millions of brackets take seconds: JSON nested deeper, or with more objects and
 * arrays, than any honest body is rejected first.
 */

import { AppError } from "../errors.ts";
import { closingQuote } from "./spans.ts";

/** Limits of a JSON text. */
export interface JsonLimits {
  /** Levels of nesting: code that reads stored JSON recursively must not overflow its stack. */
  readonly levels: number;
  /** Number of objects and arrays. */
  readonly containers: number;
}

/** Maximum depth of a batch's list. */
const listDepthMax = 2;

const quote = 34;
const openBracket = 91;
const closeBracket = 93;
const openBrace = 123;
const closeBrace = 125;
const comma = 44;

export class NestingTooDeepError extends AppError {
  readonly code = "nested_too_deep";
  constructor(
    /** 0-based index of the faulty element in the outermost list; 0 outside of a list. */
    readonly position: number,
    levels: number,
  ) {
    super(`nested deeper than ${levels} levels`);
  }
}

export class JsonTooComplexError extends AppError {
  readonly code = "too_many_containers";
  constructor(readonly limit: number) {
    super(`more than ${limit} objects and arrays`);
  }
}

/**
 * Parses a client's JSON.
 *
 * @throws {NestingTooDeepError} @throws {JsonTooComplexError} @throws {SyntaxError} not JSON.
 */
export function parseJson(text: string, limits: JsonLimits): unknown {
  checkJson(text, limits);
  return JSON.parse(text);
}

/** The parser's message. @param error what parsing threw */
export function parserMessage(error: unknown): string {
  return error instanceof Error ? error.message.replace(/^JSON Parse error: /, "") : "not JSON";
}

/**
 * Ensures that parsing takes no longer than the length suggests; the text need not be JSON.
 *
 * @throws {NestingTooDeepError} @throws {JsonTooComplexError}
 */
export function checkJson(text: string, { levels, containers }: JsonLimits): void {
  if (text.length <= levels) return;
  // Few brackets cannot be nested deeply, and counting is much faster than tracking the depth.
  const most = Math.max(levels, containers);
  const count = getCount(text, "{", most) + getCount(text, "[", most);
  if (count > levels && isDeeper(text, levels))
    throw new NestingTooDeepError(positionOfDepth(text, levels), levels);
  if (count > containers) throw new JsonTooComplexError(containers);
}

/** @returns at most `most` + 1. */
function getCount(text: string, searched: string, most: number): number {
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

/** Index of the element in the outermost list that is nested too deeply. */
function positionOfDepth(text: string, levels: number): number {
  let depth = 0;
  let listDepth = 0;
  let position = 0;
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
