/**
 * Model of persons in a cluster whose partitions divide a project: each partition applies its events immediately; merges are applied in one lane, in the order of their numbers, when every partition has applied all
 * events before them. Ends with the same persons as `applyToPersons` in the order of the numbers. Pure: no store, no
 * clock. Size limits and rejected depths are not part of these rules.
 */

import type { Merge } from "../../../src/persons/identity/operations.ts";
import {
  absorbProperties,
  applyWrite,
  type StampedMerge,
  type StampedProperties,
  type StampedWrite,
} from "./stamped-properties.ts";

export interface StampedPerson {
  uuid: string;
  mainDistinctId: string;
  isMainAlias: boolean;
  isIdentified: boolean;
  createdMicros: number;
  /** Number and lane of the event that created the person. */
  created: Stamp;
  distinctIds: string[];
  properties: StampedProperties;
}

/** Position of an event in the journal. */
export interface Stamp {
  number: number;
  historical: boolean;
}

/** An event, or the part of one that concerns the person of its own ID. */
export interface StampedEvent extends Stamp {
  uuid: string;
  timeMicros: number;
}

/** A merge that waits for its turn. */
export interface PendingMerge extends StampedMerge {
  eventUuid: string;
  merge: Merge;
  distinctId: string;
}

const creator = "$creator_event_uuid";

/** The persons of one project. */
export class StampedPersons {
  /** By distinct ID. */
  readonly persons = new Map<string, StampedPerson>();
  /** UUIDs of events whose merge was rejected. */
  readonly rejected: string[] = [];
  /** The first anonymous event of each ID, in each lane. */
  private readonly anonymous = new Map<string, { realtime: number; historical: number }>();

  constructor(private readonly uuidOf: (distinctId: string) => string) {}

  /** Applies an event in the partition of its distinct ID; its merge, if any, is passed to `applyMerge` later. */
  applyEvent(distinctId: string, writes: readonly StampedWrite[], event: StampedEvent): void {
    const present = this.persons.get(distinctId);
    const person = present ?? this.create(distinctId, event);
    for (const write of writes) if (write.kind !== "unset") applyWrite(person.properties, write);
    if (present === undefined) {
      const { uuid, ...stamp } = event;
      applyWrite(person.properties, { kind: "set", name: creator, text: `"${uuid}"`, ...stamp });
    }
    for (const write of writes) if (write.kind === "unset") applyWrite(person.properties, write);
  }

  /** Records an event that creates no person. */
  recordAnonymous(distinctId: string, { number, historical }: Stamp): void {
    const first = this.anonymous.get(distinctId) ?? { realtime: Infinity, historical: Infinity };
    if (historical) first.historical = Math.min(first.historical, number);
    else first.realtime = Math.min(first.realtime, number);
    this.anonymous.set(distinctId, first);
  }

  /** Call it in the order of numbers within a lane, when all events of the lane before it are applied. */
  applyMerge(pending: PendingMerge): void {
    const { merge, distinctId } = pending;
    const ownNow = this.persons.get(distinctId)!;
    const otherNow = this.persons.get(merge.otherId);
    const own = isBefore(ownNow, pending) ? ownNow : undefined;
    const other = isBefore(otherNow, pending) ? otherNow : undefined;
    const isAliasOfUser =
      merge.kind === "alias" && other?.isIdentified === true && own?.isIdentified === false;
    let person = isAliasOfUser ? other : (own ?? other);
    if (person === undefined) {
      person = ownNow;
      this.recreate(person, pending);
    }
    person.isIdentified = true;
    if (other === undefined) this.join(merge.otherId, otherNow, person, pending);
    else if (own === undefined) {
      this.join(distinctId, ownNow, person, pending);
      if (!person.isMainAlias) person.mainDistinctId = distinctId;
    } else if (own !== other) {
      const folded = person === own ? other : own;
      if (folded.isIdentified && merge.kind !== "dangerously") {
        this.rejected.push(pending.eventUuid);
        return;
      }
      this.fold(folded, person, pending);
      person.createdMicros = Math.min(person.createdMicros, folded.createdMicros);
    }
    if (merge.kind === "alias") {
      person.mainDistinctId = merge.otherId;
      person.isMainAlias = true;
    }
  }

  private create(distinctId: string, { number, historical, timeMicros }: StampedEvent): StampedPerson {
    const person: StampedPerson = {
      uuid: this.uuidOf(distinctId),
      mainDistinctId: distinctId,
      isMainAlias: false,
      isIdentified: false,
      createdMicros: timeMicros,
      created: { number, historical },
      distinctIds: [distinctId],
      properties: new Map(),
    };
    this.persons.set(distinctId, person);
    return person;
  }

  /** The person that the merge's own event created: its UUID may be that of the other ID's anonymous past. */
  private recreate(
    person: StampedPerson,
    { merge, distinctId, number, historical, timeMicros }: PendingMerge,
  ) {
    const hadAnonymous = (id: string) => {
      const first = this.anonymous.get(id);
      if (first === undefined) return false;
      return historical
        ? first.historical < number || first.realtime < Infinity
        : first.realtime < number || first.historical < Infinity;
    };
    if (hadAnonymous(merge.otherId) && !hadAnonymous(distinctId)) person.uuid = this.uuidOf(merge.otherId);
    person.createdMicros = timeMicros;
    person.created = { number, historical };
  }

  /** Gives an ID to a person. A person that the ID has by now exists only because the merge was not applied yet. */
  private join(
    distinctId: string,
    phantom: StampedPerson | undefined,
    person: StampedPerson,
    merge: StampedMerge,
  ): void {
    if (phantom === undefined) {
      person.distinctIds.push(distinctId);
      this.persons.set(distinctId, person);
    } else if (phantom !== person) {
      phantom.properties.delete(creator);
      this.fold(phantom, person, merge);
    }
  }

  private fold(from: StampedPerson, into: StampedPerson, merge: StampedMerge): void {
    absorbProperties(into.properties, from.properties, merge);
    for (const id of from.distinctIds) {
      this.persons.set(id, into);
      into.distinctIds.push(id);
    }
  }
}

/** Whether a person existed when the merge was due; one of the other lane did. */
function isBefore(person: StampedPerson | undefined, merge: StampedMerge): boolean {
  if (person === undefined) return false;
  return person.created.historical !== merge.historical || person.created.number < merge.number;
}
