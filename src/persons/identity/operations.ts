/**
 * Operations on persons and groups requested by an event, derived from its name and properties. Pure: independent of
 * stored persons. `person-rules.ts` and `group-rules.ts` apply the operations. Source: contract, ingestion 11 to 15.
 */

import type { JournalEvent } from "../../journal/entry.ts";
import { sanitizeString } from "../../lib/json/canonical.ts";
import { formatNumber } from "../../lib/json/exact.ts";
import { isJsonObject } from "../../lib/json/value.ts";
import { type Members, ParsedMembers } from "../../scan/members.ts";
import {
  allWrites,
  automaticProperties,
  type PropertyWrites,
  surveyProperties,
} from "./automatic-properties.ts";
import { isIllegalForMerge } from "./distinct-ids.ts";
import {
  aliasEvent,
  identifyEvent,
  isGroupIdentify,
  leavesPersonAlone,
  mergeDangerouslyEvent,
} from "./event-names.ts";
import { ingestionWarning, truncatedString, type Warning } from "./ingestion-warning.ts";

export interface Merge {
  kind: "identify" | "alias" | "dangerously";
  /** The ID merged into the event's distinct ID. */
  otherId: string;
}

/** Applied in this order: `setOnce`, `set`, `unset`. Within a list, earlier `setOnce` and later `set` writes win. */
export interface PropertyOperations {
  setOnce: readonly PropertyWrites[];
  set: readonly PropertyWrites[];
  unset: readonly string[];
}

export interface GroupIdentify {
  type: string;
  key: string;
  properties: Members;
}

export interface Operations {
  /** The event's distinct ID, as stored. */
  distinctId: string;
  merge: Merge | undefined;
  properties: PropertyOperations;
  /** Group types referenced by the event. */
  groupTypes: readonly string[];
  groupIdentify: GroupIdentify | undefined;
  warnings: readonly Warning[];
}

const nothing: PropertyOperations = { setOnce: [], set: [], unset: [] };
const none: readonly never[] = [];

/** The operations of an event; undefined for anonymous events without any. */
export function getOperations(event: JournalEvent): Operations | undefined {
  if (event.mode === "propertyless") return undefined;
  const warnings: Warning[] = [];
  const distinctId = sanitizeString(event.distinctId);
  return {
    distinctId,
    merge: getMerge(event, distinctId, warnings),
    properties: getPropertyOperations(event, warnings),
    groupTypes: getGroupTypes(event.properties.valueOf("$groups")),
    groupIdentify: isGroupIdentify(event.event) ? getGroupIdentify(event.properties) : undefined,
    warnings,
  };
}

/** Whether an event does more to persons than creating a missing one. */
export function changesPersons({ merge, properties }: Operations): boolean {
  const { setOnce, set, unset } = properties;
  return merge !== undefined || setOnce.length > 0 || set.length > 0 || unset.length > 0;
}

function getMerge(event: JournalEvent, ownId: string, warnings: Warning[]): Merge | undefined {
  const asked = askedMerge(event);
  if (asked === undefined) return undefined;
  const otherId = sanitizeString(asked.otherId);
  if (otherId === ownId) return undefined;
  const illegal = [otherId, ownId].find(isIllegalForMerge);
  if (illegal === undefined) return { kind: asked.kind, otherId };
  const details = { illegalDistinctId: truncatedString(illegal), otherDistinctId: truncatedString(otherId) };
  warnings.push(ingestionWarning(event, "cannot_merge_with_illegal_distinct_id", details));
  return undefined;
}

function askedMerge({ event, properties }: JournalEvent): Merge | undefined {
  if (event === identifyEvent) {
    const otherId = properties.valueOf("$anon_distinct_id");
    return otherId === undefined ? undefined : { kind: "identify", otherId: formatId(otherId) };
  }
  if (event !== aliasEvent && event !== mergeDangerouslyEvent) return undefined;
  const alias = properties.valueOf("alias");
  if (!alias) return undefined;
  return { kind: event === aliasEvent ? "alias" : "dangerously", otherId: formatId(alias) };
}

/** Objects and lists are no IDs: they become a string that is illegal for merges, without being serialized. */
function formatId(value: unknown): string {
  return typeof value === "object" && value !== null
    ? (formatNumber(value) ?? "[object Object]")
    : String(value);
}

function getPropertyOperations(event: JournalEvent, warnings: Warning[]): PropertyOperations {
  const { event: name, properties } = event;
  if (leavesPersonAlone(name)) {
    const asks = ["$set", "$set_once", "$unset"].some(
      (asked) => (properties.valueOf(asked) ?? null) !== null,
    );
    if (name === "$exception" && asks) warnings.push(ingestionWarning(event, "set_on_exception", {}));
    return nothing;
  }
  if (isGroupIdentify(name)) return nothing;
  const set = toRecord(properties, "$set");
  const setOnce = toRecord(properties, "$set_once");
  const automatic = automaticProperties(properties, set, setOnce);
  const survey = surveyProperties(name, event.timeMicros, set);
  return {
    setOnce: presentLists(setOnce && getWrites(setOnce), automatic?.setOnce),
    set: presentLists(automatic?.set, survey, set && getWrites(set)),
    unset: getUnsetNames(properties.valueOf("$unset")),
  };
}

function toRecord(properties: Members, name: string): Record<string, unknown> | undefined {
  const value = properties.valueOf(name);
  return isJsonObject(value) ? value : undefined;
}

function getWrites(values: Record<string, unknown>): PropertyWrites {
  return allWrites(new ParsedMembers(values));
}

/** Omits undefined lists. */
function presentLists(...lists: readonly (PropertyWrites | undefined)[]): readonly PropertyWrites[] {
  const found: PropertyWrites[] = [];
  for (const list of lists) if (list !== undefined) found.push(list);
  return found;
}

function getUnsetNames(unset: unknown): readonly string[] {
  if (Array.isArray(unset)) return unset.filter((name) => typeof name === "string");
  return isJsonObject(unset) ? Object.keys(unset) : none;
}

function getGroupTypes(groups: unknown): readonly string[] {
  return groups === undefined ? none : getGroups(groups).map(({ type }) => type);
}

/** The groups in the value of `$groups`. */
export function getGroups(groups: unknown): readonly { type: string; key: string }[] {
  if (!isJsonObject(groups)) return none;
  return Object.entries(groups)
    .filter(([, key]) => isGroupKey(key))
    .map(([type, key]) => ({ type: sanitizeString(type), key: sanitizeString(formatId(key)) }));
}

function getGroupIdentify(properties: Members): GroupIdentify | undefined {
  const group = groupNamed(properties.valueOf("$group_type"), properties.valueOf("$group_key"));
  const set = properties.valueOf("$group_set") ?? {};
  // An invalid set changes nothing and creates no group (decision 7a); ingestion has recorded a warning.
  if (group === undefined || !isJsonObject(set)) return undefined;
  return { ...group, properties: new ParsedMembers(set) };
}

function groupNamed(type: unknown, key: unknown): Pick<GroupIdentify, "type" | "key"> | undefined {
  if (!type || !key || !isScalar(type) || !isScalar(key)) return undefined;
  return { type: sanitizeString(formatId(type)), key: sanitizeString(formatId(key)) };
}

/** Null and empty keys mean that the event belongs to no group of that type. */
function isGroupKey(key: unknown): boolean {
  return key !== "" && key !== null && isScalar(key);
}

function isScalar(value: unknown): boolean {
  return typeof value !== "object" || formatNumber(value) !== undefined;
}
