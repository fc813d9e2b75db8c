/** Which node loads events, pauses of loading, and the state of a cluster as PostgreSQL knows it. */

import { AppError } from "../lib/errors.ts";
import { type PostgresAddress, redactPostgresUrl } from "../lib/store-urls.ts";
import type { Postgres } from "./connection.ts";
import { expiredMs, LeaseObservers, lateInsertMs, readLease, revokeLease } from "./lease.ts";
import { nodeTimeoutMs } from "./nodes.ts";
import { readPartitions, revokeLoader, type SeenLoader } from "./partitions.ts";
import { type HeldBack, readHeldBack } from "./safe-number.ts";
import { schemaVersion } from "./schema.ts";

/** Longest pause: waiting events need disk space in PostgreSQL. */
export const pauseSecondsMax = 86_400;
/** A node gives up the lease within this time, or it is revoked. */
const handOverMs = 60_000;
const pollMs = 200;

/** PostgreSQL has no cluster, or one of an older version. */
class NoClusterError extends AppError {
  readonly code = "no_cluster";
  constructor(
    message: string,
    override readonly hint: string,
  ) {
    super(message);
  }
}

/** Loading nodes do not end their work. */
class LoadingGoesOnError extends AppError {
  readonly code = "loading_goes_on";
  override readonly hint = "See the log of that node. Loading stays paused until the given time.";
  constructor(nodes: readonly string[]) {
    super(`Node ${nodes.join(", ")} still loads events after ${handOverMs / 1_000} s.`);
  }
}

/** A partition as displayed. */
export interface PartitionLag {
  id: number;
  /** The name of the node whose engine loads it, by PostgreSQL's clock; null: none. */
  node: string | null;
  epoch: number;
  secondsSinceBeat: number | null;
  /** Entries of the journal, of any partition, after its position. */
  waitingRealtime: number;
  waitingHistorical: number;
  /** The lane of a batch whose persons are stored, and possibly not all of its events. */
  openBatch: string | null;
}

export interface PartitionCounts {
  /** 0 if one engine loads everything. */
  all: number;
  /** Partitions that no engine loads. */
  unheld: number;
}

export interface Loading {
  /** The node with the lease, by PostgreSQL's clock: for display only. */
  node: string | null;
  /** Nodes whose engines load events. */
  loadingNodes: readonly string[];
  partitions: PartitionCounts;
  pausedUntil: Date | null;
  heldBack: HeldBack | null;
}

/** Nodes read it every few seconds, so it does not read the journal. @throws {PostgresUnreachableError} */
export async function readLoading(postgres: Postgres): Promise<Loading> {
  const [row] = await postgres.run(
    (
      sql,
    ) => sql`SELECT CASE WHEN holder IS NOT NULL AND beat_at > clock_timestamp() - ${expiredMs} * interval '1 millisecond'
          THEN front END AS node,
        CASE WHEN paused_until > clock_timestamp() THEN paused_until END AS paused_until
      FROM flagkeep.lease`,
  );
  const { node, paused_until: pausedUntil } = row!;
  const held = await readNodePartitions(postgres);
  const loaders = held.length === 0 ? [node] : held.map((each) => each.node);
  return {
    node,
    loadingNodes: loaders.filter((id) => id !== null),
    partitions: getCounts(held),
    pausedUntil,
    heldBack: await readHeldBack(postgres),
  };
}

/** @throws {PostgresUnreachableError} */
export async function countPartitions(postgres: Postgres): Promise<PartitionCounts> {
  return getCounts(await readNodePartitions(postgres));
}

/** The partitions that the engine of a node loads; null: that none loads. */
interface NodePartitions {
  node: string | null;
  partitions: number;
}

/** @returns nothing if one engine loads everything */
async function readNodePartitions(postgres: Postgres): Promise<readonly NodePartitions[]> {
  return await postgres.run(
    (sql) => sql<NodePartitions[]>`
      SELECT l.node, count(*)::int AS partitions FROM flagkeep.partition p LEFT JOIN flagkeep.loader l
        ON l.id = p.holder AND l.beat_at > clock_timestamp() - ${expiredMs} * interval '1 millisecond'
      WHERE (SELECT loading FROM flagkeep.layout) = 'partitions' GROUP BY l.node`,
  );
}

