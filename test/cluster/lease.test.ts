/** The lease of the loading node: who acquires it, when, and that no clock of PostgreSQL matters. */

import { describe, expect, test as unitTest } from "bun:test";
import { Postgres } from "../../src/cluster/connection.ts";
import { recordConversion } from "../../src/cluster/layout.ts";
import {
  acquireLease,
  assertLeaseHeld,
  expiredMs,
  fenceLease,
  LeaseLostError,
  LeaseObserver,
  LeaseObservers,
  leaseEnd,
  leaseMs,
  readLease,
  releaseLease,
  renewLease,
  revokeLease,
} from "../../src/cluster/lease.ts";
import { createDatabase, server, untilLockAwaited, usePostgres } from "../support/cluster-database.ts";
import { testWithPostgres } from "../support/postgres.ts";
import { openClusterPersons, openReplica } from "./person-support.ts";

const test = testWithPostgres("the lease");
usePostgres();

const getEngine = (node = crypto.randomUUID()) => ({ node, holder: crypto.randomUUID() });

/** Reads the lease at a time of a candidate's clock. */
class Candidate {
  private nowMs = 0;
  private readonly observer = new LeaseObserver(expiredMs, () => this.nowMs);
  constructor(private readonly postgres: Postgres) {}

  async seesExpiredAt(nowMs: number): Promise<boolean> {
    this.nowMs = nowMs;
    return this.observer.isExpired(await readLease(this.postgres));
  }
}

/** Lets the clock that statements of this database read be wrong by so much. */
async function setClock(database: string, interval: string): Promise<void> {
  for (const statement of [
    "CREATE SCHEMA IF NOT EXISTS wrong",
    `CREATE OR REPLACE FUNCTION wrong.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS
       $$ SELECT pg_catalog.clock_timestamp() + interval '${interval}' $$`,
    `ALTER DATABASE ${database} SET search_path = wrong, pg_catalog`,
  ])
    await server.run(statement, database);
}

test("a released lease is acquired immediately, a held one only by the same node", async () => {
  const { postgres } = await createDatabase();
  const engine = getEngine();
  const first = (await acquireLease(postgres, engine))!;
  expect(await acquireLease(postgres, getEngine())).toBeUndefined();
  // The node has started another engine: the first one has ended, as it holds the lock of the data directory.
  const second = (await acquireLease(postgres, getEngine(engine.node)))!;
  expect(second.epoch).toBe(first.epoch + 1);
  await expect(renewLease(postgres, first)).rejects.toThrow(LeaseLostError);
  await releaseLease(postgres, second);
  expect(leaseEnd(second)).toBe(Number.NEGATIVE_INFINITY);
  expect(await acquireLease(postgres, getEngine())).toBeDefined();
  await expect(postgres.run((sql) => assertLeaseHeld(sql, second))).rejects.toThrow(LeaseLostError);
  await postgres.close();
});

test("an engine that stops releases the lease although PostgreSQL is slow", async () => {
  const { postgres } = await createDatabase();
  const persons = await openClusterPersons(await openReplica(postgres), postgres);
  await persons.settle();
  expect((await readLease(postgres)).isHeld).toBe(true);
  const isLocked = Promise.withResolvers<void>();
  const slow = postgres.transaction(async (t) => {
    await t`SELECT 1 FROM flagkeep.lease FOR UPDATE`;
    isLocked.resolve();
    await t`SELECT pg_sleep(2)`;
  });
  await isLocked.promise;
  await persons.stop(() => 0);
  expect((await readLease(postgres)).isHeld).toBe(false);
  await slow;
  await persons.close();
  await postgres.close();
});

test("a conversion of persons ends the lease, and no engine acquires it before the conversion has ended", async () => {
  const { postgres, database } = await createDatabase();
  const engine = getEngine();
  const lease = (await acquireLease(postgres, engine))!;
  const other = new Postgres(postgres.address, { connections: 1, name: "conversion" });
  const isRecorded = Promise.withResolvers<void>();
  const isWaiting = Promise.withResolvers<void>();
  const recorded = other.transaction(async (t) => {
    await recordConversion(t, { id: "1", to: "rows", source: "0", position: null });
    await fenceLease(t);
    isRecorded.resolve();
    await isWaiting.promise;
  });
  await isRecorded.promise;
  // Read before the conversion is committed, and waits for the row.
  const acquired = acquireLease(postgres, getEngine(engine.node));
  await untilLockAwaited(database);
  isWaiting.resolve();
  await recorded;
  expect(await acquired).toBeUndefined();
  await expect(renewLease(postgres, lease)).rejects.toThrow(LeaseLostError);
  expect(await acquireLease(postgres, getEngine(engine.node))).toBeUndefined();
  // Followers wait, and do not restart for it.
  expect(await readLease(postgres)).toMatchObject({ isHeld: false, isPaused: true });
  await other.run((sql) => recordConversion(sql, undefined));
  expect(await readLease(postgres)).toMatchObject({ isHeld: false, isPaused: false });
  expect(await acquireLease(postgres, getEngine(engine.node))).toBeDefined();
  await Promise.all([postgres.close(), other.close()]);
});

