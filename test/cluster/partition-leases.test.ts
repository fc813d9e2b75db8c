/** Leases of partitions in PostgreSQL: which engine may commit, and the positions up to which it has loaded. */

import { expect, spyOn } from "bun:test";
import type { Postgres, Transaction } from "../../src/cluster/connection.ts";
import { JournalReader } from "../../src/cluster/journal-reader.ts";
import { chooseLayout } from "../../src/cluster/layout.ts";
import { LeaseLostError, leaseEnd, leaseMs } from "../../src/cluster/lease.ts";
import { countPartitions, pauseLoading, readLoading, resumeLoading } from "../../src/cluster/loading.ts";
import {
  acquirePartitions,
  deleteBlocks,
  lockPartitions,
  partitionCount,
  partitionOf,
  readLowestPosition,
  readPartitions,
  registerLoader,
  releasePartitions,
  renewLoader,
  requestPartitions,
  revokeLoader,
  unregisterLoader,
} from "../../src/cluster/partitions.ts";
import { PartitionProgress } from "../../src/engine/partition-progress.ts";
import type { JournalBatch } from "../../src/journal/reader.ts";
import { convertPersons } from "../../src/serve/persons-conversion.ts";
import { createDatabase, usePostgres } from "../support/cluster-database.ts";
import { testWithPostgres } from "../support/postgres.ts";
import { linesIn } from "../support/segments.ts";
import { temporaryFolder, until } from "../support/server.ts";

const test = testWithPostgres("leases of partitions");
const all = Array.from({ length: partitionCount }, (_, id) => id);

usePostgres();

const register = (postgres: Postgres) => registerLoader(postgres, crypto.randomUUID());

/** Stores a block of one entry per project. @returns the number of the first one */
async function append(postgres: Postgres, projects: readonly number[]): Promise<number> {
  const text = projects.map((id) => `"project_id":${id},"note":"warning"}\n`).join("");
  const body = Bun.zstdCompressSync(Buffer.from(text)) as Buffer;
  const [row] = await postgres.run(
    (sql) => sql`INSERT INTO flagkeep.journal (lane, first_seq, entries, size, body)
      VALUES ('realtime', flagkeep.take_numbers(${projects.length}), ${projects.length}, ${text.length}, ${body})
      RETURNING first_seq::float8 AS first`,
  );
  return row!.first;
}

test("an engine acquires free partitions, and a revoked one can neither renew nor commit", async () => {
  const { postgres } = await createDatabase();
  const one = await register(postgres);
  const other = await register(postgres);
  expect((await acquirePartitions(postgres, one, all)).length).toBe(64);
  expect(await acquirePartitions(postgres, other, all)).toEqual([]);
  const [seen] = (await readPartitions(postgres)).loaders.filter(({ id }) => id === one.id);
  await renewLoader(postgres, one);
  expect(leaseEnd(one)).toBeGreaterThan(performance.now() + leaseMs - 1_000);
  // It was renewed after it was read.
  expect(await revokeLoader(postgres, seen!)).toBe(false);
  const [now] = (await readPartitions(postgres)).loaders.filter(({ id }) => id === one.id);
  expect([await revokeLoader(postgres, now!), await revokeLoader(postgres, now!)]).toEqual([true, false]);
  await expect(renewLoader(postgres, one)).rejects.toThrow(LeaseLostError);
  await expect(postgres.transaction((t) => one.assertHeld(t))).rejects.toThrow(LeaseLostError);
  await expect(postgres.transaction((t) => lockPartitions(t, one, all))).rejects.toThrow(LeaseLostError);
  await expect(acquirePartitions(postgres, one, all)).rejects.toThrow(LeaseLostError);
  expect((await acquirePartitions(postgres, other, all)).length).toBe(64);
  await postgres.close();
});

test("a transaction of an engine delays its revocation, not its renewal", async () => {
  const { postgres } = await createDatabase();
  const lease = await register(postgres);
  const revoke = async () => await revokeLoader(postgres, (await readPartitions(postgres)).loaders[0]!);
  await postgres.transaction(async (t) => {
    await lease.assertHeld(t);
    await renewLoader(postgres, lease);
    // It does not wait for long: other engines may have to be revoked.
    expect(await revoke()).toBe(false);
  });
  expect(await revoke()).toBe(true);
  await postgres.close();
});

