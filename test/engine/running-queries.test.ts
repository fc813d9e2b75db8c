/** Queries are cancelled for the loading of events, but only those that use the memory. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { QueryMemoryExceededError, RunningQueries } from "../../src/engine/running-queries.ts";
import { type EventDatabase, openEventDatabase } from "../../src/events/duckdb/database.ts";
import { temporaryFolder } from "../support/server.ts";
import { testWhen } from "../support/skipped.ts";
import { usableSizes, Volume } from "../support/volume.ts";

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
  const loading = queries.loadWithinBudget(() => asked.promise);
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

test("a query is not cancelled for cached parts of the file", async () => {
  for (let round = 0; round < 3; round++)
    expect(await whileLoading("SELECT sum(length(v)) FROM wide")).toBe(128_000_000n);
});

test("a query waits for the memory of the previous one, but not for memory that the process always uses", async () => {
  const always = memoryLimitBytes + 500 * 1024 * 1024;
  /** How many looks find what a query has taken. */
  let imported = 0;
  let looks = 0;
  const residentBytes = () => {
    looks += 1;
    return imported-- > 0 ? always + 100 * 1024 * 1024 : always;
  };
  const full = new RunningQueries(database, { memoryLimitBytes, onStuck, residentBytes });
  const ask = async () => {
    looks = 0;
    await full.run((connection) => connection.runAndReadAll("SELECT 1"), { isForeign: true });
    return looks;
  };
  // Of several queries, because a busy machine delays some of them.
  const leastLooks = async () => Math.min(await ask(), await ask(), await ask());
  expect(await leastLooks()).toBeLessThan(10);
  imported = 20;
  expect(await ask()).toBeGreaterThan(20);
  expect(await leastLooks()).toBeLessThan(10);
});

test("a statement that needs more than DuckDB's limit gets a specific error", async () => {
  const run = queries.run(
    (connection) =>
      connection.runAndReadAll("SELECT len(list(md5(i::VARCHAR))) FROM range(4000000) t(i) GROUP BY i % 2"),
    { isForeign: true },
  );
  await expect(run).rejects.toBeInstanceOf(QueryMemoryExceededError);
});

test("a query that needs more than the memory uses temporary files, also while events are loaded", async () => {
  const loader = await database.connect();
  await loader.run("CREATE OR REPLACE TABLE loaded (v VARCHAR)");
  let isRunning = true;
  let steps = 0;
  const load = async () => {
    while (isRunning) {
      await queries.loadWithinBudget(async () => {
        await loader.run("INSERT INTO loaded SELECT repeat(md5(random()::VARCHAR), 30) FROM range(2000)");
      });
      steps += 1;
    }
  };
  const loading = load();
  try {
    for (const [sql, result] of [
      ["SELECT max(c) FROM (SELECT v, count(*) AS c FROM wide GROUP BY v)", 1n],
      ["SELECT count(DISTINCT v) FROM wide", 2_000_000n],
      ["SELECT count(*) FROM wide a JOIN wide b USING (v)", 2_000_000n],
    ] as const)
      expect(await whileLoading(sql)).toBe(result);
  } finally {
    isRunning = false;
    await loading;
    loader.closeSync();
  }
  expect(steps).toBeGreaterThan(0);
});

/** Needs temporary files of some hundred MiB. */
const spilling =
  "SELECT max(c) FROM (SELECT md5(i::VARCHAR) AS v, count(*) AS c FROM range(6000000) t(i) GROUP BY v)";

async function getRejection(
  target: RunningQueries,
  sql: string,
): Promise<{ code?: string; message: string }> {
  const run = target.run((connection) => connection.runAndReadAll(sql), { isForeign: true });
  return await run.then(
    () => ({ message: "no error" }),
    (error) => error as Error & { code: string },
  );
}

test("the error names what used the memory", async () => {
  for (const [sql, part] of [
    ["SELECT len(list(md5(i::VARCHAR))) FROM range(4000000) t(i)", "collected by aggregates"],
    // Fails before the first measurement.
    ["SELECT sum(len(l)) FROM (SELECT string_agg(v) AS l FROM wide)", "aggregate"],
  ] as const) {
    const { code, message } = await getRejection(queries, sql);
    expect(code).toBe("query_memory");
    expect(message).toMatch(
      /exceeded the memory limit \(64 MiB\) and was cancelled: most of it is .* \(\d+ MiB\)\./,
    );
    expect(message).toContain(part);
  }
});