test("a candidate revokes a lease that was unchanged for 5.5 s of its own clock, and never a renewed one", async () => {
  const { postgres } = await createDatabase();
  const lease = (await acquireLease(postgres, getEngine()))!;
  const candidate = new Candidate(postgres);
  expect(await candidate.seesExpiredAt(100_000)).toBe(false);
  expect(await candidate.seesExpiredAt(100_000 + expiredMs - 1)).toBe(false);
  await renewLease(postgres, lease);
  expect(await candidate.seesExpiredAt(100_000 + expiredMs)).toBe(false);
  const seen = await readLease(postgres);
  expect(await candidate.seesExpiredAt(100_000 + 2 * expiredMs)).toBe(true);
  // A commit of the holder renews it as well: the candidate was suspended after it had read.
  await postgres.transaction((t) => assertLeaseHeld(t, lease));
  expect(await revokeLease(postgres, seen)).toBe(false);
  const { isPaused } = await postgres.run((sql) => assertLeaseHeld(sql, lease));
  expect(isPaused).toBe(false);
  // It is unchanged now, and one of two candidates revokes it.
  const last = await readLease(postgres);
  expect([await revokeLease(postgres, last), await revokeLease(postgres, last)]).toEqual([true, false]);
  await expect(renewLease(postgres, lease)).rejects.toThrow(LeaseLostError);
  await postgres.close();
});

describe("the clock of PostgreSQL is wrong by an hour, as after a failover", () => {
  for (const interval of ["-1 hour", "1 hour"])
    test(`(${interval}): the holder keeps the lease, and a dead one loses it in time`, async () => {
      const { postgres, database } = await createDatabase();
      const lease = (await acquireLease(postgres, getEngine()))!;
      await setClock(database, interval);
      // Connections have the clock from their start.
      const later = new Postgres(postgres.address, { connections: 2, name: "later" });
      const [row] = await later.run(
        (sql) => sql`SELECT abs(extract(epoch FROM clock_timestamp() - now()))::int AS seconds`,
      );
      expect(row!.seconds).toBeGreaterThan(3_500);
      const candidate = new Candidate(later);
      expect(await candidate.seesExpiredAt(0)).toBe(false);
      expect(await acquireLease(later, getEngine())).toBeUndefined();
      await renewLease(later, lease);
      expect(await candidate.seesExpiredAt(expiredMs)).toBe(false);
      expect(await candidate.seesExpiredAt(2 * expiredMs)).toBe(true);
      expect(await revokeLease(later, await readLease(later))).toBe(true);
      expect(await acquireLease(later, getEngine())).toBeDefined();
      await Promise.all([postgres.close(), later.close()]);
    });
});

test("the engine of an earlier version loses the lease with the migration, and acquires none", async () => {
  const { postgres, database } = await createDatabase();
  await server.run("UPDATE flagkeep.lease SET holder = gen_random_uuid(), epoch = 7", database);
  const migration = new URL("../../src/cluster/migrations/004-lease-beat.sql", import.meta.url);
  const statements = (await Bun.file(migration).text()).split(";").filter((each) => each.includes("UPDATE"));
  expect(statements.length).toBe(1);
  await server.run(statements[0]!, database);
  const acquired = await server.run(
    "UPDATE flagkeep.lease SET epoch = epoch + 1 WHERE until < clock_timestamp() RETURNING 1",
    database,
  );
  const renewed = await server.run("SELECT 1 FROM flagkeep.lease WHERE epoch = 7", database);
  expect([acquired, renewed]).toEqual([[], []]);
  expect(await acquireLease(postgres, getEngine())).toBeDefined();
  await postgres.close();
});

unitTest(
  "after an outage of PostgreSQL, in which nothing can be renewed, no lease is expired at once",
  () => {
    let nowMs = 0;
    const observers = new LeaseObservers(expiredMs, () => nowMs);
    const isExpiredAt = (atMs: number) => {
      nowMs = atMs;
      observers.recordRead();
      return observers.isExpired("other", { epoch: "1", beat: "1", isHeld: true });
    };
    expect([isExpiredAt(0), isExpiredAt(expiredMs), isExpiredAt(expiredMs + 1_000)]).toEqual(
      Array(3).fill(false),
    );
    const readEveryMs = 1_000;
    const expired: number[] = [];
    for (let atMs = 2 * expiredMs; atMs <= 4 * expiredMs; atMs += readEveryMs)
      if (isExpiredAt(atMs)) expired.push(atMs);
    expect(expired[0]).toBe(3 * expiredMs + readEveryMs / 2);
  },
);

unitTest(
  "a lease ends by the wall clock too: the other one stands still while a machine is suspended",
  () => {
    const monotonicMs = performance.now();
    const at = (wallMs: number) => leaseEnd({ renewedAt: { monotonicMs, wallMs } });
    expect(at(Date.now())).toBeGreaterThan(performance.now() + leaseMs - 1_000);
    expect(at(Date.now() - 60_000)).toBeLessThan(performance.now());
    // A clock that was set back does not extend it.
    expect(at(Date.now() + 60_000)).toBeLessThanOrEqual(monotonicMs + leaseMs + 1);
  },
);
