/**
 * Blocks of the journal are numbered by a sequence and committed in any order: readers that stop at the safe number miss
 * none.
 */

import { describe, expect } from "bun:test";
import { Postgres } from "../../src/cluster/connection.ts";
import { describeHeldBack, readHeldBack, SafeNumber } from "../../src/cluster/safe-number.ts";
import { createDatabase, openPostgres, usePostgres } from "../support/cluster-database.ts";
import { mulberry32 } from "../support/crash-load.ts";
import { startPostgres, testWithPostgres } from "../support/postgres.ts";
import { until } from "../support/server.ts";
import { append } from "./journal-support.ts";

const test = testWithPostgres("the safe number");
const seed = Number(process.env.FLAGKEEP_TEST_SEED) || Date.now() % 1_000_000;
const random = mulberry32(seed);
const writers = 8;

usePostgres();

type Rule = "safe number" | "newest block" | "pg_snapshot_xmax";

/** The number that a rule takes for complete; undefined if it has to wait. */
function getRule(rule: Rule, postgres: Postgres): () => Promise<number | undefined> {
  const safe = new SafeNumber(postgres);
  if (rule === "safe number") return () => safe.read();
  if (rule === "newest block")
    return async () => {
      const [row] = await postgres.run((sql) => sql`SELECT max(first_seq) AS last FROM flagkeep.journal`);
      return Number(row!.last);
    };
  let pending: { last: number; end: string } | undefined;
  return async () => {
    if (pending === undefined) {
      const [row] = await postgres.run((sql) => sql`SELECT last_value AS last FROM flagkeep.block`);
      const [snapshot] = await postgres.run(
        (sql) => sql`SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS until`,
      );
      pending = { last: Number(row!.last) * 1_024, end: snapshot!.until };
    }
    const { last, end } = pending;
    const [row] = await postgres.run(
      (sql) => sql`SELECT pg_snapshot_xmin(pg_current_snapshot()) >= ${end}::text::xid8 AS done`,
    );
    if (row!.done !== true) return undefined;
    pending = undefined;
    return last;
  };
}

/** Reads as a loader does while others write. @returns how many of the blocks below its last number it has missed */
async function countMissed(rule: Rule, postgres: Postgres, isDone: () => boolean): Promise<number> {
  const read = getRule(rule, postgres);
  const seen = new Set<number>();
  let last = 0;
  for (let isLast = false; !isLast; ) {
    isLast = isDone();
    const end = await read();
    if (end === undefined) continue;
    const rows = await postgres.run(
      (sql) => sql`SELECT first_seq FROM flagkeep.journal WHERE first_seq > ${last} AND first_seq <= ${end}`,
    );
    for (const { first_seq } of rows) seen.add(Number(first_seq));
    last = end;
  }
  const all = await postgres.run(
    (sql) => sql`SELECT first_seq FROM flagkeep.journal WHERE first_seq <= ${last}`,
  );
  expect(all.length).toBeGreaterThan(100);
  return all.filter(({ first_seq }) => !seen.has(Number(first_seq))).length;
}

test("a reader misses no block of 8 writers with random pauses; by two other rules it would", async () => {
  const { postgres, url } = await createDatabase();
  const pools = Array.from({ length: writers }, () => openPostgres(url, 1));
  const end = performance.now() + 4_000;
  let acknowledged = 0;
  let disorder = 0;
  const writing = pools.map(async (pool) => {
    while (performance.now() < end) {
      const before = acknowledged;
      const number = await append(pool, random() < 0.2 ? random() * 50 : 0);
      // Sent after another one was acknowledged.
      if (number <= before) disorder += 1;
      acknowledged = Math.max(acknowledged, number);
      await Bun.sleep(random() * 4);
    }
  });
  const isDone = () => performance.now() > end + 300;
  const rules: Rule[] = ["safe number", "newest block", "pg_snapshot_xmax"];
  const [safe, newest, xmax] = await Promise.all(rules.map((rule) => countMissed(rule, postgres, isDone)));
  await Promise.all(writing);
  expect({ safe, disorder, seed }).toEqual({ safe: 0, disorder: 0, seed });
  expect(newest).toBeGreaterThan(0);
  expect(xmax).toBeGreaterThan(0);
  await Promise.all([postgres, ...pools].map((pool) => pool.close()));
}, 60_000);

