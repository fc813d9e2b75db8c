/** Queries of people make room for the loading of events, but only those that have taken it. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { QueryTookMemory, RunningQueries } from "../../src/engine/running-queries.ts";
import { type EventDatabase, openEventDatabase } from "../../src/events/duckdb/database.ts";
import { temporaryFolder } from "../support/appliance.ts";

const memoryLimitBytes = 64 * 1024 * 1024;
const onStuck = (why: string) => {
  throw new Error(why);
};

let database: EventDatabase;
let queries: RunningQueries;
beforeAll(async () => {
  const folder = temporaryFolder();
  const settings = { memoryLimitBytes, threads: 1, temporaryFolder: join(folder, "tmp") };
  database = await openEventDatabase(join(folder, "events.duckdb"), settings);
  // What else the tests' process has is of no account here: many files run in it.
  queries = new RunningQueries(database, {
    memoryLimitBytes,
    onStuck,
    residentBytes: () => memoryLimitBytes,
  });
  // Texts that cannot be packed, of twice the memory.
  const own = await database.connect();
  await own.run(
    "CREATE TABLE wide AS SELECT md5(i::VARCHAR) || md5((i + 1)::VARCHAR) AS v FROM range(2000000) t(i)",
  );
  await own.run("CHECKPOINT");
  own.closeSync();
});
afterAll(async () => {
  // One measurement may still run.
  await database.memory();
  database.close();
});

/** Asks while something is loaded until the answer is there. */
async function whileLoading(sql: string): Promise<unknown> {
  const asked = Promise.withResolvers<void>();
  const loading = queries.loadInRoom(() => asked.promise);
  try {
    return await queries.run(
      async (connection) => {
        const reader = await connection.runAndReadAll(sql);
        return reader.getRows()[0]![0];
      },
      { isForeign: true },
    );
  } finally {
    asked.resolve();
    await loading;
  }
}

test("a query is not stopped for the parts of the file that stand in the memory", async () => {
  for (let round = 0; round < 3; round++)
    expect(await whileLoading("SELECT sum(length(v)) FROM wide")).toBe(128_000_000n);
});

test("a query waits for the memory of the one before it, but not for what the process always has", async () => {
  const always = memoryLimitBytes + 500 * 1024 * 1024;
  /** How many looks find what a query has taken. */
  let taken = 0;
  let looks = 0;
  const residentBytes = () => {
    looks += 1;
    return taken-- > 0 ? always + 100 * 1024 * 1024 : always;
  };
  const full = new RunningQueries(database, { memoryLimitBytes, onStuck, residentBytes });
  const ask = async () => {
    looks = 0;
    await full.run((connection) => connection.runAndReadAll("SELECT 1"), { isForeign: true });
    return looks;
  };
  for (let round = 0; round < 3; round++) expect(await ask()).toBeLessThan(10);
  taken = 20;
  expect(await ask()).toBeGreaterThan(20);
  expect(await ask()).toBeLessThan(10);
});

test("a statement that needs more than DuckDB's limit has an error of its own", async () => {
  const run = queries.run(
    (connection) =>
      connection.runAndReadAll("SELECT len(list(md5(i::VARCHAR))) FROM range(4000000) t(i) GROUP BY i % 2"),
    { isForeign: true },
  );
  await expect(run).rejects.toBeInstanceOf(QueryTookMemory);
});

test("a query that has taken most of the memory is stopped", async () => {
  await expect(
    whileLoading("SELECT max(c) FROM (SELECT v, count(*) AS c FROM wide GROUP BY v)"),
  ).rejects.toBeInstanceOf(QueryTookMemory);
});

test("what loading has left behind is not counted as a statement's, what it takes itself is", async () => {
  const left = memoryLimitBytes + 1_500 * 1024 * 1024;
  const run = async (grownBytes: number) => {
    let isRunning = false;
    const residentBytes = () => (isRunning ? left + grownBytes : left);
    const full = new RunningQueries(database, { memoryLimitBytes, onStuck, residentBytes });
    const work = async (connection: DuckDBConnection) => {
      isRunning = true;
      await connection.runAndReadAll("SELECT sum(length(v)) FROM wide, range(3)");
    };
    await full.run(work, { isForeign: true });
  };
  await run(200 * 1024 * 1024);
  // More than its part and the file's cache together.
  await expect(run(400 * 1024 * 1024)).rejects.toBeInstanceOf(QueryTookMemory);
});
