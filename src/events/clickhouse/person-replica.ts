/**
 * Replicates persons and distinct IDs to ClickHouse, which keeps the latest version of each row: the number of the
 * change. Progress is in the person store; after a crash, rows are written again with the same version.
 */

import type { PersonChange } from "../../persons/changes.ts";
import {
  changedIds,
  type DistinctIdKey,
  type DistinctIdRow,
  type PersonKey,
  type PersonRow,
} from "../../persons/replica-rows.ts";
import type { PersonSource } from "../../persons/replica-source.ts";
import { readableJson } from "./readable-json.ts";
import { RowBinary } from "./row-binary.ts";
import type { ClickHouseStore } from "./store.ts";

/** Bytes per insert. */
const insertBytes = 8 * 1024 * 1024;

const personColumns = [
  "project_id",
  "uuid",
  "created",
  "properties",
  "main_distinct_id",
  "version",
  "is_deleted",
];
const ownerColumns = ["project_id", "distinct_id", "person_uuid", "joined", "version", "is_deleted"];
const noUuid = "00000000-0000-0000-0000-000000000000";

export class ClickHousePersonReplica {
  private running: Promise<void> | undefined;

  constructor(
    private readonly store: ClickHouseStore,
    private readonly source: PersonSource,
  ) {}

  /** The number of the last replicated change. */
  get followed(): number {
    return this.store.outside.copiedChangeId;
  }

  /**
   * Replicates every change made before the call. @throws {ClickHouseUnreachableError} @throws {OperatorActionError}
   */
  async follow(): Promise<void> {
    await this.store.open();
    // A run in progress may have read its changes before the caller's.
    if (this.running !== undefined) await this.running.catch(() => undefined);
    this.running ??= this.run().finally(() => {
      this.running = undefined;
    });
    await this.running;
  }

  private async run(): Promise<void> {
    const { oldest, last } = await this.source.range();
    // Missing changes are already pruned, for example if the replica was in another store.
    if (this.followed < oldest - 1 || this.followed > last) await this.refill();
    for (;;) {
      const { changes, last: end } = await this.source.changesAfter(this.followed);
      if (end === this.followed) return;
      await this.take(changes, end);
    }
  }

  /** @param version the number up to which the changes are complete */
  private async take(changes: readonly PersonChange[], version: number): Promise<void> {
    const names = changedIds(changes);
    const persons = this.rows("persons", personColumns);
    const deletedUuids = new Map(names.persons.map((name) => [`${name.projectId}:${name.uuid}`, name]));
    for await (const copies of this.source.persons(names.persons)) {
      for (const copy of copies) {
        await persons.add((rows) => writePerson(rows, copy, version));
        deletedUuids.delete(`${copy.projectId}:${copy.uuid}`);
      }
    }
    for (const name of deletedUuids.values()) await persons.add((rows) => writePerson(rows, name, version));
    await persons.end();
    const owners = this.rows("person_distinct_ids", ownerColumns);
    const deletedIds = new Map(names.owners.map((name) => [`${name.projectId}:${name.distinctId}`, name]));
    for await (const copies of this.source.distinctIds(names.owners)) {
      for (const copy of copies) {
        await owners.add((rows) => writeOwner(rows, copy, version));
        deletedIds.delete(`${copy.projectId}:${copy.distinctId}`);
      }
    }
    for (const name of deletedIds.values()) await owners.add((rows) => writeOwner(rows, name, version));
    await owners.end();
    this.store.outside.markMirrored(version);
    await this.source.prune(version);
  }

  /** Replicates all persons from scratch and deletes obsolete rows. */
  private async refill(): Promise<void> {
    const { source } = this;
    // Later changes are replicated afterwards; repeating one is harmless.
    const { last } = await source.range();
    const version = Math.max(last, await this.newestVersion()) + 1;
    const persons = this.rows("persons", personColumns);
    for await (const copies of source.allPersons())
      for (const copy of copies) await persons.add((rows) => writePerson(rows, copy, version));
    await persons.end();
    const owners = this.rows("person_distinct_ids", ownerColumns);
    for await (const copies of source.allDistinctIds())
      for (const copy of copies) await owners.add((rows) => writeOwner(rows, copy, version));
    await owners.end();
    const { connection } = this.store;
    await connection.command(
      `INSERT INTO persons (${personColumns.join(", ")})
       SELECT project_id, uuid, 0, '{}', '', ${version}, 1 FROM persons FINAL WHERE version < ${version}`,
    );
    await connection.command(
      `INSERT INTO person_distinct_ids (${ownerColumns.join(", ")})
       SELECT project_id, distinct_id, person_uuid, 0, ${version}, 1 FROM person_distinct_ids FINAL WHERE version < ${version}`,
    );
    this.store.outside.markMirrored(last);
  }

  private async newestVersion(): Promise<number> {
    const [row] = await this.store.connection.rows(
      "SELECT greatest((SELECT max(version) FROM persons), (SELECT max(version) FROM person_distinct_ids))",
    );
    return Number(row![0]);
  }

  /** Buffers rows of a table and inserts them in chunks. */
  private rows(table: string, columns: readonly string[]) {
    let rows = new RowBinary();
    const send = async () => {
      const { bytes } = rows;
      rows = new RowBinary();
      if (bytes.length > 0) await this.store.connection.insert(table, columns, bytes, getQuorum(this.store));
    };
    return {
      async add(write: (rows: RowBinary) => void) {
        write(rows);
        if (rows.length >= insertBytes) await send();
      },
      end: send,
    };
  }
}

function getQuorum({ address: { quorum } }: ClickHouseStore) {
  return quorum === null ? {} : { insert_quorum: String(quorum) };
}

/** @param person without properties: deleted */
function writePerson(rows: RowBinary, person: PersonRow | PersonKey, version: number): void {
  const copy = "properties" in person ? person : undefined;
  rows.int32(person.projectId);
  rows.uuid(person.uuid);
  rows.int64(copy?.createdMicros ?? 0);
  // Normalized JSON is sufficient: only queries read it; persons are displayed from the person store.
  rows.text(copy === undefined ? "{}" : (readableJson(copy.properties) ?? copy.properties));
  rows.text(copy?.mainDistinctId ?? "");
  rows.int64(version);
  rows.boolean(copy === undefined);
}

/** @param owner without a person: the distinct ID is unused */
function writeOwner(rows: RowBinary, owner: DistinctIdRow | DistinctIdKey, version: number): void {
  const copy = "personUuid" in owner ? owner : undefined;
  rows.int32(owner.projectId);
  rows.text(owner.distinctId);
  rows.uuid(copy?.personUuid ?? noUuid);
  rows.int64(copy?.joined ?? 0);
  rows.int64(version);
  rows.boolean(copy === undefined);
}
