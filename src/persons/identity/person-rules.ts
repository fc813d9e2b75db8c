/**
 * Applies an event to persons: creation, properties, merges. Pure over `PersonsState`: no store, no clock. Source:
 * contract, ingestion 12 and 13; decisions 1 and 8.
 */

import type { JournalEvent } from "../../journal/entry.ts";
import { ingestionWarning, truncatedString, type Warning } from "./ingestion-warning.ts";
import { changesPersons, type Merge, type Operations, type PropertyOperations } from "./operations.ts";
import type { DistinctId, Person, PersonsState } from "./persons-state.ts";
import { type PropertyState, propertyBytesMax, type WriteTime } from "./property-state.ts";

/**
 * A person with more distinct IDs is never merged into another one: every ID's row moves, and clients with the public
 * project key could trigger that repeatedly. Any number of IDs may join a person.
 */
export const mergedIdsMax = 5_000;

const noWarnings: readonly Warning[] = [];

/**
 * Applies the operations of one event; returns the resulting warnings.
 * @param ownId the event's distinct ID if already looked up; it may have moved to another person since
 */
export function applyToPersons(
  state: PersonsState,
  event: JournalEvent,
  operations: Operations,
  ownId: DistinctId | undefined = state.id(event.projectId, operations.distinctId),
): readonly Warning[] {
  const { merge, distinctId } = operations;
  const own = ownId?.person;
  const other = merge === undefined ? undefined : state.find(event.projectId, merge.otherId);
  const present = isAliasOfUser(merge, own, other) ? other : (own ?? other);
  if (present !== undefined && !changesPersons(operations)) return noWarnings;
  const warnings: Warning[] = [];
  const person = present ?? state.create(event.projectId, distinctId, event.timeMicros, merge?.otherId);
  const before = getSnapshot(person);
  if (merge !== undefined) applyMerge(state, event, operations, merge, { person, own, other, warnings });
  writeProperties(person.bag, operations.properties, event, present === undefined);
  const rejections = person.bag.rejections - before.rejections;
  if (rejections > 0) warnings.push(sizeWarning(event, person, rejections));
  settle(person, before, present === undefined);
  return warnings;
}

/**
 * Whether the alias belongs to an identified person and the event's ID does not: then the alias's person survives,
 * because an anonymous device never overwrites a user. Source: decision 8.
 */
function isAliasOfUser(
  merge: Merge | undefined,
  own: Person | undefined,
  other: Person | undefined,
): boolean {
  return merge?.kind === "alias" && other?.isIdentified === true && own?.isIdentified === false;
}

interface MergeDeps {
  /** The surviving person. */
  person: Person;
  own: Person | undefined;
  other: Person | undefined;
  warnings: Warning[];
}

function applyMerge(
  state: PersonsState,
  event: JournalEvent,
  { distinctId }: Operations,
  merge: Merge,
  { person, own, other, warnings }: MergeDeps,
): void {
  person.isIdentified = true;
  if (other === undefined) state.attach(person, merge.otherId);
  else if (own === undefined) {
    state.attach(person, distinctId);
    // An ID that a client identifies a user with takes precedence over an earlier anonymous one.
    if (!person.isMainAlias) person.mainDistinctId = distinctId;
  } else if (own !== other) {
    const merged = person === own ? other : own;
    const rejection = toRejection(merge, merged);
    if (rejection !== undefined) {
      const details = {
        sourcePersonDistinctId: truncatedString(merge.otherId),
        targetPersonDistinctId: truncatedString(distinctId),
      };
      warnings.push(ingestionWarning(event, rejection, details));
      return;
    }
    mergeInto(state, merged, person, event);
  }
  if (merge.kind === "alias") {
    person.mainDistinctId = merge.otherId;
    // The mark is invisible but must be stored, even if the alias already was the main ID.
    if (!person.isMainAlias) person.isDirty = true;
    person.isMainAlias = true;
  }
}

/** The warning for a rejected merge. */
function toRejection({ kind }: Merge, merged: Person): string | undefined {
  if (merged.isIdentified && kind !== "dangerously") return "cannot_merge_already_identified";
  return merged.joinedCount > mergedIdsMax ? "cannot_merge_too_many_distinct_ids" : undefined;
}

function mergeInto(state: PersonsState, from: Person, into: Person, write: WriteTime): void {
  state.fold(from, into);
  into.bag.absorb(from.bag, write);
  into.createdMicros = Math.min(into.createdMicros, from.createdMicros);
  into.version = Math.max(into.version, from.version);
}

function writeProperties(
  bag: PropertyState,
  operations: PropertyOperations,
  event: JournalEvent,
  isCreation: boolean,
): void {
  for (const writes of operations.setOnce) bag.setMembersOnce(writes, event);
  for (const writes of operations.set) bag.setMembers(writes, event);
  if (isCreation) bag.set("$creator_event_uuid", `"${event.uuid}"`, event);
  if (operations.unset.length === 0) return;
  for (const name of operations.unset) bag.unset(name, event);
  bag.boundUnsetNames();
}

interface Snapshot {
  changes: number;
  touches: number;
  rejections: number;
  isIdentified: boolean;
  mainDistinctId: string;
  createdMicros: number;
  joinedCount: number;
}

function getSnapshot(person: Person): Snapshot {
  const { isIdentified, mainDistinctId, createdMicros, joinedCount } = person;
  const { changes, touches, rejections } = person.bag;
  return { changes, touches, rejections, isIdentified, mainDistinctId, createdMicros, joinedCount };
}

/** Increments the version if visible fields changed, and marks what must be written. */
function settle(person: Person, before: Snapshot, isCreation: boolean): void {
  if (person.bag.touches !== before.touches) person.isDirty = true;
  const isChanged =
    person.bag.changes !== before.changes ||
    person.isIdentified !== before.isIdentified ||
    person.mainDistinctId !== before.mainDistinctId ||
    person.createdMicros !== before.createdMicros ||
    person.joinedCount !== before.joinedCount;
  if (!isChanged) return;
  if (!isCreation) person.version += 1;
  person.markChanged();
}

function sizeWarning(event: JournalEvent, person: Person, rejections: number): Warning {
  return ingestionWarning(event, "person_properties_size_violation", {
    personId: person.uuid,
    refusedProperties: rejections,
    bytesMax: propertyBytesMax,
  });
}
