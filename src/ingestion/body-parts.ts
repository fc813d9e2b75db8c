/**
 * Splits a large body into parts of many events, each a separate request, so that memory does not grow with the number
 * of events. Source: contract, ingestion 8.
 *
 * Only finds where events start and end; reading the parts shows whether they are JSON.
 */

import { InvalidPayloadError } from "../http/decode/errors.ts";

/** Approximate bytes of events per part. */
const partBytes = 256 * 1024;
/** The text around the list is repeated in every part; if it is longer, the body is read as a whole. */
const aroundBytesMax = 16 * 1024;

const quote = 34;
const comma = 44;
const colon = 58;
const openBracket = 91;
const backslash = 92;
const closeBracket = 93;
const openBrace = 123;
const closeBrace = 125;
const byteOrderMark = [0xef, 0xbb, 0xbf];

/** A part of a body: a request with some of its events. */
export interface BodyPart {
  /** Assembled on every call. */
  content(): Uint8Array;
  /** 0-based position of its first event in the whole body. */
  readonly firstPosition: number;
}

/** Range of a part's events. */
interface Span {
  readonly start: number;
  readonly end: number;
  readonly firstPosition: number;
}

interface List {
  /** Between the brackets: after the opening one, up to the closing one. */
  readonly start: number;
  readonly end: number;
  readonly spans: readonly Span[];
}

/**
 * Splits a body.
 *
 * @param bytes        UTF-8.
 * @param bytesPerPart approximate bytes of events per part.
 * @returns undefined when it cannot be split: a single event, few bytes, a `batch` that is repeated or written with
 * escapes.
 * @throws {InvalidPayloadError} it is not JSON.
 */
export function splitBody(bytes: Uint8Array, bytesPerPart = partBytes): readonly BodyPart[] | undefined {
  const list = toList(bytes, bytesPerPart);
  if (list === undefined || list.spans.length < 2) return undefined;
  const before = bytes.subarray(0, list.start);
  const after = bytes.subarray(list.end);
  if (before.length + after.length > aroundBytesMax) return undefined;
  return list.spans.map(({ start, end, firstPosition }) => ({
    content: () => Buffer.concat([before, bytes.subarray(start, end), after]),
    firstPosition,
  }));
}

function toList(bytes: Uint8Array, bytesPerPart: number): List | undefined {
  const hasMark = byteOrderMark.every((byte, index) => bytes[index] === byte);
  let at = skipSpace(bytes, hasMark ? byteOrderMark.length : 0);
  let list: List | undefined;
  if (bytes[at] === openBracket) {
    list = readList(bytes, at, bytesPerPart);
    at = list.end + 1;
  } else if (bytes[at] === openBrace) {
    at = skipSpace(bytes, at + 1);
    while (bytes[at] !== closeBrace) {
      if (bytes[at] !== quote) throw notJson();
      const nameEnd = endOfValue(bytes, at);
      const name = bytes.subarray(at + 1, nameEnd - 1);
      if (name.includes(backslash)) return undefined;
      at = skipSpace(bytes, nameEnd);
      if (bytes[at] !== colon) throw notJson();
      at = skipSpace(bytes, at + 1);
      if (isBatch(name)) {
        if (list !== undefined || bytes[at] !== openBracket) return undefined;
        list = readList(bytes, at, bytesPerPart);
        at = list.end + 1;
      } else at = endOfValue(bytes, at);
      at = afterValue(bytes, at, closeBrace);
    }
    at++;
  } else return undefined;
  if (skipSpace(bytes, at) !== bytes.length) throw notJson();
  return list;
}

/** @param at position of the opening bracket. */
function readList(bytes: Uint8Array, at: number, bytesPerPart: number): List {
  const start = at + 1;
  const spans: Span[] = [];
  let position = 0;
  let spanStart = start;
  let firstPosition = 0;
  at = skipSpace(bytes, start);
  while (bytes[at] !== closeBracket) {
    at = endOfValue(bytes, at);
    position++;
    const valueEnd = at;
    at = afterValue(bytes, at, closeBracket);
    if (at - spanStart >= bytesPerPart || bytes[at] === closeBracket) {
      spans.push({ start: spanStart, end: valueEnd, firstPosition });
      spanStart = at;
      firstPosition = position;
    }
  }
  return { start, end: at, spans };
}

/** Position of the next value or name, or of the end of the list or object. */
function afterValue(bytes: Uint8Array, at: number, end: number): number {
  at = skipSpace(bytes, at);
  if (bytes[at] === end) return at;
  if (bytes[at] !== comma) throw notJson();
  at = skipSpace(bytes, at + 1);
  if (bytes[at] === end) throw notJson();
  return at;
}

function skipSpace(bytes: Uint8Array, at: number): number {
  for (;;) {
    const code = bytes[at];
    if (code !== 32 && code !== 10 && code !== 13 && code !== 9) return at;
    at++;
  }
}

/** @throws {InvalidPayloadError} the value is missing or has no end. */
function endOfValue(bytes: Uint8Array, at: number): number {
  const start = at;
  const { length } = bytes;
  let depth = 0;
  for (; at < length; at++) {
    const code = bytes[at]!;
    if (code === quote) {
      at++;
      while (at < length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
      if (at < length && depth === 0) return at + 1;
    } else if (code === openBrace || code === openBracket) depth++;
    else if (code === closeBrace || code === closeBracket) {
      if (depth <= 1) return depth === 1 ? at + 1 : ended(start, at);
      depth--;
    } else if (depth === 0 && (code <= 32 || code === comma)) return ended(start, at);
  }
  throw notJson();
}

/** A number or a literal ends where another token starts. */
function ended(start: number, end: number): number {
  if (start === end) throw notJson();
  return end;
}

function isBatch(name: Uint8Array): boolean {
  return name.length === 5 && Buffer.from(name).toString("latin1") === "batch";
}

function notJson(): InvalidPayloadError {
  return new InvalidPayloadError("the body is not JSON: it is cut off, or its parts do not fit together");
}
