/**
 * Finds where the parts of a JSON text start and end, so that they can be copied exactly as sent.
 *
 * Every function expects text that `JSON.parse` has accepted: nothing is validated here, and text that is not JSON
 * makes them throw. Positions are UTF-16 indexes; an end is the index after the last character.
 */

const tab = 9;
const lineFeed = 10;
const carriageReturn = 13;
const space = 32;
const quoteByte = 34;
const comma = 44;
const colonByte = 58;
const openBracket = 91;
const backslash = 92;
const closeBracket = 93;
const openBrace = 123;
const closeBrace = 125;

/** Index of the closing quote of the string that opens at `open`; -1 if unterminated. */
export function closingQuote(text: string, open: number): number {
  let close = text.indexOf('"', open + 1);
  while (text.charCodeAt(close - 1) === backslash && isEscaped(text, close))
    close = text.indexOf('"', close + 1);
  return close;
}

/** Whether the quote at `quote` is part of a string: an odd number of backslashes precedes it. */
function isEscaped(text: string, quote: number): boolean {
  let first = quote - 1;
  while (text.charCodeAt(first) === backslash) first--;
  return (quote - first) % 2 === 0;
}

/** Counts of skipped containers, added up over several calls. */
export interface JsonCounts {
  /** Members of objects at every depth. */
  members: number;
  /** Deepest nesting found, 1 for a flat container. */
  deepest: number;
}

/** Position of an object member. The name's span excludes its quotes. */
export interface MemberSpan {
  nameStart: number;
  nameEnd: number;
  valueStart: number;
  /** End of the object; only set when there is no further member. */
  objectEnd: number;
}

/** An empty span for `nextMember` to fill. */
export function memberSpan(): MemberSpan {
  return { nameStart: 0, nameEnd: 0, valueStart: 0, objectEnd: 0 };
}

/** Index of the first character at or after `at` that is not JSON whitespace. */
export function skipSpace(text: string, at: number): number {
  for (;;) {
    const code = text.charCodeAt(at);
    if (code > space || (code !== space && code !== lineFeed && code !== carriageReturn && code !== tab))
      return at;
    at++;
  }
}

/** End of the string whose opening quote is at `at`. */
function endOfString(text: string, at: number): number {
  const close = closingQuote(text, at);
  if (close === -1) throw new Error("Cannot locate members: the text is not valid JSON.");
  return close + 1;
}

/** End of the object or array that starts at `at`. */
function endOfContainer(text: string, at: number, tally: JsonCounts): number {
  const length = text.length;
  let depth = 0;
  let deepest = tally.deepest;
  let members = 0;
  while (at < length) {
    const code = text.charCodeAt(at);
    at++;
    if (code === quoteByte) {
      // Inlined closingQuote: a call per string costs a tenth of the whole scan.
      let close = text.indexOf('"', at);
      while (text.charCodeAt(close - 1) === backslash && isEscaped(text, close))
        close = text.indexOf('"', close + 1);
      if (close === -1) break;
      at = close + 1;
    } else if (code === colonByte) {
      members++;
    } else if (code === openBrace || code === openBracket) {
      depth++;
      if (depth > deepest) deepest = depth;
    } else if (code === closeBrace || code === closeBracket) {
      depth--;
      if (depth === 0) {
        tally.members += members;
        tally.deepest = deepest;
        return at;
      }
    }
  }
  throw new Error("Cannot locate members: the text is not valid JSON.");
}

/** End of the value, of any kind, that starts at `at`. */
export function endOfValue(text: string, at: number, tally: JsonCounts): number {
  const code = text.charCodeAt(at);
  if (code === quoteByte) return endOfString(text, at);
  if (code === openBrace || code === openBracket) return endOfContainer(text, at, tally);
  for (;;) {
    const next = text.charCodeAt(at);
    // NaN, past the end of the text, ends a number that is the whole document.
    if (!(next > space) || next === comma || next === closeBrace || next === closeBracket) return at;
    at++;
  }
}

/**
 * Finds the next member of an object; repeated names are returned each time.
 *
 * @param at   after the object's `{`, or the end of the previous member's value.
 * @param span is filled; it can be reused.
 * @returns whether there is one.
 */
export function nextMember(text: string, at: number, span: MemberSpan): boolean {
  at = skipSpace(text, at);
  if (text.charCodeAt(at) === comma) at = skipSpace(text, at + 1);
  if (text.charCodeAt(at) === closeBrace) {
    span.objectEnd = at + 1;
    return false;
  }
  const afterName = endOfString(text, at);
  span.nameStart = at + 1;
  span.nameEnd = afterName - 1;
  span.valueStart = skipSpace(text, skipSpace(text, afterName) + 1);
  return true;
}

/**
 * Start of the next value of an array, or the position of its `]`.
 *
 * @param at after the array's `[`, or the end of the previous value.
 */
export function nextValueStart(text: string, at: number): number {
  at = skipSpace(text, at);
  return text.charCodeAt(at) === comma ? skipSpace(text, at + 1) : at;
}

/** The member's name with its escapes resolved. */
export function memberName(text: string, span: Readonly<MemberSpan>): string {
  const raw = text.slice(span.nameStart, span.nameEnd);
  return raw.includes("\\") ? JSON.parse(`"${raw}"`) : raw;
}

/** Whether the member is called `name`; creates a string only for a name with escapes. */
export function hasName(text: string, span: Readonly<MemberSpan>, name: string): boolean {
  const length = span.nameEnd - span.nameStart;
  if (length === name.length) return text.startsWith(name, span.nameStart);
  // An escape is longer than its character, so only longer names can be equal.
  return length > name.length && memberName(text, span) === name;
}

/** Text of the value of the last member called `name` in the object at `at`: the one that `JSON.parse` keeps. */
export function memberSource(text: string, at: number, name: string): string | undefined {
  const span = memberSpan();
  const tally: JsonCounts = { members: 0, deepest: 0 };
  let found: string | undefined;
  at++;
  while (nextMember(text, at, span)) {
    at = endOfValue(text, span.valueStart, tally);
    if (hasName(text, span, name)) found = text.slice(span.valueStart, at);
  }
  return found;
}

/** Members of a parsed value at every depth: fewer than in its text when names were repeated. */
export function countMembers(value: unknown): number {
  let count = 0;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) {
      const item: unknown = value[i];
      if (typeof item === "object" && item !== null) count += countMembers(item);
    }
  } else if (typeof value === "object" && value !== null) {
    const object = value as Record<string, unknown>;
    for (const name in object) {
      count++;
      const member = object[name];
      if (typeof member === "object" && member !== null) count += countMembers(member);
    }
  }
  return count;
}