test("it waits for a transaction that has a number, and for no rolled back one; before the first use it is low", async () => {
  const { postgres, url } = await createDatabase();
  const other = openPostgres(url, 1);
  const safe = new SafeNumber(postgres);
  const before = await safe.read();
  const isOpen = Promise.withResolvers<number>();
  const end = Promise.withResolvers<void>();
  const failing = other.transaction(async (t) => {
    const [row] = await t`SELECT flagkeep.take_numbers(1)::float8 AS number`;
    isOpen.resolve(row!.number);
    await end.promise;
    throw new Error("rolled back");
  });
  const number = await isOpen.promise;
  const later = await append(postgres, 0);
  expect(number).toBeGreaterThan(before);
  expect(later).toBeGreaterThan(number);
  expect(await safe.read()).toBe(before);
  end.resolve();
  await expect(failing).rejects.toThrow("rolled back");
  expect(await safe.read()).toBeGreaterThanOrEqual(later);
  await Promise.all([postgres.close(), other.close()]);
});

test("an idle reader uses no transaction IDs", async () => {
  const { postgres } = await createDatabase();
  await append(postgres, 0);
  const safe = new SafeNumber(postgres);
  await safe.read();
  const next = async () => {
    const [row] = await postgres.run(
      (sql) => sql`SELECT pg_snapshot_xmax(pg_current_snapshot())::text AS id`,
    );
    return row!.id;
  };
  const id = await next();
  for (let time = 0; time < 20; time++) await safe.read();
  expect(await next()).toBe(id);
  await postgres.close();
});

test("decreasing numbers are an error: the reader's position belongs to another history", async () => {
  const { postgres } = await createDatabase();
  for (let block = 0; block < 3; block++) await append(postgres, 0);
  const safe = new SafeNumber(postgres);
  await safe.read();
  await postgres.run((sql) => sql`SELECT setval('flagkeep.block', 2)`);
  await expect(safe.read()).rejects.toThrow("after it had assigned");
  await postgres.close();
});

describe("a transaction that holds loading back", () => {
  test("is named with its process, and a prepared one with its name, after 5 s", async () => {
    await using own = await startPostgres();
    await own.run("ALTER SYSTEM SET max_prepared_transactions = 5");
    await own.restart();
    const { postgres } = await createDatabase(own);
    const slow = new Postgres(postgres.address, { connections: 1, name: "slow" });
    const end = Promise.withResolvers<void>();
    const isOpen = Promise.withResolvers<number>();
    const open = slow.transaction(async (t) => {
      const [row] = await t`SELECT pg_backend_pid() AS pid, flagkeep.take_numbers(1)`;
      isOpen.resolve(row!.pid);
      await end.promise;
    });
    const pid = await isOpen.promise;
    expect(await readHeldBack(postgres)).toBeNull();
    const found = await until(async () => (await readHeldBack(postgres)) ?? undefined, "it is found");
    expect(found).toEqual({ pid, name: "flagkeep slow", seconds: expect.any(Number) });
    expect(found!.seconds).toBeGreaterThanOrEqual(5);
    expect(describeHeldBack(found!)).toContain(`process ${pid} (flagkeep slow)`);
    end.resolve();
    await open;
    expect(await readHeldBack(postgres)).toBeNull();
    const prepare = "BEGIN; SELECT pg_current_xact_id(); PREPARE TRANSACTION 'forgotten'";
    await slow.run((sql) => sql.unsafe(prepare));
    const prepared = await until(async () => (await readHeldBack(postgres)) ?? undefined, "it is found");
    expect(prepared).toMatchObject({ pid: null, name: "forgotten" });
    expect(describeHeldBack(prepared!)).toContain("the prepared transaction forgotten");
    await Promise.all([postgres.close(), slow.close()]);
  }, 60_000);
});
