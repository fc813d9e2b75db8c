/** Changes of an engine's partitions: no entry of its previous partitions is loaded, and every partition is loaded or released. */

import { expect } from "bun:test";
import type { Postgres } from "../../src/cluster/connection.ts";
import { acquirePartitions, partitionCount, readPartitions } from "../../src/cluster/partitions.ts";
import { PartitionedLoading, type PipelinePort } from "../../src/engine/partitioned-loading.ts";
import { createDatabase, usePostgres } from "../support/cluster-database.ts";
import { testWithPostgres } from "../support/postgres.ts";
import { until } from "../support/server.ts";
import { append } from "./journal-support.ts";

const test = testWithPostgres("changes of partitions");
usePostgres();

const fail = (error: unknown) => {
  throw error;
};

const open = (postgres: Postgres) =>
  PartitionedLoading.open(postgres, crypto.randomUUID(), {
    settle: async () => undefined,
    assertNotAhead: async () => undefined,
    onChanged: () => undefined,
    onFatal: fail,
  });

/** A pipeline that loads nothing. */
const idle: PipelinePort = {
  offer: () => undefined,
  waitingBytes: () => 0,
  isIdle: () => true,
  discard: () => undefined,
  settle: async () => undefined,
  reload: () => undefined,
};

async function holdsAll({ progress }: PartitionedLoading): Promise<void> {
  await until(() => progress.partitions.length === partitionCount, "the engine holds all partitions");
}

async function close(postgres: Postgres, engines: readonly PartitionedLoading[]): Promise<void> {
  for (const engine of engines) {
    await engine.stop(10_000);
    await engine.release({ isLoaded: true });
  }
  await postgres.close();
}

test("batches that a step requeues are discarded before the partitions change, and the engine reports the change until it ends", async () => {
  const { postgres } = await createDatabase();
  const engine = await open(postgres);
  const pending: string[] = [];
  let pendingAtChange: string[] | undefined;
  let isChanging: boolean | undefined;
  engine.start({
    ...idle,
    discard: () => void pending.splice(0),
    // Disk space was short: a part of the batch was loaded.
    settle: async () => void pending.push("the rest of a batch"),
    reload: () => {
      pendingAtChange = [...pending];
      isChanging = engine.isChanging;
    },
  });
  await holdsAll(engine);
  expect({ pendingAtChange, isChanging }).toEqual({ pendingAtChange: [], isChanging: true });
  await until(() => !engine.isChanging, "the engine loads");
  await close(postgres, [engine]);
});

test("an engine stops in time although its step does not end", async () => {
  const { postgres } = await createDatabase();
  const engine = await open(postgres);
  let isHanging = false;
  engine.start({
    ...idle,
    settle: () => (isHanging ? Promise.withResolvers<void>().promise : Promise.resolve()),
  });
  await holdsAll(engine);
  await until(() => !engine.isChanging, "the engine loads");
  isHanging = true;
  expect(await engine.stop(10)).toBe(false);
  expect(engine.isChanging).toBe(true);
  isHanging = false;
  expect(await engine.stop(10_000)).toBe(true);
  await close(postgres, []);
});

const all = Array.from({ length: partitionCount }, (_, id) => id);

test("partitions whose acquisition was committed after its timeout are loaded, and released", async () => {
  const { postgres } = await createDatabase();
  const engine = await open(postgres);
  // The transaction that timed out is committed later, and all retries find nothing free.
  await acquirePartitions(postgres, engine.lease, all);
  engine.start(idle);
  await holdsAll(engine);
  engine.progress.change([7], []);
  await postgres.run((sql) => sql`UPDATE flagkeep.lease SET paused_until = 'infinity'`);
  await until(
    async () => (await readPartitions(postgres)).partitions.every(({ holder }) => holder === null),
    "a pause releases everything",
  );
  await close(postgres, [engine]);
});

test("engines have caught up when all partitions have applied the entries that were pending before", async () => {
  const { postgres } = await createDatabase();
  const engine = await open(postgres);
  // Entries pending before the first call are unknown.
  expect([await engine.isCaughtUp(), await engine.isCaughtUp()]).toEqual([false, true]);
  const last = await append(postgres, 0);
  const apply = (which: number) =>
    postgres.run(
      (sql) => sql`UPDATE flagkeep.partition SET applied_realtime = ${last} WHERE id % 2 = ${which}`,
    );
  await apply(0);
  expect([await engine.isCaughtUp(), await engine.isCaughtUp()]).toEqual([true, false]);
  await apply(1);
  expect(await engine.isCaughtUp()).toBe(true);
  await close(postgres, [engine]);
});
