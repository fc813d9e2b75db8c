/**
 * Keeps copies of persons and their distinct ids in ClickHouse, which keeps the newest version of each: the number of the
 * change. How far it has come is in the people store; after a crash a copy is written again, under the same version.
 */

import { changeRange, changesAfter, forgetChanges, type PeopleChange } from "../../people/changes.ts";
import {
  allOwnerCopies,
  allPersonCopies,
  type OwnerCopy,
  ownerCopies,
  type PersonCopy,
  type PersonName,
  personCopies,
} from "../../people/mirror-rows.ts";
import type { PeopleDb } from "../../people/open.ts";
import { readableJson } from "./readable-json.ts";
import { RowBinary } from "./row-binary.ts";
import type { ClickHouseStore } from "./store.ts";

const changesAtOnce = 20_000;
/** Persons that are in memory at once; each may have half a megabyte of properties. */
const personsAtOnce = 250;
/** What is sent at once. */
const insertBytes = 8 * 1024 * 1024;

type OwnerName = Pick<OwnerCopy, "projectId" | "distinctId">;

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
      const changes = changesAfter(this.people, this.followed, changesAtOnce);
      if (changes.length === 0) return;
      await this.take(changes);
    }
  }

  private async take(changes: readonly PeopleChange[]): Promise<void> {
    const version = changes.at(-1)!.changeId;
    const owners = new Map<string, OwnerName>();
    const names = new Map<string, PersonName>();
    for (const change of changes) {
      const { projectId, personUuid } = change;
      names.set(`${projectId}:${personUuid}`, { projectId, uuid: personUuid });
      if (change.kind === "distinct_id") {
        const { distinctId } = change;
        owners.set(`${projectId}:${distinctId}`, { projectId, distinctId });
      }
    }
    const persons = this.rows("persons", personColumns);
    const wanted = [...names.values()];
    for (let start = 0; start < wanted.length; start += personsAtOnce) {
      const part = wanted.slice(start, start + personsAtOnce);
      const copies = new Map(
        personCopies(this.people, part).map((copy) => [`${copy.projectId}:${copy.uuid}`, copy]),
      );
      for (const name of part) {
        const copy = copies.get(`${name.projectId}:${name.uuid}`);
        await persons.add((rows) => writePerson(rows, copy ?? name, version));
      }
    }
    await persons.end();
    await this.takeOwners([...owners.values()], version);
    this.store.outside.noteMirrored(version);
    forgetChanges(this.people, version);
  }

  private async takeOwners(names: readonly OwnerName[], version: number): Promise<void> {
    if (names.length === 0) return;
    const copies = new Map(
      ownerCopies(this.people, names).map((copy) => [`${copy.projectId}:${copy.distinctId}`, copy]),
    );
    const owners = this.rows("person_distinct_ids", ownerColumns);
    for (const name of names) {
      const copy = copies.get(`${name.projectId}:${name.distinctId}`);
      await owners.add((rows) => writeOwner(rows, copy ?? name, version));
    }
    await owners.end();
  }

  /** Copies all persons anew; what is there and is none of them goes. */
  private async refill(): Promise<void> {
    const { people } = this;
    // What changes from now on is followed later, and doing it twice does no harm.
    const { last } = changeRange(people);
    const version = Math.max(last, await this.newestVersion()) + 1;
    const persons = this.rows("persons", personColumns);
    for (let afterId = 0; ; ) {
      const copies = allPersonCopies(people, afterId, personsAtOnce);
      if (copies.length === 0) break;
      for (const copy of copies) await persons.add((rows) => writePerson(rows, copy, version));
      afterId = copies.at(-1)!.id;
    }
    await persons.end();
    const owners = this.rows("person_distinct_ids", ownerColumns);
    for (let after = { projectId: Number.MIN_SAFE_INTEGER, distinctId: "" }; ; ) {
      const copies = allOwnerCopies(people, after, changesAtOnce);
      if (copies.length === 0) break;
      for (const copy of copies) await owners.add((rows) => writeOwner(rows, copy, version));
      after = copies.at(-1)!;
    }
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
