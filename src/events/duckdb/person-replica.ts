/**
 * Replicates persons and distinct IDs to the event store by the numbered changes of the person store. The last number
 * is stored with the replica, so after a crash no change is repeated or missed.
 */

import type { DuckDBConnection } from "@duckdb/node-api";
import { changeRange, changesAfter, type PersonChange, pruneChanges } from "../../persons/changes.ts";
import type { PersonsDb } from "../../persons/open.ts";
import {
  allDistinctIdRows,
  allPersonRows,
  changedDistinctIdRows,
  changedIds,
  changedPersonRows,
  type DistinctIdKey,
  type DistinctIdRow,
  type PersonKey,
  type PersonRow,
} from "../../persons/replica-rows.ts";
import { type AppendTable, appendRows } from "./append.ts";
import { type EventDatabase, inTransaction } from "./database.ts";

const personTable: AppendTable<PersonRow> = {
  name: "person",
  columns: [
    { kind: "integer", getValue: (person) => person.projectId },
    { kind: "uuid", getValue: (person) => person.uuid },
    { kind: "bigint", getValue: (person) => person.createdMicros },
    { kind: "text", getValue: (person) => person.properties },
    { kind: "text", getValue: (person) => person.mainDistinctId },
  ],
  filler: (person) => ({ ...person, projectId: -person.projectId, properties: "{}", mainDistinctId: "" }),
};

const ownerTable: AppendTable<DistinctIdRow> = {
  name: "person_distinct_id",
  columns: [
    { kind: "integer", getValue: (owner) => owner.projectId },
    { kind: "text", getValue: (owner) => owner.distinctId },
    { kind: "uuid", getValue: (owner) => owner.personUuid },
    { kind: "bigint", getValue: (owner) => owner.joined },
  ],
  filler: (owner) => ({ ...owner, projectId: -owner.projectId, distinctId: "" }),
};

const changedPersonTable: AppendTable<PersonKey> = {
  name: "changed_person",
  catalog: "temp",
  columns: [
    { kind: "integer", getValue: (person) => person.projectId },
    { kind: "uuid", getValue: (person) => person.uuid },
  ],
  filler: (person) => person,
};

const changedIdTable: AppendTable<DistinctIdKey> = {
  name: "changed_id",
  catalog: "temp",
  columns: [
    { kind: "integer", getValue: (owner) => owner.projectId },
    { kind: "text", getValue: (owner) => owner.distinctId },
  ],
  filler: (owner) => ({ projectId: -owner.projectId, distinctId: "" }),
};

export class DuckdbPersonReplica {
  private running: Promise<void> | undefined;
  /** Without disk space the replica is not updated: a failed write would close the event store. */
  hasSpace: () => Promise<boolean> = async () => true;

  private constructor(
    private readonly connection: DuckDBConnection,
    private readonly people: PersonsDb,
    private cursor: number,
  ) {}

  static async open(database: EventDatabase, people: PersonsDb): Promise<DuckdbPersonReplica> {
    const connection = await database.connect();
    const rows = await connection.runAndReadAll("SELECT change_id FROM mirror_cursor");
    return new DuckdbPersonReplica(connection, people, Number(rows.getRows()[0]![0]));
  }

  /** Replicates every change made before the call, unless disk space is short. */
  async follow(): Promise<void> {
    if (!(await this.hasSpace())) return;
    // A run in progress may have read its changes before the caller's.
    if (this.running !== undefined) await this.running.catch(() => undefined);
    this.running ??= this.run().finally(() => {
      this.running = undefined;
    });
    await this.running;
  }

  /** Whether missing changes are already pruned: the event store was rebuilt, or does not match the person store. */
  get isCutOff(): boolean {
    const { oldest, last } = changeRange(this.people);
    return this.cursor < oldest - 1 || this.cursor > last;
  }

  /** The number of the last replicated change. */
  get followed(): number {
    return this.cursor;
  }

  /** Replicates all persons from scratch, used exclusively. @returns the number of persons */
  async refill(): Promise<number> {
    const { connection, people } = this;
    // Later changes are replicated afterwards; repeating one is harmless.
    const { last } = changeRange(people);
    let persons = 0;
    await inTransaction(connection, async () => {
      await connection.run("DELETE FROM person");
      await connection.run("DELETE FROM person_distinct_id");
      for (const copies of allPersonRows(people)) {
        await appendRows(connection, personTable, copies);
        persons += copies.length;
      }
      for (const copies of allDistinctIdRows(people)) await appendRows(connection, ownerTable, copies);
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

  private async take(changes: PersonChange[]): Promise<void> {
    const last = changes.at(-1)!.changeId;
    const { persons, owners } = changedIds(changes);
    const { connection } = this;
    await inTransaction(connection, async () => {
      await this.replicatePersons(persons);
      if (owners.length > 0) await this.replicateOwners(owners);
      await connection.run("UPDATE mirror_cursor SET change_id = $1", [BigInt(last)]);
    });
    this.cursor = last;
    pruneChanges(this.people, last);
  }

  private async replicatePersons(names: readonly PersonKey[]): Promise<void> {
    const { connection } = this;
    await connection.run("CREATE OR REPLACE TEMP TABLE changed_person (project_id INTEGER, uuid UUID)");
    await appendRows(connection, changedPersonTable, names);
    await connection.run(
      `DELETE FROM person USING changed_person AS n
       WHERE person.uuid = n.uuid AND person.project_id IN (n.project_id, -n.project_id)`,
    );
    await appendRows(connection, personTable, changedPersonRows(this.people, names));
  }

  private async replicateOwners(names: readonly DistinctIdKey[]): Promise<void> {
    const { connection } = this;
    await connection.run("CREATE OR REPLACE TEMP TABLE changed_id (project_id INTEGER, distinct_id VARCHAR)");
    // All of them: distinct IDs without a person, as after a deletion, must be deleted too.
    await appendRows(connection, changedIdTable, names);
    await connection.run(
      `DELETE FROM person_distinct_id AS p USING changed_id AS n
       WHERE p.distinct_id = n.distinct_id AND p.project_id = n.project_id`,
    );
    await appendRows(connection, ownerTable, changedDistinctIdRows(this.people, names));
  }
}
