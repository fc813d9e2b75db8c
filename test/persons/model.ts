/**
 * What persons should become, written down as simply as possible: one event after the other, whole copies, no
 * batches, no tables. It shares no code with the store.
 */

import { createHash } from "node:crypto";
import type { JournalEvent } from "../../src/journal/entry.ts";

interface ModelPerson {
  uuid: string;
  /** In order of joining. */
  ids: string[];
  main: string;
  mainIsAlias: boolean;
  identified: boolean;
  created: number;
  /** Name to [value or undefined, time of the last realtime write or unset; negative infinity without one]. */
  written: Record<string, [value: unknown, time: number]>;
  cohorts: number[];
  overrides: Record<string, string>;
}

export interface ShownPerson {
  uuid: string;
  ids: string[];
  identified: boolean;
  created: number;
  properties: Record<string, unknown>;
  cohorts: number[];
  overrides: Record<string, string>;
}

export class Model {
  persons: ModelPerson[] = [];
  /** Overrides of IDs that have no person, and when they were requested. */
  pending = new Map<string, { hashKey: string; requestedMicros: number }>();
  /** Ids that had personless events. */
  personless = new Set<string>();

  of(id: string): ModelPerson | undefined {
    return this.persons.find((person) => person.ids.includes(id));
  }

  shown(): ShownPerson[] {
    return this.persons
      .map((person) => ({
        uuid: person.uuid,
        ids: [person.main, ...person.ids.filter((id) => id !== person.main)],
        identified: person.identified,
        created: person.created,
        properties: Object.fromEntries(
          Object.entries(person.written).flatMap(([name, [value]]) =>
            value === undefined ? [] : [[name, value]],
          ),
        ),
        cohorts: [...person.cohorts].sort(),
        overrides: person.overrides,
      }))
      .sort((a, b) => (a.uuid < b.uuid ? -1 : 1));
  }

  apply(event: JournalEvent): void {
    const properties = Object.fromEntries(
      event.properties.names.map((name, place) => [name, event.properties.value(place)]),
    );
    if (event.mode === "propertyless") {
      this.personless.add(event.distinctId);
      return;
    }
    const merges: Record<string, unknown> = {
      $identify: properties.$anon_distinct_id,
      $create_alias: properties.alias,
      $merge_dangerously: properties.alias,
    };
    const other = merges[event.event] as string | undefined;
    const partner = other === event.distinctId ? undefined : other;
    const joined = [event.distinctId, partner].filter((id) => id !== undefined && this.of(id) === undefined);
    const person = this.personFor(event, partner);
    for (const id of joined) this.assignPending(id!, event.receivedMicros);
    const write = (name: string, value: unknown) => {
      const before = person.written[name];
      const realtime = before?.[1] ?? Number.NEGATIVE_INFINITY;
      if (event.historical && realtime > event.timeMicros) return;
      person.written[name] = [value, event.historical ? realtime : event.timeMicros];
    };
    for (const [name, value] of Object.entries((properties.$set_once ?? {}) as object)) {
      if (person.written[name]?.[0] === undefined) write(name, value);
    }
    for (const [name, value] of Object.entries((properties.$set ?? {}) as object)) write(name, value);
    for (const name of (properties.$unset ?? []) as string[]) write(name, undefined);
  }

  /** A person that got an ID gets its override, unless it was requested long before. */
  private assignPending(id: string, receivedMicros: number): void {
    const override = this.pending.get(id);
    const person = this.of(id);
    if (override === undefined || person === undefined) return;
    this.pending.delete(id);
    if (receivedMicros > override.requestedMicros + 330 * 1_000_000) return;
    person.overrides = { flag: override.hashKey, ...person.overrides };
  }

  private personFor(event: JournalEvent, other: string | undefined): ModelPerson {
    const id = event.distinctId;
    const own = this.of(id);
    if (other === undefined) return own ?? this.create(event, [id]);
    const theirs = this.of(other);
    const isAlias = event.event === "$create_alias";
    if (own !== undefined && theirs !== undefined && own !== theirs) {
      // An alias that is a user survives the anonymous id.
      if (isAlias && theirs.identified && !own.identified) {
        this.fold(own, theirs, event);
        theirs.main = other;
        theirs.mainIsAlias = true;
        return theirs;
      }
      if (theirs.identified && event.event !== "$merge_dangerously") {
        own.identified = true;
        return own;
      }
      this.fold(theirs, own, event);
    }
    const person = own ?? theirs ?? this.create(event, [id, other]);
    if (own === undefined && theirs !== undefined) {
      person.ids.push(id);
      if (!person.mainIsAlias) person.main = id;
    }
    if (own !== undefined && theirs === undefined) person.ids.push(other);
    person.identified = true;
    if (isAlias) {
      person.main = other;
      person.mainIsAlias = true;
    }
    return person;
  }

  private create(event: JournalEvent, ids: string[]): ModelPerson {
    const [own, other] = ids;
    const isHistoryOfOther = other !== undefined && this.personless.has(other) && !this.personless.has(own!);
    const person: ModelPerson = {
      uuid: getUuid(`${event.projectId}:${isHistoryOfOther ? other : own}`),
      ids,
      main: event.distinctId,
      mainIsAlias: false,
      identified: false,
      created: event.timeMicros,
      written: {
        $creator_event_uuid: [event.uuid, event.historical ? Number.NEGATIVE_INFINITY : event.timeMicros],
      },
      cohorts: [],
      overrides: {},
    };
    this.persons.push(person);
    return person;
  }

  private fold(from: ModelPerson, into: ModelPerson, { historical, timeMicros }: JournalEvent): void {
    into.ids.push(from.main, ...from.ids.filter((id) => id !== from.main));
    into.created = Math.min(into.created, from.created);
    into.cohorts = [...new Set([...into.cohorts, ...from.cohorts])];
    into.overrides = { ...from.overrides, ...into.overrides };
    for (const [name, theirs] of Object.entries(from.written)) {
      const ours = into.written[name];
      if (ours === undefined) {
        into.written[name] = theirs;
        continue;
      }
      // What a realtime event wrote beats what only history wrote; a name that is neither is as good as unknown.
      if (ours[1] === Number.NEGATIVE_INFINITY || theirs[1] === Number.NEGATIVE_INFINITY) {
        const isTheirs = ours[1] < theirs[1] || (ours[0] === undefined && ours[1] === theirs[1]);
        into.written[name] = isTheirs ? theirs : ours;
        continue;
      }
      const isOursPreferred = ours[0] !== undefined || (theirs[0] === undefined && ours[1] >= theirs[1]);
      const [defaults, another] = isOursPreferred ? [ours, theirs] : [theirs, ours];
      const isLater = another[1] > timeMicros && another[1] > defaults[1];
      into.written[name] = historical && isLater ? another : defaults;
    }
    this.persons = this.persons.filter((person) => person !== from);
  }
}

/** RFC 9562 version 5, by hand. */
function getUuid(name: string): string {
  const namespace = Buffer.from("932979b465c3442484670b66ec27bc22", "hex");
  const hash = createHash("sha1").update(namespace).update(name).digest().subarray(0, 16);
  hash[6] = (hash[6]! & 0x0f) | 0x50;
  hash[8] = (hash[8]! & 0x3f) | 0x80;
  return hash.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
