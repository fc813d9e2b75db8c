/**
 * Loading by several engines: each of 64 partitions of the projects is loaded by one engine at a time, so a project's
 * events are applied in order. An engine registers as a loader and renews its row; another one that has seen the row
 * unchanged for long enough deletes it, which fences off all commits of that engine.
 */

import { type Lane, lanes } from "../journal/segment.ts";
import { ChangeInProgressError, lockingIdleMsMax, type Postgres, type Transaction } from "./connection.ts";
import {
  type ClockReading,
  type CommitFence,
  expiredMs,
  LeaseLostError,
  readClocks,
  selectLease,
} from "./lease.ts";

export const partitionCount = 64;
/** A partition that was moved stays for this long, unless its engine ends. */
const settledSeconds = 10;
/** How long a revocation waits for a transaction of the engine. */
const revokeMs = 1_000;
/** Timeout of deleting loaded blocks. */
const deleteMs = 30_000;

/** The partition of a project. Ids are consecutive, so projects are spread evenly. */
export const partitionOf = (projectId: number): number => projectId % partitionCount;

/** Per lane, the last number that persons (`applied`) and the event store (`loaded`) contain. */
export interface LanePosition {
  applied: number;
  loaded: number;
}

export interface PartitionPosition {
  id: number;
  realtime: LanePosition;
  historical: LanePosition;
}

/** An engine that loads partitions. */
export interface LoaderLease extends CommitFence {
  readonly id: string;
  readonly node: string;
  /** Before the last successful renewal was sent; undefined once it is released. */
  renewedAt: ClockReading | undefined;
}

/** Runs a transaction that locks partitions: an engine that hangs in it blocks the others only briefly. @throws {PostgresUnreachableError} */
export async function lockingTransaction<Result>(
  postgres: Postgres,
  work: (t: Transaction) => Promise<Result>,
): Promise<Result> {
  return await postgres.transaction(work, undefined, lockingIdleMsMax);
}

/**
 * Registers an engine. Partitions of an earlier engine of the node, which has ended, are released.
 * @throws {PostgresUnreachableError}
 */
export async function registerLoader(postgres: Postgres, node: string): Promise<LoaderLease> {
  const id = crypto.randomUUID();
  const renewedAt = readClocks();
  await lockingTransaction(postgres, async (t) => {
    const earlier = await t`DELETE FROM flagkeep.loader WHERE node = ${node} RETURNING id`;
    for (const loader of earlier) await releaseAll(t, loader.id);
    await t`INSERT INTO flagkeep.loader (id, node) VALUES (${id}, ${node})`;
  });
  return { id, node, renewedAt, assertHeld: (t) => assertRegistered(t, id) };
}

/** @throws {LeaseLostError} */
async function assertRegistered(t: Transaction, id: string): Promise<void> {
  // Delays deletions of the row, but no renewals.
  const rows = await t`SELECT 1 FROM flagkeep.loader WHERE id = ${id} FOR KEY SHARE`;
  if (rows.length === 0) throw new LeaseLostError();
}

/** @throws {LeaseLostError} @throws {PostgresUnreachableError} */
export async function renewLoader(postgres: Postgres, lease: LoaderLease): Promise<void> {
  const renewedAt = readClocks();
  const rows = await postgres.run(
    (sql) => sql`UPDATE flagkeep.loader SET beat = beat + 1, beat_at = clock_timestamp()
      WHERE id = ${lease.id} RETURNING 1`,
    expiredMs,
  );
  if (rows.length === 0) throw new LeaseLostError();
  lease.renewedAt = renewedAt;
}

/** Releases everything that an engine holds. @throws {PostgresUnreachableError} */
export async function unregisterLoader(postgres: Postgres, lease: LoaderLease): Promise<void> {
  lease.renewedAt = undefined;
  await lockingTransaction(postgres, async (t) => {
    await t`DELETE FROM flagkeep.loader WHERE id = ${lease.id}`;
    await releaseAll(t, lease.id);
  });
}

export interface SeenLoader {
  id: string;
  beat: string;
}

export interface SeenPartition {
  id: number;
  holder: string | null;
  wanted: string | null;
  /** Whether it may be moved again. */
  isSettled: boolean;
}

export interface PartitionState {
  loaders: SeenLoader[];
  partitions: SeenPartition[];
  isPaused: boolean;
}

