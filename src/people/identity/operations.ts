/**
 * What an event asks for: changes of persons and groups, read from its name and properties alone.
 *
 * Pure: knows nothing of who exists. `person-rules.ts` and `group-rules.ts` carry the operations out.
 * Source: contract, ingestion 11 to 15.
 */

import type { JournalEvent } from "../../journal/entry.ts";
import { storableText } from "../../lib/unicode.ts";
import { automaticProperties, type PropertyWrites, surveyProperties } from "./automatic-properties.ts";
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
  properties: PropertyWrites;
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
    groupTypes: groupsOf(event.properties.$groups).map(({ type }) => type),
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
  switch (event) {
    case identifyEvent:
      if (!Object.hasOwn(properties, "$anon_distinct_id")) return undefined;
      return { kind: "identify", otherId: idText(properties.$anon_distinct_id) };
    case aliasEvent:
    case mergeDangerouslyEvent:
      if (!properties.alias) return undefined;
      return { kind: event === aliasEvent ? "alias" : "dangerously", otherId: idText(properties.alias) };
    default:
      return undefined;
  }
}

/** Objects and lists name nobody: they become a word that is illegal for merges, without being written out. */
function idText(value: unknown): string {
  return typeof value === "object" && value !== null ? "[object Object]" : String(value);
}

function propertyOperationsOf(event: JournalEvent, warnings: Warning[]): PropertyOperations {
  const { event: name, properties } = event;
  if (leavesPersonAlone(name)) {
    const asks = properties.$set ?? properties.$set_once ?? properties.$unset;
    if (name === "$exception" && asks !== undefined)
      warnings.push(warningAbout(event, "set_on_exception", {}));
    return nothing;
  }
  if (isGroupIdentify(name)) return nothing;
  const set = isRecord(properties.$set) ? properties.$set : undefined;
  const setOnce = isRecord(properties.$set_once) ? properties.$set_once : undefined;
  const automatic = automaticProperties(properties, set, setOnce);
  const survey = surveyProperties(name, event.timeMicros, set);
  return {
    setOnce: withoutEmpty([setOnce, automatic?.setOnce]),
    set: withoutEmpty([automatic?.set, survey, set]),
    unset: unsetNamesOf(properties.$unset),
  };
}

function withoutEmpty(lists: readonly (PropertyWrites | undefined)[]): readonly PropertyWrites[] {
  return lists.filter((writes) => writes !== undefined);
}

function unsetNamesOf(unset: unknown): readonly string[] {
  if (Array.isArray(unset)) return unset.filter((name) => typeof name === "string");
  return isRecord(unset) ? Object.keys(unset) : none;
}

/** The groups that the value of `$groups` names. */
export function groupsOf(groups: unknown): readonly { type: string; key: string }[] {
  if (!isRecord(groups)) return none;
  return Object.entries(groups)
    .filter(([, key]) => isGroupKey(key))
    .map(([type, key]) => ({ type: storableText(type), key: storableText(String(key)) }));
}

function groupIdentifyOf(properties: Record<string, unknown>): GroupIdentify | undefined {
  const group = groupNamed(properties);
  const set = properties.$group_set ?? {};
  // A set that is none changes nothing, and makes no group either (decision 7a); ingestion has warned of it.
  return group === undefined || !isRecord(set) ? undefined : { ...group, properties: set };
}

function groupNamed({ $group_type: type, $group_key: key }: Record<string, unknown>) {
  if (!type || !key || typeof type === "object" || typeof key === "object") return undefined;
  return { type: storableText(String(type)), key: storableText(String(key)) };
}

/** Null and empty keys say that the event belongs to no group of that type. */
function isGroupKey(key: unknown): boolean {
  return (typeof key === "string" && key !== "") || typeof key === "number" || typeof key === "boolean";
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
