/**
 * Keeps copies of persons and their distinct ids in ClickHouse, which keeps the newest version of each: the number of the
 * change. How far it has come is in the people store; after a crash a copy is written again, under the same version.
 */

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
import { readableJson } from "./readable-json.ts";
import { RowBinary } from "./row-binary.ts";
import type { ClickHouseStore } from "./store.ts";

/** What is sent at once. */
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

export class ClickHouseMirror {
  private running: Promise<void> | undefined;

  constructor(
    private readonly store: ClickHouseStore,
    private readonly people: PeopleDb,
  ) {}

  /** The number of the last change that was taken over. */
  get followed(): number {
    return this.store.outside.mirrored;
  }

  /** Takes over every change made before the call. @throws {EventsUnreachable} @throws {OperatorNeeded} */
  async follow(): Promise<void> {
    await this.store.open();
    // A run that is under way may have read its changes before the caller's.
    if (this.running !== undefined) await this.running.catch(() => undefined);
    this.running ??= this.run().finally(() => {
      this.running = undefined;
    });
    await this.running;
  }

  private async run(): Promise<void> {
    const { oldest, last } = changeRange(this.people);
    // Changes that the copies lack are forgotten already, as in a data directory whose copies were in another store.
    if (this.followed < oldest - 1 || this.followed > last) await this.refill();
    for (;;) {
      const changes = changesAfter(this.people, this.followed);
      if (changes.length === 0) return;
      await this.take(changes);
    }
  }

  private async take(changes: readonly PeopleChange[]): Promise<void> {
    const version = changes.at(-1)!.changeId;
    const names = changedNames(changes);
    const persons = this.rows("persons", personColumns);
    const goneUuids = new Map(names.persons.map((name) => [`${name.projectId}:${name.uuid}`, name]));
    for (const copy of personCopies(this.people, names.persons)) {
      await persons.add((rows) => writePerson(rows, copy, version));
      goneUuids.delete(`${copy.projectId}:${copy.uuid}`);
    }
    for (const name of goneUuids.values()) await persons.add((rows) => writePerson(rows, name, version));
    await persons.end();
    const owners = this.rows("person_distinct_ids", ownerColumns);
    const goneIds = new Map(names.owners.map((name) => [`${name.projectId}:${name.distinctId}`, name]));
    for (const copy of ownerCopies(this.people, names.owners)) {
      await owners.add((rows) => writeOwner(rows, copy, version));
      goneIds.delete(`${copy.projectId}:${copy.distinctId}`);
    }
    for (const name of goneIds.values()) await owners.add((rows) => writeOwner(rows, name, version));
    await owners.end();
    this.store.outside.noteMirrored(version);
    forgetChanges(this.people, version);
  }

  /** Copies all persons anew; what is there and is none of them goes. */
  private async refill(): Promise<void> {
    const { people } = this;
    // What changes from now on is followed later, and doing it twice does no harm.
    const { last } = changeRange(people);
    const version = Math.max(last, await this.newestVersion()) + 1;
    const persons = this.rows("persons", personColumns);
    for (const copies of allPersonCopies(people))
      for (const copy of copies) await persons.add((rows) => writePerson(rows, copy, version));
    await persons.end();
    const owners = this.rows("person_distinct_ids", ownerColumns);
    for (const copies of allOwnerCopies(people))
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
    this.store.outside.noteMirrored(last);
  }

  private async newestVersion(): Promise<number> {
    const [row] = await this.store.connection.rows(
      "SELECT greatest((SELECT max(version) FROM persons), (SELECT max(version) FROM person_distinct_ids))",
    );
    return Number(row![0]);
  }

  /** Gathers rows of a table and sends them in portions. */
  private rows(table: string, columns: readonly string[]) {
    let rows = new RowBinary();
    const send = async () => {
      const { bytes } = rows;
      rows = new RowBinary();
      if (bytes.length > 0) await this.store.connection.insert(table, columns, bytes, quorumOf(this.store));
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

function quorumOf({ address: { quorum } }: ClickHouseStore) {
  return quorum === null ? {} : { insert_quorum: String(quorum) };
}

/** @param person without properties: it is gone. */
function writePerson(rows: RowBinary, person: PersonCopy | PersonName, version: number): void {
  const copy = "properties" in person ? person : undefined;
  rows.int32(person.projectId);
  rows.uuid(person.uuid);
  rows.int64(copy?.createdMicros ?? 0);
  // Nobody reads them but questions: they are shown from the people store.
  rows.text(copy === undefined ? "{}" : (readableJson(copy.properties) ?? copy.properties));
  rows.text(copy?.mainDistinctId ?? "");
  rows.int64(version);
  rows.boolean(copy === undefined);
}

/** @param owner without a person: nobody has the id. */
function writeOwner(rows: RowBinary, owner: OwnerCopy | OwnerName, version: number): void {
  const copy = "personUuid" in owner ? owner : undefined;
  rows.int32(owner.projectId);
  rows.text(owner.distinctId);
  rows.uuid(copy?.personUuid ?? noUuid);
  rows.int64(copy?.joined ?? 0);
  rows.int64(version);
  rows.boolean(copy === undefined);
}