/** @throws {PostgresUnreachableError} */
export async function readPartitions(postgres: Postgres): Promise<PartitionState> {
  return await postgres.run(async (sql) => {
    const loaders = await sql<SeenLoader[]>`SELECT id, beat::text FROM flagkeep.loader ORDER BY id`;
    const partitions = await sql<SeenPartition[]>`
      SELECT id, holder, wanted,
        moved_at < clock_timestamp() - ${settledSeconds} * interval '1 second' AS "isSettled"
      FROM flagkeep.partition ORDER BY id`;
    const { isPaused } = await selectLease(sql);
    return { loaders: [...loaders], partitions: [...partitions], isPaused };
  });
}

/**
 * Deletes an engine that does not renew its lease, and releases its partitions.
 * @returns false if it was renewed meanwhile, because this process may have been suspended since it read the beat, or
 *   one of its transactions has not ended
 * @throws {PostgresUnreachableError}
 */
export async function revokeLoader(postgres: Postgres, { id, beat }: SeenLoader): Promise<boolean> {
  try {
    return await lockingTransaction(postgres, async (t) => {
      await t.unsafe(`SET LOCAL lock_timeout = ${revokeMs}`);
      const rows = await t`DELETE FROM flagkeep.loader WHERE id = ${id} AND beat = ${beat} RETURNING 1`;
      if (rows.length === 0) return false;
      await releaseAll(t, id);
      return true;
    });
  } catch (error) {
    if (error instanceof ChangeInProgressError) return false;
    throw error;
  }
}

async function releaseAll(t: Transaction, holder: string): Promise<void> {
  await t`UPDATE flagkeep.partition SET holder = NULL, epoch = epoch + 1 WHERE id IN (
    SELECT id FROM flagkeep.partition WHERE holder = ${holder} ORDER BY id FOR NO KEY UPDATE)`;
}

const idList = (ids: Iterable<number>) => `{${[...ids].join(",")}}`;

/**
 * Acquires free partitions unless loading is paused; may be repeated. @returns the positions of those acquired
 * @throws {PostgresUnreachableError}
 */
export async function acquirePartitions(
  postgres: Postgres,
  lease: LoaderLease,
  ids: readonly number[],
): Promise<PartitionPosition[]> {
  return await lockingTransaction(postgres, async (t) => {
    // A pause that starts now waits for this transaction.
    await t`SELECT 1 FROM flagkeep.lease FOR SHARE`;
    if ((await selectLease(t)).isPaused) return [];
    await lease.assertHeld(t);
    const rows = await t<PositionRow[]>`
      UPDATE flagkeep.partition SET holder = ${lease.id}, wanted = NULL, epoch = epoch + 1, moved_at = clock_timestamp()
      WHERE id IN (SELECT id FROM flagkeep.partition WHERE id = ANY(${idList(ids)}::text::int[]) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED)
        AND (holder IS NULL OR holder = ${lease.id} OR holder NOT IN (SELECT id FROM flagkeep.loader))
      RETURNING ${t.unsafe(positionColumns)}`;
    return rows.map(toPosition);
  });
}

interface PositionRow {
  id: number;
  ar: number;
  lr: number;
  ah: number;
  lh: number;
}

const positionColumns = `id, applied_realtime::float8 AS ar, loaded_realtime::float8 AS lr,
  applied_historical::float8 AS ah, loaded_historical::float8 AS lh`;

const toPosition = ({ id, ar, lr, ah, lh }: PositionRow): PartitionPosition => ({
  id,
  realtime: { applied: ar, loaded: lr },
  historical: { applied: ah, loaded: lh },
});

/** Releases partitions for the engines that want them. @throws {PostgresUnreachableError} */
export async function releasePartitions(
  postgres: Postgres,
  lease: LoaderLease,
  ids: readonly number[],
): Promise<void> {
  await postgres.run(
    (sql) => sql`UPDATE flagkeep.partition SET holder = NULL, epoch = epoch + 1 WHERE id IN (
      SELECT id FROM flagkeep.partition WHERE holder = ${lease.id} AND id = ANY(${idList(ids)}::text::int[])
      ORDER BY id FOR NO KEY UPDATE)`,
  );
}

/** Asks the holders of partitions to hand them over. @throws {PostgresUnreachableError} */
export async function requestPartitions(
  postgres: Postgres,
  lease: LoaderLease,
  ids: readonly number[],
): Promise<void> {
  await postgres.run(
    (sql) => sql`UPDATE flagkeep.partition SET wanted = ${lease.id} WHERE id IN (
      SELECT id FROM flagkeep.partition WHERE id = ANY(${idList(ids)}::text::int[]) AND holder IS NOT NULL
        AND (wanted IS NULL OR wanted NOT IN (SELECT id FROM flagkeep.loader))
        AND moved_at < clock_timestamp() - ${settledSeconds} * interval '1 second'
      ORDER BY id FOR NO KEY UPDATE)`,
  );
}

