/**
 * Serializes the properties of an event for storage: the client's own JSON, without members that have a column or must
 * not be stored, and with members that the request adds.
 *
 * Pure. Source: contract, ingestion 7.4 (stored extras), 7.5, 7.6, 11.
 */

import type { PersonMode } from "../journal/entry.ts";
import { canonicalUuid } from "../lib/ids.ts";
import { sanitizeJson } from "../lib/json/canonical.ts";
import { rewrittenJson } from "../lib/json/exact.ts";
import {
  countMembers,
  endOfValue,
  type JsonCounts,
  memberName,
  memberSource,
  memberSpan,
  nextMember,
  skipSpace,
} from "../lib/json/spans.ts";
import { addNamesOfElements } from "./elements-chain.ts";
import type { RawItem } from "./item-table.ts";

/*
 * Edits the JSON text of an event's properties: unchanged parts stay exactly as the client wrote them, including big
 * integers and `12.0`.
 */

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
function withUniqueNames(json: string, written: number, value: object): string {
  // As many names as the object itself has: then nothing in it has members, and none of its own is repeated.
  if (written === Object.keys(value).length) return json;
  return written === countMembers(value) ? json : rewrittenJson(json);
}

/** Members of an object text and of everything in it. */
function countWrittenMembers(json: string): number {
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
function mergedObjects(under: string, over: string, overValue: object): string {
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

/** Members that the request adds to the properties of all its events, each as `"name":value`, or empty. */
export interface AddedMembers {
  readonly ip: string;
  readonly sentAt: string;
  readonly anonymizeIps: boolean;
}

/** Decisions about this event. */
export interface PropertyDecisions extends Sanitization {
  readonly mode: PersonMode;
  /** The mode was given next to the properties, which then must contain the same. */
  readonly isModeGivenOutside: boolean;
  readonly ignoresSentAt: boolean;
  /** Names and JSON values of properties that are added unless the client sent them. */
  readonly defaults: readonly (readonly [string, string])[];
}

/** Stored names of an event's groups; one for each group type of a project. */
const groupColumn = /^\$group_\d+$/;
const profileChanges = ["$set", "$set_once", "$unset"];
const internalIp = '"$ip":"127.0.0.1"';

/** The JSON of the stored properties. */
export function serializeProperties(
  item: RawItem,
  added: AddedMembers,
  decisions: PropertyDecisions,
): string {
  const sent = (item.value.properties ?? {}) as Record<string, unknown>;
  const json = itemProperties(item, sent, decisions);
  const cut: string[] = [];
  let more = "";
  const add = (member: string) => {
    more = more === "" ? member : `${more},${member}`;
  };

  if (added.anonymizeIps) {
    if (sent.$ip !== undefined) cut.push("$ip");
  } else if (sent.$ip === undefined) {
    const ip = sent.capture_internal === undefined ? added.ip : internalIp;
    if (ip !== "") add(ip);
  }
  if (added.sentAt !== "" && !decisions.ignoresSentAt && sent.$sent_at === undefined) add(added.sentAt);
  addNamesOfElements(sent, cut);
  if (typeof sent.$session_id === "string") {
    const lower = sent.$session_id.toLowerCase();
    if (lower !== sent.$session_id && canonicalUuid(lower) !== undefined) {
      cut.push("$session_id");
      add(`"$session_id":"${lower}"`);
    }
  }
  const isProfileSwitchPreserved = decisions.mode === "propertyless" && !decisions.isModeGivenOutside;
  if (sent.$process_person_profile !== undefined && !isProfileSwitchPreserved)
    cut.push("$process_person_profile");
  if (decisions.mode === "propertyless") {
    if (decisions.isModeGivenOutside) add('"$process_person_profile":false');
    for (const name of profileChanges) if (sent[name] !== undefined) cut.push(name);
    for (const name in sent) if (name.startsWith("$group_") && groupColumn.test(name)) cut.push(name);
  } else {
    const set = mergedFromTop(item, "$set", sent.$set, json, decisions);
    const setOnce = mergedFromTop(item, "$set_once", sent.$set_once, json, decisions);
    if (set !== undefined) add(`"$set":${set}`);
    if (setOnce !== undefined) add(`"$set_once":${setOnce}`);
    if (set !== undefined && sent.$set !== undefined) cut.push("$set");
    if (setOnce !== undefined && sent.$set_once !== undefined) cut.push("$set_once");
  }
  for (const [name, value] of decisions.defaults) {
    if (sent[name] === undefined) add(`${JSON.stringify(name)}:${value}`);
  }
  return editedObject(json, cut, more);
}

/** The client's JSON on one line, with unique names. */
function itemProperties(
  item: RawItem,
  sent: Readonly<Record<string, unknown>>,
  repairs: Sanitization,
): string {
  // Properties can be absent or null.
  if (item.value.properties === undefined || item.value.properties === null) return "{}";
  const json = sanitized(item.text.slice(item.propertiesStart, item.propertiesEnd), repairs);
  if (!repairs.isUnstorable) return withUniqueNames(json, item.propertyMembers, sent);
  // Different names can have become equal.
  return withUniqueNames(json, countWrittenMembers(json), JSON.parse(json));
}

/** `$set` and `$set_once` next to the properties override those inside; undefined without any. */
function mergedFromTop(
  item: RawItem,
  name: string,
  inside: unknown,
  json: string,
  repairs: Sanitization,
): string | undefined {
  const top = item.value[name];
  if (!isObject(top)) return undefined;
  const raw = sanitized(memberSource(item.text, item.start, name)!, repairs);
  const value: object = repairs.isUnstorable ? JSON.parse(raw) : top;
  const over = withUniqueNames(raw, countWrittenMembers(raw), value);
  return isObject(inside) ? mergedObjects(memberSource(json, 0, name)!, over, value) : over;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
