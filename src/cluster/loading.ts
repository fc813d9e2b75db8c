/** Which node loads events, pauses of loading, and the state of a cluster as PostgreSQL knows it. */

import { AppError } from "../lib/errors.ts";
import { type PostgresAddress, redactPostgresUrl } from "../lib/store-urls.ts";
import type { Postgres } from "./connection.ts";
import { expiredMs, LeaseObserver, readLease, revokeLease } from "./lease.ts";
import { nodeTimeoutMs } from "./nodes.ts";
import { type HeldBack, readHeldBack } from "./safe-number.ts";
import { schemaVersion } from "./schema.ts";

/** Longest pause: waiting events need disk space in PostgreSQL. */
export const pauseSecondsMax = 86_400;
/** A node gives up the lease within this time, or it is revoked. */
const handOverMs = 60_000;
/** An insert may be stored so long after the lease of its node has ended. */
const lateInsertMs = 1_000;
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

/** The loading node does not end its work. */
class LoadingGoesOnError extends AppError {
  readonly code = "loading_goes_on";
  override readonly hint = "See the log of that node. Loading stays paused until the given time.";
  constructor(node: string) {
    super(`Node ${node} still loads events after ${handOverMs / 1_000} s.`);
  }
}

export interface Loading {
  /** The node that loads, by PostgreSQL's clock: for display only. */
  node: string | null;
  pausedUntil: Date | null;
  heldBack: HeldBack | null;
}

/** @throws {PostgresUnreachableError} */
export async function readLoading(postgres: Postgres): Promise<Loading> {
  const [row] = await postgres.run(
    (
      sql,
    ) => sql`SELECT CASE WHEN holder IS NOT NULL AND beat_at > clock_timestamp() - ${expiredMs} * interval '1 millisecond'
          THEN front END AS node,
        CASE WHEN paused_until > clock_timestamp() THEN paused_until END AS paused_until
      FROM flagkeep.lease`,
  );
  return { node: row!.node, pausedUntil: row!.paused_until, heldBack: await readHeldBack(postgres) };
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
  const observer = new LeaseObserver(expiredMs + lateInsertMs);
  for (;;) {
    const lease = await readLease(postgres);
    if (!lease.isHeld) return paused!.paused_until;
    if (observer.isExpired(lease)) await revokeLease(postgres, lease);
    else if (performance.now() > end) throw new LoadingGoesOnError(await readHolder(postgres));
    await Bun.sleep(pollMs);
  }
}

async function readHolder(postgres: Postgres): Promise<string> {
  const [row] = await postgres.run(
    (sql) => sql`SELECT coalesce(f.name, l.front::text) AS node
      FROM flagkeep.lease l LEFT JOIN flagkeep.front f ON f.id = l.front`,
  );
  return row!.node;
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
  lanes: { lane: string; lastSeq: number; waitingEntries: number; waitingBytes: number }[];
  /** Commits, and up to which one they are compacted and copied to ClickHouse. */
  stores: { name: string; revision: number; compacted: number; copied: number | null }[];
}

/** @throws {PostgresUnreachableError} */
export async function readClusterState(postgres: Postgres): Promise<ClusterState> {
  const { node, pausedUntil, heldBack } = await readLoading(postgres);
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
    ) => sql`SELECT name, revision::float8 AS revision, folded::float8 AS folded, mirrored::float8 AS mirrored
      FROM flagkeep.store ORDER BY name`,
  );
  return {
    nodes: nodes.map(({ id, name, version, seconds }) => ({
      name,
      version,
      secondsSinceHeartbeat: seconds,
      isLoading: id === node,
    })),
    pausedUntil,
    heldBack,
    lanes: found.map(({ lane, last, entries, bytes }) => ({
      lane,
      lastSeq: last,
      waitingEntries: entries,
      waitingBytes: bytes,
    })),
    stores: stores.map(({ name, revision, folded, mirrored }) => ({
      name,
      revision,
      compacted: folded,
      copied: name === "people" ? mirrored : null,
    })),
  };
}