test("an engine that hangs in a transaction of its partitions blocks the others only briefly", async () => {
  const { postgres } = await createDatabase();
  const limits: string[] = [];
  const assertHeld = async (t: Transaction) => {
    const [row] = await t`SELECT current_setting('idle_in_transaction_session_timeout') AS "limit"`;
    limits.push(row!.limit);
  };
  const lease = { ...(await register(postgres)), assertHeld };
  const progress = new PartitionProgress(lease);
  progress.change([], await acquirePartitions(postgres, lease, [1]));
  progress.committed("realtime", 5_000);
  await progress.flush(postgres);
  expect(limits).toEqual(["4s", "4s"]);
  await postgres.close();
});

test("a new engine of a node replaces the earlier one, and an engine that exits releases all partitions", async () => {
  const { postgres } = await createDatabase();
  const node = crypto.randomUUID();
  const earlier = await registerLoader(postgres, node);
  await acquirePartitions(postgres, earlier, all);
  const lease = await registerLoader(postgres, node);
  await expect(renewLoader(postgres, earlier)).rejects.toThrow(LeaseLostError);
  expect((await acquirePartitions(postgres, lease, all)).length).toBe(64);
  await unregisterLoader(postgres, lease);
  const { loaders, partitions } = await readPartitions(postgres);
  expect([loaders, partitions.filter(({ holder }) => holder !== null)]).toEqual([[], []]);
  await postgres.close();
});

test("a partition that was just moved is not requested, and a requested one is released for that engine", async () => {
  const { postgres } = await createDatabase();
  const one = await register(postgres);
  const other = await register(postgres);
  await acquirePartitions(postgres, one, [1, 2, 3]);
  await postgres.run((sql) => sql`UPDATE flagkeep.partition SET moved_at = '-infinity' WHERE id <> 2`);
  await requestPartitions(postgres, other, [1, 2, 4]);
  const getWanted = async () =>
    (await readPartitions(postgres)).partitions
      .filter(({ wanted }) => wanted === other.id)
      .map(({ id, holder }) => [id, holder]);
  expect(await getWanted()).toEqual([[1, one.id]]);
  await releasePartitions(postgres, one, [1, 4]);
  expect(await getWanted()).toEqual([[1, null]]);
  await postgres.close();
});

test("while loading is paused no partition is acquired, and a pause waits until all are released", async () => {
  const { postgres } = await createDatabase();
  const lease = await register(postgres);
  await acquirePartitions(postgres, lease, [7]);
  const pausing = pauseLoading(postgres, 600);
  await until(async () => (await readPartitions(postgres)).isPaused, "loading is paused");
  const queries = spyOn(postgres, "run");
  await until(() => queries.mock.calls.length > 10, "the pause reads the holders several times");
  queries.mockRestore();
  await releasePartitions(postgres, lease, [7]);
  await pausing;
  expect(await acquirePartitions(postgres, lease, [7])).toEqual([]);
  await resumeLoading(postgres);
  expect((await acquirePartitions(postgres, lease, [7])).length).toBe(1);
  await postgres.close();
});

test("nodes count the partitions that no engine loads", async () => {
  const { postgres } = await createDatabase();
  const lease = await register(postgres);
  await acquirePartitions(postgres, lease, [1, 2]);
  expect(await countPartitions(postgres)).toEqual({ all: 0, unheld: 0 });
  await postgres.run((sql) => sql`UPDATE flagkeep.layout SET loading = 'partitions'`);
  expect(await countPartitions(postgres)).toEqual({ all: 64, unheld: 62 });
  await postgres.run(
    (sql) => sql`UPDATE flagkeep.loader SET beat_at = clock_timestamp() - interval '6 seconds'`,
  );
  const { partitions } = await readLoading(postgres);
  expect(partitions).toEqual({ all: 64, unheld: 64 });
  await postgres.close();
});

