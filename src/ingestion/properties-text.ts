/**
 * Edits the JSON text of an event's properties: what is not touched stays exactly as the client wrote it, big
 * integers and `12.0` included.
 */

import { rewrittenJson } from "../lib/exact-json.ts";
import { storableJson } from "../lib/unicode.ts";
import {
  countMembers,
  endOfValue,
  memberName,
  memberSpan,
  nextMember,
  skipSpace,
  type Tally,
} from "./json-spans.ts";

const comma = 44;

/** How raw text has to be repaired before it can stand in a journal line. */
export interface Sanitization {
  readonly hasLineBreak: boolean;
  /** A string in it holds what cannot be stored: NUL, or half of a surrogate pair. */
  readonly isUnstorable: boolean;
}

// Raw line breaks stand only between tokens; those in strings are escaped.
const lineBreaks = /[\r\n][ \t\r\n]*/g;

/** One line that can be stored; otherwise the text as it is. */
export function repaired(json: string, repairs: Sanitization): string {
  const line = repairs.hasLineBreak ? json.replace(lineBreaks, "") : json;
  return repairs.isUnstorable ? storableJson(line) : line;
}

/**
 * The object with every name once: readers disagree about which of two equal names counts, so it is settled here,
 * as `JSON.parse` does. Numbers stay as they are written.
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
  const tally: Tally = { members: 0, deepest: 0 };
  endOfValue(json, 0, tally);
  return tally.members;
}

/**
 * The object text without some of its members and with others at its end.
 *
 * A member goes with the comma before it, or the one behind it where nothing is kept before it.
 *
 * @param cut  names of members; each is in the object once at the most.
 * @param more further members, written as `"name":value` with commas between them, or empty.
 */
export function editedObject(json: string, cut: readonly string[], more: string): string {
  const span = memberSpan();
  const tally: Tally = { members: 0, deepest: 0 };
  let [left, from, at, members, gone] = ["", 0, 1, 0, 0];
  while (cut.length > 0 && nextMember(json, at, span)) {
    const before = skipSpace(json, at);
    at = endOfValue(json, span.valueStart, tally);
    if (cut.includes(memberName(json, span))) {
      const behind = skipSpace(json, at);
      const isFirst = members === gone;
      left += json.slice(from, isFirst ? span.nameStart - 1 : before);
      from = isFirst && json.charCodeAt(behind) === comma ? behind + 1 : at;
      gone++;
    }
    members++;
  }
  left += json.slice(from, -1);
  if (more === "") return `${left}}`;
  const isEmpty = cut.length > 0 ? members === gone : skipSpace(json, 1) === json.length - 1;
  return isEmpty ? `{${more}}` : `${left},${more}}`;
}

/** The members of both objects; where both have a name, the second one's. */
export function mergedObjects(under: string, over: string, overValue: object): string {
  const members = keptMembers(under, (name) => !Object.hasOwn(overValue, name));
  members.push(...keptMembers(over, () => true));
  return `{${members.join(",")}}`;
}

/** The text of the members that are to stay. */
function keptMembers(json: string, isKept: (name: string) => boolean): string[] {
  const span = memberSpan();
  const tally: Tally = { members: 0, deepest: 0 };
  const kept: string[] = [];
  let at = 1;
  while (nextMember(json, at, span)) {
    at = endOfValue(json, span.valueStart, tally);
    if (isKept(memberName(json, span))) kept.push(json.slice(span.nameStart - 1, at));
  }
  return kept;
}
