/**
 * Serializes the properties of an event for storage: the client's own JSON, without members that have a column or must
 * not be stored, and with members that the request adds.
 *
 * Pure. Source: contract, ingestion 7.4 (stored extras), 7.5, 7.6, 11.
 */

import type { PersonMode } from "../journal/entry.ts";
import { canonicalUuid } from "../lib/ids.ts";
import { memberSource } from "../lib/json/spans.ts";
import { addNamesOfElements } from "./elements-chain.ts";
import type { RawItem } from "./item-table.ts";
import {
  countWrittenMembers,
  editedObject,
  mergedObjects,
  type Sanitization,
  sanitized,
  withUniqueNames,
} from "./properties-json.ts";

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