test("an engine reads entries of its partitions, after the position of each", async () => {
  const { postgres } = await createDatabase();
  const first = await append(postgres, [1, 2, 65, 3]);
  const second = await append(postgres, [2, 1]);
  await append(postgres, [3, 3]);
  const lease = await register(postgres);
  await postgres.run(
    (sql) => sql`UPDATE flagkeep.partition SET applied_realtime = ${first + 2},
    loaded_realtime = ${first + 2} WHERE id = 1`,
  );
  const progress = new PartitionProgress(lease);
  progress.change([], await acquirePartitions(postgres, lease, [1, 2]));
  progress.startPhase();
  const batches: JournalBatch[] = [];
  let isIdle = false;
  const deps = {
    offer: (some: readonly JournalBatch[]) => void batches.push(...some),
    waitingBytes: () => 0,
    onFailure: (error: unknown) => {
      throw error;
    },
  };
  const reader = new JournalReader(
    postgres,
    { realtime: 0, historical: 0 },
    deps,
    progress.filter(() => isIdle),
  );
  reader.start();
  await until(() => batches.length > 0, "a batch is read");
  const texts = await Promise.all(batches.map((batch) => batch.text()));
  const entries = texts.flatMap(({ bytes }) => linesIn(bytes)).map((line) => JSON.parse(line));
  expect(entries.map(({ seq, project_id }) => [seq, project_id])).toEqual([
    [first + 1, 2],
    [second, 2],
    [second + 1, 1],
  ]);
  // A block without any of its entries only advances the position, unless a step is in progress.
  isIdle = true;
  const skipped = await append(postgres, [3]);
  await until(() => progress.cursor("realtime") === skipped, "the block is skipped");
  expect(batches.length).toBe(1);
  await reader.stop();
  await progress.flush(postgres);
  const [row] = await postgres.run(
    (sql) => sql`SELECT count(*)::int AS count FROM flagkeep.partition
      WHERE applied_realtime = ${skipped} AND loaded_realtime = ${skipped}`,
  );
  expect(row!.count).toBe(2);
  const deleteLoaded = async () => {
    const { realtime, historical } = await readLowestPosition(postgres);
    await deleteBlocks(postgres, { realtime: realtime.loaded, historical: historical.loaded });
  };
  // Other partitions have not loaded anything.
  await deleteLoaded();
  expect((await postgres.run((sql) => sql`SELECT 1 FROM flagkeep.journal`)).length).toBe(4);
  await postgres.run(
    (sql) =>
      sql`UPDATE flagkeep.partition SET applied_realtime = ${skipped}, loaded_realtime = ${second + 1}`,
  );
  await deleteLoaded();
  expect((await postgres.run((sql) => sql`SELECT 1 FROM flagkeep.journal`)).length).toBe(2);
  await postgres.close();
});

test("the position of a step is committed once, by the holder of the partitions only", async () => {
  const { postgres } = await createDatabase();
  const lease = await register(postgres);
  const progress = new PartitionProgress(lease);
  progress.change([], await acquirePartitions(postgres, lease, [1, 2]));
  progress.startPhase();
  const commit = (last: number) =>
    postgres.transaction(async (t) => {
      if (!(await progress.lock(t, "realtime", last))) return false;
      await progress.write(t, "realtime", last);
      return true;
    });
  // The response to the first one was lost.
  expect([await commit(5_000), await commit(5_000)]).toEqual([true, false]);
  progress.committed("realtime", 5_000);
  expect([progress.cursor("realtime"), progress.loaded.realtime, progress.openBatches().length]).toEqual([
    5_000, 0, 1,
  ]);
  // Acquired by a transaction that the engine does not know to be committed.
  await acquirePartitions(postgres, lease, [3]);
  expect(await commit(5_500)).toBe(true);
  progress.committed("realtime", 5_500);
  await releasePartitions(postgres, lease, [2]);
  await expect(commit(6_000)).rejects.toThrow(LeaseLostError);
  await postgres.close();
});