const getCounts = (held: readonly NodePartitions[]): PartitionCounts => ({
  all: held.reduce((sum, { partitions }) => sum + partitions, 0),
  unheld: held.find(({ node }) => node === null)?.partitions ?? 0,
});

/** @returns nothing if one engine loads everything @throws {PostgresUnreachableError} */
export async function readPartitionLags(postgres: Postgres, timeoutMs?: number): Promise<PartitionLag[]> {
  // Most partitions have the same position.
  const rows = await postgres.run(
    (sql) => sql<PartitionLag[]>`
      WITH position AS (SELECT id, least(applied_realtime, loaded_realtime) AS realtime,
          least(applied_historical, loaded_historical) AS historical FROM flagkeep.partition),
        waiting AS (SELECT d.lane, d.seq, (SELECT coalesce(sum(entries), 0) FROM flagkeep.journal j
            WHERE j.lane = d.lane AND j.first_seq > d.seq)::float8 AS entries
          FROM (SELECT DISTINCT 'realtime' AS lane, realtime AS seq FROM position
            UNION SELECT DISTINCT 'historical', historical FROM position) AS d)
      SELECT p.id, p.epoch::float8 AS epoch,
        CASE WHEN l.beat_at > clock_timestamp() - ${expiredMs} * interval '1 millisecond'
          THEN coalesce(f.name, l.node::text) END AS node,
        greatest(0, floor(extract(epoch FROM clock_timestamp() - l.beat_at)))::int AS "secondsSinceBeat",
        r.entries AS "waitingRealtime", h.entries AS "waitingHistorical",
        CASE WHEN loaded_realtime < applied_realtime THEN 'realtime'
          WHEN loaded_historical < applied_historical THEN 'historical' END AS "openBatch"
      FROM flagkeep.partition p JOIN position USING (id)
        JOIN waiting r ON r.lane = 'realtime' AND r.seq = position.realtime
        JOIN waiting h ON h.lane = 'historical' AND h.seq = position.historical
        LEFT JOIN flagkeep.loader l ON l.id = p.holder LEFT JOIN flagkeep.front f ON f.id = l.node
      WHERE (SELECT loading FROM flagkeep.layout) = 'partitions' ORDER BY p.id`,
    timeoutMs,
  );
  return [...rows];
}

/**
 * Pauses loading, and resolves when no node loads: from then on ClickHouse has no new events until the pause ends.
 * @throws {LoadingGoesOnError} @throws {PostgresUnreachableError}
 */
export async function pauseLoading(postgres: Postgres, seconds: number): Promise<Date> {
  const [paused] = await postgres.run(
    (sql) => sql`UPDATE flagkeep.lease
      SET paused_until = date_trunc('milliseconds', clock_timestamp() + ${seconds} * interval '1 second')
      RETURNING paused_until`,
  );
  const end = performance.now() + handOverMs;
  const observers = new LeaseObservers(expiredMs + lateInsertMs);
  for (;;) {
    const lease = await readLease(postgres);
    const loaders = await readHolders(postgres);
    if (!lease.isHeld && loaders.length === 0) return paused!.paused_until;
    observers.recordRead();
    if (observers.isExpired("", lease)) await revokeLease(postgres, lease);
    for (const loader of loaders)
      if (observers.isExpired(loader.id, { epoch: "", beat: loader.beat, isHeld: true }))
        await revokeLoader(postgres, loader);
    if (performance.now() > end) throw new LoadingGoesOnError(await readHolderNames(postgres));
    await Bun.sleep(pollMs);
  }
}

/** Engines that hold partitions. */
async function readHolders(postgres: Postgres): Promise<SeenLoader[]> {
  const { loaders, partitions } = await readPartitions(postgres);
  return loaders.filter(({ id }) => partitions.some(({ holder }) => holder === id));
}

