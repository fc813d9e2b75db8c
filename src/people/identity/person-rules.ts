/**
 * What an event does to persons: creation, properties, merges.
 *
 * Pure over `PeopleState`: no store, no clock. Source: contract, ingestion 12 and 13; decisions 1 and 8.
 */

import type { JournalEvent } from "../../journal/entry.ts";
import { changesPersons, type Merge, type Operations, type PropertyOperations } from "./operations.ts";
import type { DistinctId, PeopleState, Person } from "./people-state.ts";
import { type PropertyBag, propertyBytesMax, type WriteTime } from "./property-bag.ts";
import { shownText, type Warning, warningAbout } from "./warning.ts";

/**
 * A person with more distinct ids is not folded into another one: every id's row moves, and whoever knows a project's
 * public key could make the pipeline move them again and again. Any number of ids may join a person.
 */
export const foldedIdsMax = 5_000;

const noWarnings: readonly Warning[] = [];

/**
 * Carries out the operations of one event; returns the warnings that arise.
 *
 * @param ownId the event's own id, if it was found before; it may have moved to another person since.
 */
export function applyToPersons(
  state: PeopleState,
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
  const before = snapshotOf(person);
  if (merge !== undefined) applyMerge(state, event, operations, merge, { person, own, other, warnings });
  writeProperties(person.bag, operations.properties, event, present === undefined);
  const refusals = person.bag.refusals - before.refusals;
  if (refusals > 0) warnings.push(sizeWarning(event, person, refusals));
  settle(person, before, present === undefined);
  return warnings;
}

/**
 * Whether the alias is the id of an identified person and the event's own one is not: then it is the alias's person that
 * remains, for an anonymous device never overwrites a user. Source: decision 8.
 */
function isAliasOfUser(
  merge: Merge | undefined,
  own: Person | undefined,
  other: Person | undefined,
): boolean {
  return merge?.kind === "alias" && other?.isIdentified === true && own?.isIdentified === false;
}

interface MergeParts {
  /** The person that remains. */
  person: Person;
  own: Person | undefined;
  other: Person | undefined;
  warnings: Warning[];
}

function applyMerge(
  state: PeopleState,
  event: JournalEvent,
  { distinctId }: Operations,
  merge: Merge,
  { person, own, other, warnings }: MergeParts,
): void {
  person.isIdentified = true;
  if (other === undefined) state.attach(person, merge.otherId);
  else if (own === undefined) {
    state.attach(person, distinctId);
    // The id that a client identifies somebody with is worth more than the anonymous one that came before it.
    if (!person.isMainAlias) person.mainDistinctId = distinctId;
  } else if (own !== other) {
    const folded = person === own ? other : own;
    const refusal = refusalOf(merge, folded);
    if (refusal !== undefined) {
      const details = {
        sourcePersonDistinctId: shownText(merge.otherId),
        targetPersonDistinctId: shownText(distinctId),
      };
      warnings.push(warningAbout(event, refusal, details));
      return;
    }
    foldInto(state, folded, person, event);
  }
  if (merge.kind === "alias") {
    person.mainDistinctId = merge.otherId;
    // Nobody sees the mark, but it must be kept, also when the alias was the main id before.
    if (!person.isMainAlias) person.isDirty = true;
    person.isMainAlias = true;
  }
}

/** The warning with which a fold is refused. */
function refusalOf({ kind }: Merge, folded: Person): string | undefined {
  if (folded.isIdentified && kind !== "dangerously") return "cannot_merge_already_identified";
  return folded.joinedCount > foldedIdsMax ? "cannot_merge_too_many_distinct_ids" : undefined;
}

function foldInto(state: PeopleState, from: Person, into: Person, write: WriteTime): void {
  state.fold(from, into);
  into.bag.absorb(from.bag, write);
  into.createdMicros = Math.min(into.createdMicros, from.createdMicros);
  into.version = Math.max(into.version, from.version);
}

function writeProperties(
  bag: PropertyBag,
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
  refusals: number;
  isIdentified: boolean;
  mainDistinctId: string;
  createdMicros: number;
  joinedCount: number;
}

function snapshotOf(person: Person): Snapshot {
  const { isIdentified, mainDistinctId, createdMicros, joinedCount } = person;
  const { changes, touches, refusals } = person.bag;
  return { changes, touches, refusals, isIdentified, mainDistinctId, createdMicros, joinedCount };
}

/** Counts a new version when something that readers see has changed, and notes what must be written. */
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

function sizeWarning(event: JournalEvent, person: Person, refusals: number): Warning {
  return warningAbout(event, "person_properties_size_violation", {
    personId: person.uuid,
    refusedProperties: refusals,
    bytesMax: propertyBytesMax,
  });
}