test("positions are written when the earlier write of them has ended, also if that failed", async () => {
  const { postgres } = await createDatabase();
  const registered = await register(postgres);
  const answer = Promise.withResolvers<void>();
  let isStarted = false;
  const assertHeld = async () => {
    isStarted = true;
    await answer.promise;
  };
  const lease = { ...registered, assertHeld };
  const progress = new PartitionProgress(lease);
  progress.change([], await acquirePartitions(postgres, registered, [1]));
  progress.committed("realtime", 5_000);
  const periodic = progress.flush(postgres);
  await until(() => isStarted, "the positions are being written");
  // Before the partition is released.
  const last = progress.flush(postgres);
  lease.assertHeld = async () => undefined;
  answer.reject(new Error("no answer"));
  await expect(periodic).rejects.toThrow("no answer");
  await last;
  const [row] = await postgres.run(
    (sql) => sql`SELECT applied_realtime::int AS applied FROM flagkeep.partition WHERE id = 1`,
  );
  expect(row!.applied).toBe(5_000);
  await postgres.close();
});

test("an open batch of another engine is completed up to its last entry, by the engine of each partition", async () => {
  const { postgres } = await createDatabase();
  const lease = await register(postgres);
  await postgres.run(
    (sql) => sql`UPDATE flagkeep.partition SET
    applied_realtime = CASE id WHEN 1 THEN 9000 ELSE 5000 END, loaded_realtime = 5000`,
  );
  const progress = new PartitionProgress(lease);
  progress.change([], await acquirePartitions(postgres, lease, [1, 2]));
  const [batch, ...others] = progress.openBatches();
  expect([batch, others]).toEqual([{ lane: "realtime", last: 9_000, partitions: new Set([1]) }, []]);
  progress.startPhase(batch);
  const { includes, only } = progress.filter(() => true);
  expect(only).toMatchObject({ lane: "realtime", last: 9_000 });
  const isIncluded = (projectId: number, seq: number) => includes("realtime", projectId, seq);
  expect([isIncluded(1, 5_000), isIncluded(1, 5_001), isIncluded(1, 9_000), isIncluded(1, 9_001)]).toEqual([
    false,
    true,
    true,
    false,
  ]);
  expect(isIncluded(2, 5_001)).toBe(false);
  expect(progress.isUnfinished({ projectId: 1, lane: "realtime", seq: 8_000 })).toBe(true);
  expect(progress.isUnfinished({ projectId: 2, lane: "realtime", seq: 8_000 })).toBe(true);
  const name = progress.batchName;
  progress.finish("realtime", 9_000);
  await progress.flush(postgres);
  progress.startPhase();
  expect(progress.batchName).not.toBe(name);
  expect([progress.cursor("realtime"), progress.openBatches()]).toEqual([5_000, []]);
  const rows = await postgres.run(
    (sql) =>
      sql`SELECT loaded_realtime::int AS loaded FROM flagkeep.partition WHERE id IN (1, 2) ORDER BY id`,
  );
  expect(rows.map(({ loaded }) => loaded)).toEqual([9_000, 5_000]);
  await postgres.close();
});

test("loading by partitions is chosen for a new cluster, and requires persons as rows", async () => {
  const { postgres } = await createDatabase();
  const code = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (error) => error.code,
    );
  expect(await code(chooseLayout(postgres, { loading: "partitions" }))).toBe("partitions_need_rows");
  expect(await chooseLayout(postgres, { persons: "rows", loading: "partitions" })).toEqual({
    persons: "rows",
    loading: "partitions",
  });
  await postgres.run(
    (sql) =>
      sql`INSERT INTO flagkeep.store (name, schema_version, revision) VALUES ('people', 1, 0), ('metadata', 1, 1)`,
  );
  expect(await chooseLayout(postgres, {})).toEqual({ persons: "rows", loading: "partitions" });
  expect(await code(chooseLayout(postgres, { loading: "single" }))).toBe("loading_layout");
  const ignore = () => undefined;
  const conversion = { dataDir: temporaryFolder(), to: "replica", onStep: ignore, onRows: ignore } as const;
  expect(await code(convertPersons(postgres.address, conversion))).toBe("partitions_need_rows");
  await postgres.close();
});

test("projects are spread over partitions by their ids", () => {
  expect([1, 63, 64, 65].map(partitionOf)).toEqual([1, 63, 0, 1]);
});
