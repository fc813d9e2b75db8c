/**
 * Keeps copies of persons and their distinct ids in the event store.
 *
 * It follows the numbered changes of the people store; the number it has reached is stored with the copies, so a
 * crash repeats nothing and misses nothing.
 */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { changesAfter, forgetChanges, type PeopleChange } from "../people/changes.ts";
import { mirrorLines } from "../people/mirror-rows.ts";
import type { PeopleDb } from "../people/open.ts";
import { type EventDatabase, inTransaction } from "./database.ts";
import { quoted } from "./sql-text.ts";

const changesAtOnce = 20_000;

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

  private async run(): Promise<void> {
    for (;;) {
      const changes = changesAfter(this.people, this.cursor, changesAtOnce);
      if (changes.length === 0) return;
      await this.take(changes);
    }
  }

  private async take(changes: PeopleChange[]): Promise<void> {
    const last = changes.at(-1)!.changeId;
    const owners = new Map<string, { projectId: number; distinctId: string; personUuid: string }>();
    const persons = new Map<string, { projectId: number; uuid: string }>();
    for (const change of changes) {
      const { projectId, personUuid } = change;
      persons.set(`${projectId}:${personUuid}`, { projectId, uuid: personUuid });
      if (change.kind === "distinct_id") {
        const { distinctId } = change;
        owners.set(`${projectId}:${distinctId}`, { projectId, distinctId, personUuid });
      }
    }
    const namesPath = await this.write(
      "mirror-names",
      [...persons.values()].map(({ projectId, uuid }) => JSON.stringify({ project_id: projectId, uuid })),
    );
    const personsPath = await this.write("mirror-persons", mirrorLines(this.people, [...persons.values()]));
    const ownersPath = await this.write(
      "mirror-owners",
      [...owners.values()].map(({ projectId, distinctId, personUuid }) =>
        JSON.stringify({ project_id: projectId, distinct_id: distinctId, person_uuid: personUuid }),
      ),
    );
    const names = `read_ndjson(${quoted(namesPath)}, columns = {project_id: 'INTEGER', uuid: 'UUID'})`;
    const rows = `read_ndjson(${quoted(personsPath)}, maximum_object_size = 67108864, ignore_errors = true,
      columns = {project_id: 'INTEGER', uuid: 'UUID', created: 'BIGINT', properties: 'JSON'})`;
    const ids = `read_ndjson(${quoted(ownersPath)},
      columns = {project_id: 'INTEGER', distinct_id: 'VARCHAR', person_uuid: 'UUID'})`;
    const { connection } = this;
    await inTransaction(connection, async () => {
      await connection.run(
        `DELETE FROM person USING ${names} AS n WHERE person.uuid = n.uuid AND person.project_id = n.project_id`,
      );
      await connection.run(
        `INSERT INTO person SELECT project_id, uuid, make_timestamp(created), properties FROM ${rows} WHERE uuid IS NOT NULL`,
      );
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
