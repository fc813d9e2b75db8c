/** Changes of persons are numbered in the order of their commits: readers ask for those after the last one they know. */

import { expect } from "bun:test";
import type { Postgres } from "../../src/cluster/connection.ts";
import { chooseLayout, type LoadingLayout } from "../../src/cluster/layout.ts";
import {
  acquirePartitions,
  type LoaderLease,
  partitionCount,
  readPartitions,
} from "../../src/cluster/partitions.ts";
import type { PartitionProgress } from "../../src/engine/partition-progress.ts";
import type { JournalItem } from "../../src/journal/entry.ts";
import type { IdentityStore } from "../../src/persons/batch.ts";
import { PersonStore } from "../../src/persons/store.ts";
import { identify, note, set, spikeSettings } from "../persons/support.ts";
import { createDatabase, usePostgres } from "../support/cluster-database.ts";
import { testWithPostgres } from "../support/postgres.ts";
import { until } from "../support/server.ts";
import { openClusterPersons, openReplica } from "./person-support.ts";

const test = testWithPostgres("the order of persons' changes");
usePostgres();

/** An engine without periodic tasks, which holds all partitions if engines load by partitions. */
async function startEngine(postgres: Postgres, loading: LoadingLayout) {
  await chooseLayout(postgres, { persons: "rows", loading });
  const db = await openReplica(postgres);
  const engine = await openClusterPersons(db, postgres);
  const progress = engine.progress as PartitionProgress | undefined;
  if (progress !== undefined) {
    const [loader] = (await readPartitions(postgres)).loaders;
    const lease = { id: loader!.id, assertHeld: async () => undefined } as unknown as LoaderLease;
    const all = Array.from({ length: partitionCount }, (_, id) => id);
    progress.change([], await acquirePartitions(postgres, lease, all));
    progress.startPhase();
  }
  return { engine, store: engine.around(new PersonStore(db, spikeSettings)) };
}

async function startStep(store: IdentityStore, ...items: JournalItem[]) {
  const step = await store.start("realtime");
  await step.add({ items, duplicates: [] });
  return () => step.commit(items.at(-1)!.seq);
}

/** Whether a transaction of another connection waits for a lock, and whether one has written persons. */
async function readActivity(postgres: Postgres) {
  const [row] = await postgres.run(
    (sql) => sql<{ isWaiting: boolean; hasWritten: boolean }[]>`
      SELECT EXISTS (SELECT 1 FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock') AS "isWaiting",
        EXISTS (SELECT 1 FROM pg_locks
          WHERE relation = 'flagkeep.distinct_id'::regclass AND mode = 'RowExclusiveLock') AS "hasWritten"`,
  );
  return row!;
}

for (const loading of ["single", "partitions"] as const)
  test(`changes of a step that waits for another node are numbered after that node's (${loading})`, async () => {
    const { postgres } = await createDatabase();
    const { engine, store } = await startEngine(postgres, loading);
    const commit = await startStep(
      store,
      set("ann", {}),
      set("kim", {}),
      set("anon-kim", {}),
      set("lee", {}),
    );
    await commit();
    const items = [
      set("new", { plan: "pro" }),
      identify("kim", "anon-kim"),
      set("ann", { plan: "pro" }),
      note({ kind: "person_deleted", details: { distinct_id: "lee" } }),
    ];
    const commitLater = await startStep(store, ...items);
    let commits: Promise<unknown> | undefined;
    const known = await postgres.transaction(async (t) => {
      await t`SELECT 1 FROM flagkeep.store WHERE name = 'people' FOR UPDATE`;
      commits = Promise.all([
        commitLater(),
        engine.rows!.writer.addCohortMembers(1, 7, { distinctIds: ["ann"] }),
      ]);
      const { hasWritten } = await until(async () => {
        const activity = await readActivity(postgres);
        return activity.isWaiting ? activity : undefined;
      }, "the step waits for this change");
      expect(hasWritten).toBe(loading === "partitions");
      const [row] = await t<{ id: number }[]>`
        INSERT INTO flagkeep.person_change (project_id, is_cached_only) VALUES (1, true) RETURNING change_id::float8 AS id`;
      return row!.id;
    });
    await commits;
    const { changes } = await engine.rows!.source.changesAfter(known);
    expect(
      changes.map((change) => (change.kind === "distinct_id" ? change.distinctId : change.kind)),
    ).toEqual(["anon-kim", "person_deleted", "person", "new", "lee", "person_deleted"]);
    // Changes of cohorts are read by nodes only.
    const cached = await postgres.run(
      (sql) => sql`SELECT 1 FROM flagkeep.person_change WHERE is_cached_only AND change_id > ${known}`,
    );
    expect(cached).toHaveLength(1);
    await engine.close();
    await postgres.close();
  });
