/**
 * Keeps copies of persons and their distinct ids in the event store.
 *
 * It follows the numbered changes of the people store; the number it has reached is stored with the copies, so a
 * crash repeats nothing and misses nothing.
 */

import type { DuckDBConnection } from "@duckdb/node-api";
import { changeRange, changesAfter, forgetChanges, type PeopleChange } from "../../people/changes.ts";
import {
  allOwnerCopies,
  allPersonCopies,
  changedNames,
  type OwnerCopy,
  type OwnerName,
  ownerCopies,
  type PersonCopy,
  type PersonName,
  personCopies,
} from "../../people/mirror-rows.ts";
import type { PeopleDb } from "../../people/open.ts";
import { type AppendTable, appendRows } from "./append.ts";
import { type EventDatabase, inTransaction } from "./database.ts";

const personTable: AppendTable<PersonCopy> = {
  name: "person",
  columns: [
    { kind: "integer", of: (person) => person.projectId },
    { kind: "uuid", of: (person) => person.uuid },
    { kind: "bigint", of: (person) => person.createdMicros },
    { kind: "text", of: (person) => person.properties },
    { kind: "text", of: (person) => person.mainDistinctId },
  ],
  filler: (person) => ({ ...person, projectId: -person.projectId, properties: "{}", mainDistinctId: "" }),
};

const ownerTable: AppendTable<OwnerCopy> = {
  name: "person_distinct_id",
  columns: [
    { kind: "integer", of: (owner) => owner.projectId },
    { kind: "text", of: (owner) => owner.distinctId },
    { kind: "uuid", of: (owner) => owner.personUuid },
    { kind: "bigint", of: (owner) => owner.joined },
  ],
  filler: (owner) => ({ ...owner, projectId: -owner.projectId, distinctId: "" }),
};

const changedPersonTable: AppendTable<PersonName> = {
  name: "changed_person",
  catalog: "temp",
  columns: [
    { kind: "integer", of: (person) => person.projectId },
    { kind: "uuid", of: (person) => person.uuid },
  ],
  filler: (person) => person,
};

const changedIdTable: AppendTable<OwnerName> = {
  name: "changed_id",
  catalog: "temp",
  columns: [
    { kind: "integer", of: (owner) => owner.projectId },
    { kind: "text", of: (owner) => owner.distinctId },
  ],
  filler: (owner) => ({ projectId: -owner.projectId, distinctId: "" }),
};

export class PersonMirror {
  private running: Promise<void> | undefined;
  /** Where there is no room on the disk the copies stay as they are: a write that fails would close the event store. */
  hasRoom: () => Promise<boolean> = async () => true;

  private constructor(
    private readonly connection: DuckDBConnection,
    private readonly people: PeopleDb,
    private cursor: number,
  ) {}

  static async open(database: EventDatabase, people: PeopleDb): Promise<PersonMirror> {
    const connection = await database.connect();
    const rows = await connection.runAndReadAll("SELECT change_id FROM mirror_cursor");
    return new PersonMirror(connection, people, Number(rows.getRows()[0]![0]));
  }

  /** Takes over every change made before the call, unless there is no room for that. */
  async follow(): Promise<void> {
    if (!(await this.hasRoom())) return;
    // A run that is under way may have read its changes before the caller's.
    if (this.running !== undefined) await this.running.catch(() => undefined);
    this.running ??= this.run().finally(() => {
      this.running = undefined;
    });
    await this.running;
  }

  /**
   * Whether changes that the copies lack are forgotten already: the event store was made again, or is of another time
   * than the store of persons.
   */
  get isCutOff(): boolean {
    const { oldest, last } = changeRange(this.people);
    return this.cursor < oldest - 1 || this.cursor > last;
  }

  /** Up to which change the copies have followed. */
  get followed(): number {
    return this.cursor;
  }

  /** Copies all persons anew. Nobody may use the mirror meanwhile. @returns how many persons there are */
  async refill(): Promise<number> {
    const { connection, people } = this;
    // What changes from now on is followed later, and doing it twice does no harm.
    const { last } = changeRange(people);
    let persons = 0;
    await inTransaction(connection, async () => {
      await connection.run("DELETE FROM person");
      await connection.run("DELETE FROM person_distinct_id");
      for (const copies of allPersonCopies(people)) {
        await appendRows(connection, personTable, copies);
        persons += copies.length;
      }
      for (const copies of allOwnerCopies(people)) await appendRows(connection, ownerTable, copies);
      await connection.run("UPDATE mirror_cursor SET change_id = $1", [BigInt(last)]);
    });
    this.cursor = last;
    return persons;
  }

  private async run(): Promise<void> {
    for (;;) {
      const changes = changesAfter(this.people, this.cursor);
      if (changes.length === 0) return;
      await this.take(changes);
    }
  }

  private async take(changes: PeopleChange[]): Promise<void> {
    const last = changes.at(-1)!.changeId;
    const { persons, owners } = changedNames(changes);
    const { connection } = this;
    await inTransaction(connection, async () => {
      await this.takePersons(persons);
      if (owners.length > 0) await this.takeOwners(owners);
      await connection.run("UPDATE mirror_cursor SET change_id = $1", [BigInt(last)]);
    });
    this.cursor = last;
    forgetChanges(this.people, last);
  }

  private async takePersons(names: readonly PersonName[]): Promise<void> {
    const { connection } = this;
    await connection.run("CREATE OR REPLACE TEMP TABLE changed_person (project_id INTEGER, uuid UUID)");
    await appendRows(connection, changedPersonTable, names);
    await connection.run(
      `DELETE FROM person USING changed_person AS n
       WHERE person.uuid = n.uuid AND person.project_id IN (n.project_id, -n.project_id)`,
    );
    await appendRows(connection, personTable, personCopies(this.people, names));
  }

  private async takeOwners(names: readonly OwnerName[]): Promise<void> {
    const { connection } = this;
    await connection.run("CREATE OR REPLACE TEMP TABLE changed_id (project_id INTEGER, distinct_id VARCHAR)");
    // All of them: an id that nobody has any more, as after a deletion, must go too.
    await appendRows(connection, changedIdTable, names);
    await connection.run(
      `DELETE FROM person_distinct_id AS p USING changed_id AS n
       WHERE p.distinct_id = n.distinct_id AND p.project_id = n.project_id`,
    );
    await appendRows(connection, ownerTable, ownerCopies(this.people, names));
  }
}
