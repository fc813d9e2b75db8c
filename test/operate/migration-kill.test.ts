/** A migration that is killed at any of its statements is taken up by the next start, and ends as if nothing had been. */

import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openMetadata } from "../../src/accounts/metadata.ts";
import {
  eventsSchemaVersion,
  openEventDatabase,
  readEventsVersion,
} from "../../src/events/duckdb/database.ts";
import { openPersons } from "../../src/persons/open.ts";
import { temporaryFolder } from "../support/server.ts";
import { openAndDie } from "./migrate-and-die.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Opens it as a start does, and tells what is in it. */
async function getSchema(store: string, path: string): Promise<unknown> {
  if (store !== "events") {
    if (store === "metadata") openMetadata(path).close();
    else openPersons(path).$client.close();
    const db = new Database(path);
    const schema = db.query("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").values();
    const versions = db.query("SELECT version, name FROM schema_migration ORDER BY version").values();
    db.close();
    return { schema, versions };
  }
  const settings = { memoryLimitBytes: 256 * 1024 * 1024, threads: 1, temporaryFolder: `${path}.temporary` };
  const database = await openEventDatabase(path, settings);
  const connection = await database.connect();
  const rows = async (sql: string) => (await connection.runAndReadAll(sql)).getRowsJson();
  const found = {
    tables: await rows("SELECT table_name, sql FROM duckdb_tables() ORDER BY table_name"),
    versions: await rows("SELECT * FROM schema_migration ORDER BY version"),
    cursors: await rows("SELECT * FROM load_cursor ORDER BY lane"),
  };
  connection.closeSync();
  database.close();
  return found;
}

for (const store of ["metadata", "people", "events"]) {
  test(store, async () => {
    const expected = await getSchema(store, join(folder, `${store}-whole`));
    let kills = 0;
    for (let statement = 1; ; statement++) {
      const path = join(folder, `${store}-${statement}`);
      if ((await openAndDie(store, path, statement)) === "opened") break;
      kills += 1;
      if (store === "events" && existsSync(path))
        expect(await readEventsVersion(path)).toBe(eventsSchemaVersion);
      expect(await getSchema(store, path)).toEqual(expected);
    }
    expect(kills).toBeGreaterThan(3);
    expect(readdirSync(folder).filter((name) => /\.(new|wal)/.test(name))).toEqual([]);
  }, 60_000);
}

test("files that a kill left next to an event store in creation are not read", async () => {
  const path = join(folder, "left");
  for (const name of [`${path}.new`, `${path}.new.wal`, `${path}.wal`]) writeFileSync(name, "half of it");
  expect(await getSchema("events", path)).toEqual(await getSchema("events", join(folder, "events-whole")));
});
