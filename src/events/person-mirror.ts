/**
 * Keeps copies of persons and their distinct ids in the event store.
 *
 * It follows the numbered changes of the people store; the number it has reached is stored with the copies, so a
 * crash repeats nothing and misses nothing.
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { changeRange, changesAfter, forgetChanges, type PeopleChange } from "../people/changes.ts";
import { allOwnerLines, allPersonLines, mirrorLines, ownerLines } from "../people/mirror-rows.ts";
import type { PeopleDb } from "../people/open.ts";
import { type EventDatabase, inTransaction } from "./database.ts";
import { quoted } from "./sql-text.ts";

const changesAtOnce = 20_000;

const rowsOf = {
  persons: (path: string) =>
    `(SELECT project_id, uuid, make_timestamp(created), properties, main_distinct_id
      FROM read_ndjson(${quoted(path)}, maximum_object_size = 67108864, ignore_errors = true,
        columns = {project_id: 'INTEGER', uuid: 'UUID', created: 'BIGINT', main_distinct_id: 'VARCHAR',
          properties: 'JSON'}) WHERE uuid IS NOT NULL)`,
  owners: (path: string) =>
    `read_ndjson(${quoted(path)}, maximum_object_size = 67108864,
      columns = {project_id: 'INTEGER', distinct_id: 'VARCHAR', person_uuid: 'UUID', joined: 'BIGINT'})`,
};

export class PersonMirror {
  private running: Promise<void> | undefined;

  private constructor(
    private readonly connection: DuckDBConnection,
    private readonly people: PeopleDb,
    private readonly workFolder: string,
    private cursor: number,
  ) {}

  static async open(database: EventDatabase, people: PeopleDb, workFolder: string): Promise<PersonMirror> {
    const connection = await database.connect();
    const rows = await connection.runAndReadAll("SELECT change_id FROM mirror_cursor");
    return new PersonMirror(connection, people, workFolder, Number(rows.getRows()[0]![0]));
  }

  /** Takes over every change made before the call. */
  async follow(): Promise<void> {
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

  /** Copies all persons anew. Nobody may use the mirror meanwhile. @returns how many persons there are */
  async refill(): Promise<number> {
    const { connection, people } = this;
    // What changes from now on is followed later, and doing it twice does no harm.
    const { last } = changeRange(people);
    let persons = 0;
    await inTransaction(connection, async () => {
      await connection.run("DELETE FROM person");
      await connection.run("DELETE FROM person_distinct_id");
      for (let afterId = 0; ; ) {
        const { lines, lastId } = allPersonLines(people, afterId, changesAtOnce);
        if (lastId === undefined) break;
        const path = await this.write("mirror-persons", lines);
        await connection.run(`INSERT INTO person SELECT * FROM ${rowsOf.persons(path)}`);
        afterId = lastId;
        persons += lines.length;
      }
      for (let after: readonly [number, string] = [Number.MIN_SAFE_INTEGER, ""]; ; ) {
        const { lines, lastKey } = allOwnerLines(people, after, changesAtOnce);
        if (lastKey === undefined) break;
        const path = await this.write("mirror-owners", lines);
        await connection.run(`INSERT INTO person_distinct_id SELECT * FROM ${rowsOf.owners(path)}`);
        after = lastKey;
      }
      await connection.run("UPDATE mirror_cursor SET change_id = $1", [BigInt(last)]);
    });
    this.cursor = last;
    return persons;
  }

  private async run(): Promise<void> {
    for (;;) {
      const changes = changesAfter(this.people, this.cursor, changesAtOnce);
      if (changes.length === 0) return;
      await this.take(changes);
    }
  }

  private async take(changes: PeopleChange[]): Promise<void> {
    const last = changes.at(-1)!.changeId;
    const owners = new Map<string, { projectId: number; distinctId: string }>();
    const persons = new Map<string, { projectId: number; uuid: string }>();
    for (const change of changes) {
      const { projectId, personUuid } = change;
      persons.set(`${projectId}:${personUuid}`, { projectId, uuid: personUuid });
      if (change.kind === "distinct_id") {
        const { distinctId } = change;
        owners.set(`${projectId}:${distinctId}`, { projectId, distinctId });
      }
    }
    const namesPath = await this.write(
      "mirror-names",
      [...persons.values()].map(({ projectId, uuid }) => JSON.stringify({ project_id: projectId, uuid })),
    );
    const personsPath = await this.write("mirror-persons", mirrorLines(this.people, [...persons.values()]));
    const ownersPath = await this.write("mirror-owners", ownerLines(this.people, [...owners.values()]));
    const names = `read_ndjson(${quoted(namesPath)}, columns = {project_id: 'INTEGER', uuid: 'UUID'})`;
    const ids = rowsOf.owners(ownersPath);
    const { connection } = this;
    await inTransaction(connection, async () => {
      await connection.run(
        `DELETE FROM person USING ${names} AS n WHERE person.uuid = n.uuid AND person.project_id = n.project_id`,
      );
      await connection.run(`INSERT INTO person SELECT * FROM ${rowsOf.persons(personsPath)}`);
      if (owners.size > 0) {
        await connection.run(
          `DELETE FROM person_distinct_id AS p USING ${ids} AS n
           WHERE p.distinct_id = n.distinct_id AND p.project_id = n.project_id`,
        );
        await connection.run(`INSERT INTO person_distinct_id SELECT * FROM ${ids}`);
      }
      await connection.run("UPDATE mirror_cursor SET change_id = $1", [BigInt(last)]);
    });
    this.cursor = last;
    forgetChanges(this.people, last);
  }

  private async write(name: string, lines: string[]): Promise<string> {
    const path = join(this.workFolder, `${name}.ndjson`);
    await writeFile(path, lines.map((line) => `${line}\n`).join(""), { mode: 0o600 });
    return path;
  }
}