async function readHolderNames(postgres: Postgres): Promise<string[]> {
  const rows = await postgres.run(
    (sql) => sql`SELECT DISTINCT coalesce(f.name, h.node::text) AS node FROM (
        SELECT front AS node FROM flagkeep.lease WHERE holder IS NOT NULL
        UNION SELECT l.node FROM flagkeep.loader l JOIN flagkeep.partition p ON p.holder = l.id
      ) AS h LEFT JOIN flagkeep.front f ON f.id = h.node ORDER BY 1`,
  );
  return rows.map(({ node }) => node);
}

/** @throws {PostgresUnreachableError} */
export async function resumeLoading(postgres: Postgres): Promise<void> {
  await postgres.run((sql) => sql`UPDATE flagkeep.lease SET paused_until = '-infinity'`);
}

/** @throws {NoClusterError} @throws {PostgresUnreachableError} */
export async function assertCluster(postgres: Postgres): Promise<void> {
  const at = redactPostgresUrl(postgres.address as PostgresAddress);
  const [table] = await postgres.run(
    (sql) => sql`SELECT to_regclass('flagkeep.schema_migration') IS NOT NULL AS exists`,
  );
  if (table!.exists !== true)
    throw new NoClusterError(`${at} contains no Flagkeep data.`, "Name the right database.");
  const [found] = await postgres.run(
    (sql) => sql`SELECT coalesce(max(version), 0) AS version FROM flagkeep.schema_migration`,
  );
  if (found!.version < schemaVersion)
    throw new NoClusterError(
      `The cluster in ${at} was never started with this version.`,
      "Upgrade a node first, or use the version of the nodes.",
    );
}

export interface ClusterState {
  nodes: { name: string; version: string; secondsSinceHeartbeat: number; isLoading: boolean }[];
  pausedUntil: Date | null;
  heldBack: HeldBack | null;
  /** Empty if one engine loads everything. */
  partitions: readonly PartitionLag[];
  lanes: { lane: string; lastSeq: number; waitingEntries: number; waitingBytes: number }[];
  /** Commits, and up to which one they are compacted and copied to ClickHouse. */
  stores: { name: string; revision: number; compacted: number; copied: number | null }[];
}

/** @throws {PostgresUnreachableError} */
export async function readClusterState(postgres: Postgres): Promise<ClusterState> {
  const { loadingNodes, pausedUntil, heldBack } = await readLoading(postgres);
  const partitions = await readPartitionLags(postgres);
  const nodes = await postgres.run(
    (sql) => sql`SELECT id, name, version,
        greatest(0, floor(extract(epoch FROM clock_timestamp() - seen_at)))::int AS seconds
      FROM flagkeep.front WHERE seen_at > clock_timestamp() - ${nodeTimeoutMs} * interval '1 millisecond' ORDER BY name`,
  );
  const found = await postgres.run(
    (sql) => sql`SELECT lane, last_seq::float8 AS last,
        (SELECT coalesce(sum(entries), 0)::float8 FROM flagkeep.journal j WHERE j.lane = a.lane) AS entries,
        (SELECT coalesce(sum(octet_length(body)), 0)::float8 FROM flagkeep.journal j WHERE j.lane = a.lane) AS bytes
      FROM flagkeep.acknowledged a ORDER BY lane DESC`,
  );
  const stores = await postgres.run(
    (
      sql,
    ) => sql`SELECT name, revision::float8 AS revision, folded::float8 AS compacted, mirrored::float8 AS copied
      FROM flagkeep.store ORDER BY name`,
  );
  return {
    nodes: nodes.map(({ id, name, version, seconds }) => ({
      name,
      version,
      secondsSinceHeartbeat: seconds,
      isLoading: loadingNodes.includes(id),
    })),
    pausedUntil,
    heldBack,
    partitions,
    lanes: found.map(({ lane, last, entries, bytes }) => ({
      lane,
      lastSeq: last,
      waitingEntries: entries,
      waitingBytes: bytes,
    })),
    stores: stores.map(({ name, revision, compacted, copied }) => ({
      name,
      revision,
      compacted,
      copied: name === "people" ? copied : null,
    })),
  };
}
