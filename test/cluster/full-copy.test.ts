/** Copies of all rows: they resume after an interruption, and readers never see an incomplete one. */

import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { join } from "node:path";
import { markMirrored } from "../../src/cluster/commits.ts";
import { Postgres } from "../../src/cluster/connection.ts";
import { migratePostgres } from "../../src/cluster/schema.ts";
import { type ReplicatedStore, StoreReplica } from "../../src/cluster/store-replica.ts";
import { parsePostgresUrl } from "../../src/lib/store-urls.ts";
import { server, usePostgres } from "../support/cluster-database.ts";
import { testWithPostgres } from "../support/postgres.ts";
import { temporaryFolder } from "../support/server.ts";

const test = testWithPostgres("copies of all rows");
const sql = "CREATE TABLE item (id INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL) STRICT;";
const store: ReplicatedStore = { name: "people", migrations: [{ version: 1, name: "items", sql }] };
/** More than two transactions of a copy read. */
const count = 12_000;

usePostgres();

/** Calls a function before each transaction. */
class WatchedPostgres extends Postgres {
  before: () => void = () => undefined;

  override async transaction<Result>(...args: Parameters<Postgres["transaction"]>): Promise<Result> {
    this.before();
    return (await super.transaction(...args)) as Result;
  }
}

async function connect(database: string): Promise<WatchedPostgres> {
  const address = parsePostgresUrl(await server.create(database))!;
  const postgres = new WatchedPostgres(address, { connections: 4, name: "test" });
  await migratePostgres(postgres);
  return postgres;
}

const newPath = () => join(temporaryFolder(), "copy.sqlite");

async function open(postgres: Postgres, path = newPath(), replicatedStore = store) {
  await StoreReplica.prepare(path, replicatedStore, postgres);
  const client = new Database(path, { strict: true });
  return { client, copy: StoreReplica.attach(client, replicatedStore, postgres) };
}

type Opened = Awaited<ReturnType<typeof open>>;

const fill = ({ client, copy }: Opened) =>
  copy.change(() =>
    client.run(
      `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count}) INSERT INTO item (value) SELECT 'first' FROM n`,
    ),
  );

async function compact(postgres: Postgres, { copy }: Opened): Promise<void> {
  await markMirrored(postgres, copy.revision);
  await copy.tidy();
}

const getRows = (client: Database) => client.query("SELECT id, value FROM item ORDER BY id").values();

/** Starts a copy that loses PostgreSQL after its first pages. */
async function interrupted(postgres: WatchedPostgres): Promise<string> {
  const path = newPath();
  let transactions = 0;
  postgres.before = () => {
    transactions += 1;
    if (transactions === 2) throw new Error("lost");
  };
  await expect(StoreReplica.prepare(path, store, postgres)).rejects.toThrow("lost");
  postgres.before = () => undefined;
  const client = new Database(path);
  expect(getRows(client).length).toBe(5_000);
  client.close();
  return path;
}

test("an interrupted copy resumes, and contains later changes", async () => {
  const postgres = await connect("resumes");
  const one = await open(postgres);
  await fill(one);
  await compact(postgres, one);
  const path = await interrupted(postgres);
  await one.copy.change(() => {
    one.client.run("UPDATE item SET value = 'changed' WHERE id IN (1, 11000)");
    one.client.run("DELETE FROM item WHERE id IN (2, 11001)");
  });
  await compact(postgres, one);
  await one.copy.change(() => one.client.run("UPDATE item SET value = 'again' WHERE id IN (3, 11002)"));
  // What the file has already is not read again.
  const [first] = await postgres.run((t) => t`SELECT min(revision) AS revision FROM flagkeep.row`);
  const deleted = await postgres.run(
    (t) => t`DELETE FROM flagkeep.row WHERE (tbl, key_hash) IN (SELECT tbl, key_hash FROM flagkeep.row
      WHERE revision = ${first!.revision} ORDER BY revision, tbl, key_hash LIMIT 4000) RETURNING 1`,
  );
  expect(deleted.length).toBe(4_000);
  const resumed = await open(postgres, path);
  expect(getRows(resumed.client)).toEqual(getRows(one.client));
  await postgres.close();
}, 60_000);

test("a copy restarts if it may have missed deletions", async () => {
  const postgres = await connect("pruned");
  const one = await open(postgres);
  await fill(one);
  await compact(postgres, one);
  const path = await interrupted(postgres);
  await one.copy.change(() => one.client.run("DELETE FROM item WHERE id % 2 = 1"));
  await one.copy.change(() => one.client.run("INSERT INTO item (value) VALUES ('last')"));
  await compact(postgres, one);
  await postgres.run((t) => t`UPDATE flagkeep.commit SET at = clock_timestamp() - interval '2 days'`);
  await one.copy.tidy();
  const resumed = await open(postgres, path);
  expect(getRows(resumed.client)).toEqual(getRows(one.client));
  await postgres.close();
}, 60_000);

test("a replica of another history replaces all rows in one transaction; readers see the old rows before it", async () => {
  const postgres = await connect("replaced");
  const one = await open(postgres);
  await fill(one);
  await compact(postgres, one);
  await one.copy.change(() => one.client.run("UPDATE item SET value = 'lost'"));
  await postgres.run((t) => t`DELETE FROM flagkeep.commit WHERE revision = 2`);
  await postgres.run((t) => t`UPDATE flagkeep.store SET revision = 1`);
  const seen = new Set<string>();
  const reader = new Database(one.client.filename);
  postgres.before = () => {
    const values = reader.query("SELECT count(*), min(value), max(value) FROM item").values();
    seen.add(`${values} ${one.copy.copying === undefined ? "served" : "copying"}`);
  };
  await one.copy.catchUp();
  postgres.before = () => undefined;
  expect([...seen]).toEqual([`${count},lost,lost served`, `${count},lost,lost copying`]);
  expect(one.copy.copying).toBeUndefined();
  expect(getRows(one.client).every(([, value]) => value === "first")).toBe(true);
  await one.copy.change(() => one.client.run("INSERT INTO item (value) VALUES ('next')"));
  expect(getRows(one.client).at(-1)).toEqual([count + 1, "next"]);
  expect(getRows((await open(postgres)).client)).toEqual(getRows(one.client));
  await postgres.close();
}, 60_000);

test("a newer version migrates a large store in commits of a limited size", async () => {
  const postgres = await connect("migrated");
  const one = await open(postgres);
  await fill(one);
  const { ...first } = store.migrations[0]!;
  const second = {
    version: 2,
    name: "more",
    sql: "DELETE FROM item WHERE id = 1; UPDATE item SET value = 'migrated'",
  };
  const newer: ReplicatedStore = { name: "people", migrations: [first, second] };
  const upgraded = await open(postgres, newPath(), newer);
  expect(upgraded.copy.revision).toBeGreaterThan(3);
  for (const { client } of [upgraded, await open(postgres, newPath(), newer)]) {
    const rows = getRows(client);
    expect(rows.length).toBe(count - 1);
    expect(rows.every(([, value]) => value === "migrated")).toBe(true);
  }
  await postgres.close();
}, 60_000);
