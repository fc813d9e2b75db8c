/**
 * Edits the JSON text of an event's properties: what is not touched stays exactly as the client wrote it, big
 * integers and `12.0` included.
 */

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

const space = 32;
const comma = 44;
const colonByte = 58;
const openBrace = 123;

/** How raw text has to be repaired before it can stand in a journal line. */
export interface Repairs {
  readonly hasLineBreak: boolean;
  /** A string in it holds what cannot be stored: NUL, or half of a surrogate pair. */
  readonly isUnstorable: boolean;
}

// Raw line breaks stand only between tokens; those in strings are escaped.
const lineBreaks = /[\r\n][ \t\r\n]*/g;

/** One line that can be stored; otherwise the text as it is. */
export function repaired(json: string, repairs: Repairs): string {
  const line = repairs.hasLineBreak ? json.replace(lineBreaks, "") : json;
  return repairs.isUnstorable ? storableJson(line) : line;
}

/**
 * The object with every name once: readers disagree about which of two equal names counts, so it is settled here,
 * as `JSON.parse` does.
 *
 * @param written members in the text, at every depth.
 * @param value   the parsed text.
 */
export function withUniqueNames(json: string, written: number, value: object): string {
  // As many names as the object itself has: then nothing in it has members, and none of its own is repeated.
  if (written === Object.keys(value).length) return json;
  return written === countMembers(value) ? json : JSON.stringify(value);
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
 * @param cut  names that are in the object; plain ASCII that needs no escapes in JSON.
 * @param more further members, written as `"name":value` with commas between them, or empty.
 * @param hasUnicodeEscape whether the text can have one: then names can be written with it.
 */
export function editedObject(
  json: string,
  cut: readonly string[],
  more: string,
  hasUnicodeEscape: boolean,
): string {
  let left = json;
  // The last cut and the addition are one step, so that the text of most events is put together once.
  for (let index = 0; index < cut.length; index++) {
    const name = cut[index]!;
    const place = hasUnicodeEscape && escapedAscii.test(left) ? undefined : placeOfOnly(left, name);
    if (place === undefined) {
      const kept = keptMembers(json, (member) => !cut.includes(member));
      return `{${kept.join(",")}${kept.length > 0 && more !== "" ? "," : ""}${more}}`;
    }
    if (index === cut.length - 1) return spliced(left, place, more);
    left = spliced(left, place, "");
  }
  return more === "" ? json : spliced(json, { start: 1, end: 1 }, more);
}

/** Names that are cut are ASCII; only an escape of ASCII can hide one of them, or make another look like it. */
const escapedAscii = /\\u00[2-7]/;

interface Place {
  readonly start: number;
  readonly end: number;
}

/** The object text without what stands in a place, and with further members at its end. */
function spliced(json: string, { start, end }: Place, more: string): string {
  if (more === "") return json.slice(0, start) + json.slice(end);
  const isEmpty = skipSpace(json, 1) >= start && skipSpace(json, end) === json.length - 1;
  if (isEmpty) return `{${more}}`;
  return start === end
    ? `${json.slice(0, -1)},${more}}`
    : `${json.slice(0, start)}${json.slice(end, -1)},${more}}`;
}

/**
 * The place of a member and of one comma beside it, found without looking at the other members: many events have one
 * to cut, and walking through all members would cost more than everything else that is done to them.
 *
 * @returns undefined when the text does not show beyond doubt which member is meant.
 */
function placeOfOnly(json: string, name: string): Place | undefined {
  const quoted = `"${name}"`;
  const start = json.indexOf(quoted);
  // A second one could be a member of a nested object.
  if (start === -1 || json.indexOf(quoted, start + 1) !== -1) return undefined;
  let before = start - 1;
  while (json.charCodeAt(before) <= space) before--;
  const colon = skipSpace(json, start + quoted.length);
  // Only the name of a member has a `{` or `,` before its quote and a colon after it.
  const opening = json.charCodeAt(before);
  if (json.charCodeAt(colon) !== colonByte || (opening !== openBrace && opening !== comma)) return undefined;
  const end = endOfValue(json, skipSpace(json, colon + 1), { members: 0, deepest: 0 });
  if (opening === comma) return { start: before, end };
  const next = skipSpace(json, end);
  return { start, end: json.charCodeAt(next) === comma ? next + 1 : end };
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
