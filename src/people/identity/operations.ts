/**
 * What an event asks for: changes of persons and groups, read from its name and properties alone.
 *
 * Pure: knows nothing of who exists. `person-rules.ts` and `group-rules.ts` carry the operations out.
 * Source: contract, ingestion 11 to 15.
 */

import type { JournalEvent } from "../../journal/entry.ts";
import { numberText } from "../../lib/exact-json.ts";
import { isJsonObject } from "../../lib/json.ts";
import { storableText } from "../../lib/unicode.ts";
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
import { shownText, type Warning, warningAbout } from "./warning.ts";

export interface Merge {
  kind: "identify" | "alias" | "dangerously";
  /** The id that is merged into the event's own. */
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
  /** The event's own id, as stored. */
  distinctId: string;
  merge: Merge | undefined;
  properties: PropertyOperations;
  /** Names of group types that the event mentions. */
  groupTypes: readonly string[];
  groupIdentify: GroupIdentify | undefined;
  warnings: readonly Warning[];
}

const nothing: PropertyOperations = { setOnce: [], set: [], unset: [] };
const none: readonly never[] = [];

/** The operations of an event; `undefined` when it has none because it is personless. */
export function operationsOf(event: JournalEvent): Operations | undefined {
  if (event.mode === "propertyless") return undefined;
  const warnings: Warning[] = [];
  const distinctId = storableText(event.distinctId);
  return {
    distinctId,
    merge: mergeOf(event, distinctId, warnings),
    properties: propertyOperationsOf(event, warnings),
    groupTypes: groupTypesOf(event.properties.valueOf("$groups")),
    groupIdentify: isGroupIdentify(event.event) ? groupIdentifyOf(event.properties) : undefined,
    warnings,
  };
}

/** Whether an event does more to persons than to make one when there is none. */
export function changesPersons({ merge, properties }: Operations): boolean {
  const { setOnce, set, unset } = properties;
  return merge !== undefined || setOnce.length > 0 || set.length > 0 || unset.length > 0;
}

function mergeOf(event: JournalEvent, ownId: string, warnings: Warning[]): Merge | undefined {
  const asked = askedMerge(event);
  if (asked === undefined) return undefined;
  const otherId = storableText(asked.otherId);
  if (otherId === ownId) return undefined;
  const illegal = [otherId, ownId].find(isIllegalForMerge);
  if (illegal === undefined) return { kind: asked.kind, otherId };
  const details = { illegalDistinctId: shownText(illegal), otherDistinctId: shownText(otherId) };
  warnings.push(warningAbout(event, "cannot_merge_with_illegal_distinct_id", details));
  return undefined;
}

function askedMerge({ event, properties }: JournalEvent): Merge | undefined {
  if (event === identifyEvent) {
    const otherId = properties.valueOf("$anon_distinct_id");
    return otherId === undefined ? undefined : { kind: "identify", otherId: idText(otherId) };
  }
  if (event !== aliasEvent && event !== mergeDangerouslyEvent) return undefined;
  const alias = properties.valueOf("alias");
  if (!alias) return undefined;
  return { kind: event === aliasEvent ? "alias" : "dangerously", otherId: idText(alias) };
}

/** Objects and lists name nobody: they become a word that is illegal for merges, without being written out. */
function idText(value: unknown): string {
  return typeof value === "object" && value !== null
    ? (numberText(value) ?? "[object Object]")
    : String(value);
}

function propertyOperationsOf(event: JournalEvent, warnings: Warning[]): PropertyOperations {
  const { event: name, properties } = event;
  if (leavesPersonAlone(name)) {
    const asks = ["$set", "$set_once", "$unset"].some(
      (asked) => (properties.valueOf(asked) ?? null) !== null,
    );
    if (name === "$exception" && asks) warnings.push(warningAbout(event, "set_on_exception", {}));
    return nothing;
  }
  if (isGroupIdentify(name)) return nothing;
  const set = recordOf(properties, "$set");
  const setOnce = recordOf(properties, "$set_once");
  const automatic = automaticProperties(properties, set, setOnce);
  const survey = surveyProperties(name, event.timeMicros, set);
  return {
    setOnce: given(setOnce && writesOf(setOnce), automatic?.setOnce),
    set: given(automatic?.set, survey, set && writesOf(set)),
    unset: unsetNamesOf(properties.valueOf("$unset")),
  };
}

function recordOf(properties: Members, name: string): Record<string, unknown> | undefined {
  const value = properties.valueOf(name);
  return isJsonObject(value) ? value : undefined;
}

function writesOf(values: Record<string, unknown>): PropertyWrites {
  return allWrites(new ParsedMembers(values));
}

/** Those that there are. */
function given(...lists: readonly (PropertyWrites | undefined)[]): readonly PropertyWrites[] {
  const found: PropertyWrites[] = [];
  for (const list of lists) if (list !== undefined) found.push(list);
  return found;
}

function unsetNamesOf(unset: unknown): readonly string[] {
  if (Array.isArray(unset)) return unset.filter((name) => typeof name === "string");
  return isJsonObject(unset) ? Object.keys(unset) : none;
}

function groupTypesOf(groups: unknown): readonly string[] {
  return groups === undefined ? none : groupsOf(groups).map(({ type }) => type);
}

/** The groups that the value of `$groups` names. */
export function groupsOf(groups: unknown): readonly { type: string; key: string }[] {
  if (!isJsonObject(groups)) return none;
  return Object.entries(groups)
    .filter(([, key]) => isGroupKey(key))
    .map(([type, key]) => ({ type: storableText(type), key: storableText(idText(key)) }));
}

function groupIdentifyOf(properties: Members): GroupIdentify | undefined {
  const group = groupNamed(properties.valueOf("$group_type"), properties.valueOf("$group_key"));
  const set = properties.valueOf("$group_set") ?? {};
  // A set that is none changes nothing, and makes no group either (decision 7a); ingestion has warned of it.
  if (group === undefined || !isJsonObject(set)) return undefined;
  return { ...group, properties: new ParsedMembers(set) };
}

function groupNamed(type: unknown, key: unknown): Pick<GroupIdentify, "type" | "key"> | undefined {
  if (!type || !key || !isScalar(type) || !isScalar(key)) return undefined;
  return { type: storableText(idText(type)), key: storableText(idText(key)) };
}

/** Null and empty keys say that the event belongs to no group of that type. */
function isGroupKey(key: unknown): boolean {
  return key !== "" && key !== null && isScalar(key);
}

function isScalar(value: unknown): boolean {
  return typeof value !== "object" || numberText(value) !== undefined;
}
