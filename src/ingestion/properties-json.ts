/**
 * Edits the JSON text of an event's properties: unchanged parts stay exactly as the client wrote them, including big
 * integers and `12.0`.
 */

import { sanitizeJson } from "../lib/json/canonical.ts";
import { rewrittenJson } from "../lib/json/exact.ts";
import {
  countMembers,
  endOfValue,
  type JsonCounts,
  memberName,
  memberSpan,
  nextMember,
  skipSpace,
} from "../lib/json/spans.ts";

const comma = 44;

/** Sanitization that raw text needs before it can be part of a journal line. */
export interface Sanitization {
  readonly hasLineBreak: boolean;
  /** A string in it cannot be stored: it contains NUL, or a lone surrogate. */
  readonly isUnstorable: boolean;
}

// Raw line breaks occur only between tokens; those in strings are escaped.
const lineBreaks = /[\r\n][ \t\r\n]*/g;

/** The text as one storable line, unchanged if possible. */
export function sanitized(json: string, repairs: Sanitization): string {
  const line = repairs.hasLineBreak ? json.replace(lineBreaks, "") : json;
  return repairs.isUnstorable ? sanitizeJson(line) : line;
}

/**
 * The object with unique names: JSON readers disagree about which of two equal names counts, so this follows
 * `JSON.parse`. Numbers stay as written.
 *
 * @param written members in the text, at every depth.
 * @param value   the parsed text.
 */
export function withUniqueNames(json: string, written: number, value: object): string {
  // As many names as the object itself has: then nothing in it has members, and none of its own is repeated.
  if (written === Object.keys(value).length) return json;
  return written === countMembers(value) ? json : rewrittenJson(json);
}

/** Members of an object text and of everything in it. */
export function countWrittenMembers(json: string): number {
  const tally: JsonCounts = { members: 0, deepest: 0 };
  endOfValue(json, 0, tally);
  return tally.members;
}

/**
 * The object text without some of its members and with others appended.
 *
 * A member is cut with the comma before it, or with the one after it if no kept member precedes it.
 *
 * @param cut  names of members; each occurs in the object at most once.
 * @param more further members, as comma-separated `"name":value`, or empty.
 */
export function editedObject(json: string, cut: readonly string[], more: string): string {
  const span = memberSpan();
  const tally: JsonCounts = { members: 0, deepest: 0 };
  let left = "";
  let from = 0;
  let at = 1;
  let members = 0;
  let deleted = 0;
  while (cut.length > 0 && nextMember(json, at, span)) {
    const before = skipSpace(json, at);
    at = endOfValue(json, span.valueStart, tally);
    if (cut.includes(memberName(json, span))) {
      const behind = skipSpace(json, at);
      const isFirst = members === deleted;
      left += json.slice(from, isFirst ? span.nameStart - 1 : before);
      from = isFirst && json.charCodeAt(behind) === comma ? behind + 1 : at;
      deleted++;
    }
    members++;
  }
  left += json.slice(from, -1);
  if (more === "") return `${left}}`;
  const isEmpty = cut.length > 0 ? members === deleted : skipSpace(json, 1) === json.length - 1;
  return isEmpty ? `{${more}}` : `${left},${more}}`;
}

/** The members of both objects; the second one's take precedence. */
export function mergedObjects(under: string, over: string, overValue: object): string {
  const members = retainedMembers(under, (name) => !Object.hasOwn(overValue, name));
  members.push(...retainedMembers(over, () => true));
  return `{${members.join(",")}}`;
}

/** The text of the members to keep. */
function retainedMembers(json: string, isRetained: (name: string) => boolean): string[] {
  const span = memberSpan();
  const tally: JsonCounts = { members: 0, deepest: 0 };
  const preserved: string[] = [];
  let at = 1;
  while (nextMember(json, at, span)) {
    at = endOfValue(json, span.valueStart, tally);
    if (isRetained(memberName(json, span))) preserved.push(json.slice(span.nameStart - 1, at));
  }
  return preserved;
}
