/** Intermediate results that queries share: made once, limited in number, size and age. */

import { expect, test } from "bun:test";
import { CachedTables, cachedTableRules } from "../../../src/events/duckdb/cached-tables.ts";
import { readAllBlocks } from "../../../src/events/duckdb/verify-blocks.ts";
import { TestStores } from "../../support/event-store.ts";

const numbers = (count: number) => `SELECT range AS n FROM range(${count})`;

async function start(rules: Partial<typeof cachedTableRules> = {}) {
  const stores = await TestStores.open();
  const clock = { now: 0 };
  const tables = new CachedTables({ ...cachedTableRules, ...rules }, () => clock.now);
  return {
    stores,
    clock,
    tables,
    /** Runs a query that reads a table. */
    async read(key: string, sql = numbers(3)): Promise<string> {
      const connection = await stores.database.connect();
      const reader = tables.reader(connection);
      try {
        const table = await reader.table(key, sql);
        await connection.run(`SELECT count(*) FROM ${table}`);
        return table;
      } finally {
        await reader.end();
        connection.closeSync();
      }
    },
    names: async () =>
      (
        await stores.rows(
          "SELECT 'cached.' || table_name FROM duckdb_tables() WHERE database_name = 'cached' ORDER BY table_oid",
        )
      ).map(([name]) => String(name)),
  };
}

test("queries at the same time make a table once, later ones find it until it is too old", async () => {
  const { stores, clock, read, names } = await start();
  const same = await Promise.all([read("a"), read("a"), read("a")]);
  expect(new Set(same).size).toBe(1);
  clock.now = cachedTableRules.ageMaxMs - 1;
  expect(await read("a")).toBe(same[0]!);
  clock.now += 1;
  const newer = await read("a");
  expect(newer).not.toBe(same[0]!);
  expect(await names()).toEqual([newer]);
  await stores[Symbol.asyncDispose]();
});

test("the oldest of too many tables is dropped, but not while a query reads it", async () => {
  const { stores, tables, read, names } = await start({ tablesMax: 2 });
  const connection = await stores.database.connect();
  const reader = tables.reader(connection);
  const held = await reader.table("held", numbers(3));
  const others = [await read("b"), await read("c"), await read("d")];
  expect(await names()).toEqual([held, ...others.slice(1)]);
  await connection.run(`SELECT * FROM ${held}`);
  await reader.end();
  expect(await names()).toEqual(others.slice(1));
  connection.closeSync();
  await stores[Symbol.asyncDispose]();
});

test("a large table serves only the queries that wait for it", async () => {
  const { stores, read, names } = await start({ bytesMax: 1_000 });
  const large = await read("large", numbers(1_000));
  expect(await names()).toEqual([]);
  expect(await read("large", numbers(1_000))).not.toBe(large);
  await stores[Symbol.asyncDispose]();
});

test("a failure is not cached, and deleted data makes tables stale", async () => {
  const { stores, tables, read, names } = await start();
  await expect(read("a", "SELECT error('no')")).rejects.toThrow("no");
  const created = await read("a");
  tables.clear();
  expect(await read("a")).not.toBe(created);
  expect((await names()).length).toBe(1);
  await stores[Symbol.asyncDispose]();
});

test("a query that is cancelled does not wait for the table of another one", async () => {
  const { stores, tables, names } = await start();
  const maker = await stores.database.connect();
  const waiter = await stores.database.connect();
  const endless =
    "SELECT count(*) AS n FROM range(1000000000) a, range(1000000000) b WHERE a.range + b.range = 7";
  const making = tables.reader(maker).table("a", endless);
  const stop = new AbortController();
  const waiting = tables.reader(waiter, () => stop.signal).table("a", endless);
  stop.abort(new Error("cancelled"));
  await expect(waiting).rejects.toThrow("cancelled");
  const interrupting = setInterval(() => maker.interrupt(), 20);
  await expect(making).rejects.toThrow();
  clearInterval(interrupting);
  expect(await names()).toEqual([]);
  for (const connection of [maker, waiter]) connection.closeSync();
  await stores[Symbol.asyncDispose]();
});

test("checking the file reads only the file's tables", async () => {
  const { stores, read } = await start();
  await read("a");
  const connection = await stores.database.connect();
  await readAllBlocks(connection);
  connection.closeSync();
  await stores[Symbol.asyncDispose]();
});
