/** A store of persons in a temporary folder, events in one line, and what the store shows of it. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eq } from "drizzle-orm";
import type { JournalEvent, JournalItem, JournalNote } from "../../src/journal/entry.ts";
import { openPersons, type PersonsDb } from "../../src/persons/open.ts";
import type { Person } from "../../src/persons/person.ts";
import { displayName } from "../../src/persons/person.ts";
import { getDistinctIds, personByDistinctId, personsPage } from "../../src/persons/reader.ts";
import { usageDay } from "../../src/persons/schema.ts";
import type { SpikeOptions, SpikeSignal } from "../../src/persons/spike-detector.ts";
import { PersonStore } from "../../src/persons/store.ts";
import { listWarnings } from "../../src/persons/warnings.ts";
import { ParsedMembers } from "../../src/scan/members.ts";

export const spikeSettings: SpikeOptions = {
  factor: 10,
  minimumPerMinute: 1_000,
  historyMinutes: 60,
  historyMinutesMin: 2,
};

/** 2026-01-01T00:00:00Z. */
export const newYearMicros = Date.UTC(2026, 0, 1) * 1000;
export const secondMicros = 1_000_000;

export type EventParts = Partial<Omit<JournalEvent, "kind" | "properties">> & {
  properties?: Record<string, unknown>;
};

let lastSeq = 0;

/** An event of project 1; event time and receipt are a second later with each one made. */
export function event({ properties = {}, ...parts }: EventParts = {}): JournalEvent {
  lastSeq += 1;
  const timeMicros = newYearMicros + lastSeq * secondMicros;
  return {
    kind: "event",
    seq: lastSeq,
    projectId: 1,
    uuid: `00000000-0000-4000-8000-${String(lastSeq).padStart(12, "0")}`,
    event: "seen",
    distinctId: "a",
    timeMicros,
    receivedMicros: timeMicros,
    historical: false,
    mode: "full",
    properties: new ParsedMembers(properties),
    ...parts,
  };
}

export const identify = (distinctId: string, anonymousId: string, more: EventParts = {}) =>
  event({
    ...more,
    event: "$identify",
    distinctId,
    properties: { $anon_distinct_id: anonymousId, ...more.properties },
  });

export const alias = (distinctId: string, aliasId: unknown, more: EventParts = {}) =>
  event({ ...more, event: "$create_alias", distinctId, properties: { alias: aliasId, ...more.properties } });

export const mergeDangerously = (distinctId: string, otherId: string, more: EventParts = {}) =>
  event({
    ...more,
    event: "$merge_dangerously",
    distinctId,
    properties: { alias: otherId, ...more.properties },
  });

export const set = (distinctId: string, $set: Record<string, unknown>, more: EventParts = {}) =>
  event({ ...more, event: "$set", distinctId, properties: { $set, ...more.properties } });

export function note(parts: Partial<JournalNote> = {}): JournalNote {
  lastSeq += 1;
  const receivedMicros = newYearMicros + lastSeq * secondMicros;
  return {
    kind: "warning",
    seq: lastSeq,
    projectId: 1,
    type: "ignored_invalid_timestamp",
    receivedMicros,
    historical: false,
    details: {},
    ...parts,
  };
}

/** All persons of a project, by the time of their making. */
export function seenPersons(db: PersonsDb, projectId: number): SeenPerson[] {
  const persons = personsPage(db, projectId);
  const ids = getDistinctIds(db, persons);
  return persons.map((person) => getSeen(person, ids.get(person.id)!));
}

/** @param ids the main one first */
export function getSeen(
  { isIdentified, properties: { $creator_event_uuid: _, ...properties } }: Person,
  ids: string[],
): SeenPerson {
  return { ids, properties, identified: isIdentified };
}

/** How many events were counted for a project. */
export function countedEvents(db: PersonsDb, projectId: number): number {
  const days = db.select().from(usageDay).where(eq(usageDay.projectId, projectId)).all();
  return days.reduce(
    (sum, { identified, anonymous, historical }) => sum + identified + anonymous + historical,
    0,
  );
}

/** What is seen of a person, without the property that names the event that made it. */
export interface SeenPerson {
  ids: string[];
  properties: Record<string, unknown>;
  identified: boolean;
}

export class TestPersons implements Disposable {
  db: PersonsDb;
  store: PersonStore;
  private readonly folder = mkdtempSync(join(tmpdir(), "flagkeep-people-"));

  constructor(readonly options: SpikeOptions = spikeSettings) {
    this.db = this.open();
    this.store = new PersonStore(this.db, options);
  }

  get path(): string {
    return join(this.folder, "people.sqlite");
  }

  /** Closes the file and opens it again, as after a crash between two batches. */
  reopen(): void {
    this.db.$client.close();
    this.db = this.open();
    this.store = new PersonStore(this.db, this.options);
  }

  /** Applies items as one step, the first half together and then each alone; historical ones go through the historical lane. */
  apply(...items: JournalItem[]): SpikeSignal[] {
    const lane = items[0]?.historical === true ? "historical" : "realtime";
    const step = this.store.start(lane);
    const together = items.length >> 1;
    step.add({ items: items.slice(0, together), duplicates: [] });
    for (const item of items.slice(together)) step.add({ items: [item], duplicates: [] });
    return step.commit(items.at(-1)!.seq);
  }

  /** Applies each item as a batch of its own, with a restart between them. */
  applyOneByOne(...items: JournalItem[]): void {
    for (const item of items) {
      this.apply(item);
      this.reopen();
    }
  }

  person(distinctId: string, projectId = 1) {
    return personByDistinctId(this.db, projectId, distinctId);
  }

  properties(distinctId: string): Record<string, unknown> | undefined {
    const properties = this.person(distinctId)?.properties;
    if (properties === undefined) return undefined;
    const { $creator_event_uuid: _, ...rest } = properties;
    return rest;
  }

  /** All persons of project 1, by the time of their making. */
  persons(projectId = 1): SeenPerson[] {
    return seenPersons(this.db, projectId);
  }

  name(distinctId: string): string {
    return displayName(this.person(distinctId)!);
  }

  warnings(): string[] {
    return listWarnings(this.db, 1)
      .map(({ type }) => type)
      .sort();
  }

  /** Every row of every table but the list of migrations, for comparing. */
  dump(): Record<string, unknown[]> {
    const tables = this.db.$client
      .query<{ name: string }, []>(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'schema_migration'",
      )
      .all();
    return Object.fromEntries(
      tables.map(({ name }) => [name, this.db.$client.query(`SELECT * FROM ${name}`).all()]),
    );
  }

  [Symbol.dispose](): void {
    this.db.$client.close();
    rmSync(this.folder, { recursive: true });
  }

  private open(): PersonsDb {
    const db = openPersons(this.path);
    // Nothing here pulls the plug, and a sync per batch would be most of the time of the tests.
    db.$client.run("PRAGMA synchronous = OFF");
    return db;
  }
}