/**
 * Locks partitions of an engine until the transaction ends. @returns their positions
 * @throws {LeaseLostError} it does not hold all of them
 */
export async function lockPartitions(
  t: Transaction,
  lease: LoaderLease,
  ids: readonly number[],
): Promise<PartitionPosition[]> {
  const rows = await t<PositionRow[]>`
    SELECT ${t.unsafe(positionColumns)} FROM flagkeep.partition
    WHERE holder = ${lease.id} AND id = ANY(${idList(ids)}::text::int[]) ORDER BY id FOR NO KEY UPDATE`;
  if (rows.length !== ids.length) throw new LeaseLostError();
  return rows.map(toPosition);
}

/** Advances positions; the caller has locked them. */
export async function writePositions(
  t: Transaction,
  lease: LoaderLease,
  positions: readonly PartitionPosition[],
): Promise<void> {
  const list = (get: (position: PartitionPosition) => number) => idList(positions.map(get));
  await t`UPDATE flagkeep.partition p SET
      applied_realtime = greatest(p.applied_realtime, x.ar), loaded_realtime = greatest(p.loaded_realtime, x.lr),
      applied_historical = greatest(p.applied_historical, x.ah), loaded_historical = greatest(p.loaded_historical, x.lh)
    FROM unnest(${list(({ id }) => id)}::text::int[],
      ${list(({ realtime }) => realtime.applied)}::text::bigint[], ${list(({ realtime }) => realtime.loaded)}::text::bigint[],
      ${list(({ historical }) => historical.applied)}::text::bigint[], ${list(({ historical }) => historical.loaded)}::text::bigint[]
    ) AS x(id, ar, lr, ah, lh)
    WHERE p.id = x.id AND p.holder = ${lease.id}`;
}

/** The numbers up to which all partitions are applied and loaded. @throws {PostgresUnreachableError} */
export async function readLowestPosition(postgres: Postgres): Promise<Omit<PartitionPosition, "id">> {
  const [row] = await postgres.run(
    (sql) => sql<PositionRow[]>`
      SELECT 0 AS id, min(applied_realtime)::float8 AS ar, min(loaded_realtime)::float8 AS lr,
        min(applied_historical)::float8 AS ah, min(loaded_historical)::float8 AS lh FROM flagkeep.partition`,
  );
  return toPosition(row!);
}

/** The numbers up to which at least one partition is applied. @throws {PostgresUnreachableError} */
export async function readHighestApplied(
  postgres: Postgres,
): Promise<{ realtime: number; historical: number }> {
  const [row] = await postgres.run(
    (sql) => sql<{ realtime: number; historical: number }[]>`
      SELECT max(applied_realtime)::float8 AS realtime, max(applied_historical)::float8 AS historical FROM flagkeep.partition`,
  );
  return row!;
}

/** The newest number in the journal; 0 if all of it is loaded. @throws {PostgresUnreachableError} */
export async function readNewest(postgres: Postgres, lane: Lane): Promise<number> {
  const [row] = await postgres.run(
    (sql) => sql<{ last: number }[]>`SELECT (first_seq + entries - 1)::float8 AS last FROM flagkeep.journal
      WHERE lane = ${lane} ORDER BY first_seq DESC LIMIT 1`,
  );
  return row?.last ?? 0;
}

/** Sets the positions of all partitions of a cluster without nodes. */
export async function setPositions(
  t: Transaction,
  { realtime, historical }: Omit<PartitionPosition, "id">,
): Promise<void> {
  await t`UPDATE flagkeep.partition SET applied_realtime = ${realtime.applied}, loaded_realtime = ${realtime.loaded},
    applied_historical = ${historical.applied}, loaded_historical = ${historical.loaded}`;
}

/** Deletes the blocks that are loaded, up to a number per lane. @throws {PostgresUnreachableError} */
export async function deleteBlocks(postgres: Postgres, loaded: Record<Lane, number>): Promise<void> {
  for (const lane of lanes)
    await postgres.run(
      // The first condition uses the index.
      (sql) => sql`DELETE FROM flagkeep.journal WHERE lane = ${lane}
        AND first_seq <= ${loaded[lane]} AND first_seq + entries - 1 <= ${loaded[lane]}`,
      deleteMs,
    );
}