test("temporary files have a limit of their own, which the error names", async () => {
  const folder = temporaryFolder();
  const limits = { memoryLimitBytes, spillLimitBytes: 16 * 1024 * 1024 };
  const settings = { ...limits, threads: 1, temporaryFolder: join(folder, "tmp") };
  const small = await openEventDatabase(join(folder, "events.duckdb"), settings);
  try {
    const few = new RunningQueries(small, { ...limits, onStuck, residentBytes: () => memoryLimitBytes });
    const { code, message } = await getRejection(few, spilling);
    expect(code).toBe("query_memory");
    expect(message).toContain("exceeded the limit of temporary files (16 MiB)");
    expect(message).toContain("--duckdb-spill-limit");
    expect(message).toContain("hash tables");
  } finally {
    await small.memory();
    small.close();
  }
});

test("a measurement that fails for lack of memory disturbs neither the query nor the engine", async () => {
  const short = async () => {
    measured += 1;
    throw new Error(
      "Out of Memory Error: could not allocate block of size 256.0 KiB (16.0 MiB/16.0 MiB used)",
    );
  };
  let measured = 0;
  const full = new RunningQueries({ ...database, memory: short }, { memoryLimitBytes, onStuck });
  const work = async (connection: DuckDBConnection) => {
    const before = measured;
    // One at the start, and others while it runs.
    for (let runs = 0; runs < 1_000 && measured < before + 2; runs++)
      await connection.runAndReadAll("SELECT sum(length(v)) FROM wide");
    return (await connection.runAndReadAll("SELECT 7")).getRows()[0]![0];
  };
  expect(await full.run(work, { isForeign: true })).toBe(7);
  expect(measured).toBeGreaterThan(2);
});

testWhen(
  usableSizes(["8m"]).length > 0,
  "a full disk of temporary files",
  "no volume can be mounted",
)("a full disk of temporary files has a specific error", async () => {
  using volume = Volume.mount("8m")!;
  const limits = { memoryLimitBytes, spillLimitBytes: 1024 * 1024 * 1024 };
  const settings = { ...limits, threads: 1, temporaryFolder: join(volume.folder, "tmp") };
  const full = await openEventDatabase(join(temporaryFolder(), "events.duckdb"), settings);
  try {
    const few = new RunningQueries(full, { ...limits, onStuck, residentBytes: () => memoryLimitBytes });
    const { code, message } = await getRejection(few, spilling);
    expect(code).toBe("query_memory");
    expect(message).toStartWith("The disk is full");
    expect(message).not.toContain(volume.folder);
    expect(await few.run((connection) => connection.runAndReadAll("SELECT 7"))).toBeDefined();
  } finally {
    await full.memory();
    full.close();
  }
});

test("an insight above the memory limit has the same error", async () => {
  const run = queries.run((connection) =>
    connection.runAndReadAll("SELECT len(list(md5(i::VARCHAR))) FROM range(4000000) t(i)"),
  );
  await expect(run).rejects.toBeInstanceOf(QueryMemoryExceededError);
});

test("memory of JavaScript objects and of the store's caches that grows while events are loaded is not a statement's", async () => {
  const grownBytes = 700 * 1024 * 1024;
  const run = async (heapGrowth: number) => {
    let isRunning = false;
    const grown = (bytes: number) => (isRunning ? memoryLimitBytes + bytes : memoryLimitBytes);
    const full = new RunningQueries(database, {
      memoryLimitBytes,
      onStuck,
      residentBytes: () => grown(grownBytes),
      heapBytes: () => grown(heapGrowth),
      loadingBytesMax: 128 * 1024 * 1024,
    });
    const loaded = Promise.withResolvers<void>();
    const loading = full.loadWithinBudget(() => loaded.promise);
    const work = async (connection: DuckDBConnection) => {
      isRunning = true;
      await connection.runAndReadAll("SELECT sum(length(v)) FROM wide, range(3)");
    };
    await full.run(work, { isForeign: true }).finally(() => loaded.resolve());
    await loading;
  };
  await run(400 * 1024 * 1024);
  await expect(run(0)).rejects.toBeInstanceOf(QueryMemoryExceededError);
});

test("memory left by loading is not counted for a statement; its own memory is", async () => {
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
  await expect(run(400 * 1024 * 1024)).rejects.toBeInstanceOf(QueryMemoryExceededError);
});
