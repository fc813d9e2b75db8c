/**
 * Elects the one node that loads events, by a row with an epoch and a beat. A session lock would not do: a suspended
 * process keeps its session. Acquiring the lease increments the epoch, and every commit of the loader checks it, so a
 * node that was presumed dead cannot commit any more. No clock of a server is used: each process measures with its own.
 */

import type { Sql } from "postgres";
import { AppError } from "../lib/errors.ts";
import type { Postgres, Transaction } from "./connection.ts";
import { stopRecords } from "./layout.ts";

/** What an engine must hold for its commits to count. */
export interface CommitFence {
  /** Fails the transaction if the lease is lost; otherwise no other engine acquires it before the transaction ends. @throws {LeaseLostError} */
  assertHeld(t: Transaction): Promise<unknown>;
}

export interface Lease extends CommitFence {
  readonly epoch: number;
  /** The node whose engine loads events. */
  readonly node: string;
  readonly holder: string;
  /** When it was acquired, by this process's clock (`performance.now`). */
  readonly since: number;
  /** Before the last successful renewal was sent; undefined once it is released. */
  renewedAt: ClockReading | undefined;
}

export interface ClockReading {
  monotonicMs: number;
  /** Continues while the machine is suspended, unlike the other. */
  wallMs: number;
}

/** Another node has acquired the lease. */
export class LeaseLostError extends AppError {
  readonly code = "lease_lost";
  constructor() {
    super("Another node is loading events.");
  }
}

/** A holder that does not renew for this long stops inserting. */
export const leaseMs = 5_000;
export const renewEveryMs = 1_000;
/** A candidate that has seen no renewal for this long takes over: clocks run at slightly different rates. */
export const expiredMs = leaseMs + 500;
/** An insert may be stored so long after the lease of its engine has ended. */
export const lateInsertMs = 1_000;

export const readClocks = (): ClockReading => ({ monotonicMs: performance.now(), wallMs: Date.now() });

/** Until when no other node loads, by `performance.now`. */
export function leaseEnd({ renewedAt }: Pick<Lease, "renewedAt">): number {
  if (renewedAt === undefined) return Number.NEGATIVE_INFINITY;
  const now = readClocks();
  const passedMs = Math.max(now.monotonicMs - renewedAt.monotonicMs, now.wallMs - renewedAt.wallMs);
  return now.monotonicMs + leaseMs - passedMs;
}

/**
 * Acquires the lease if it is released, or held by an earlier engine of this node, loading is not paused, and no record
 * stops the nodes.
 * @throws {PostgresUnreachableError}
 */
export async function acquireLease(
  postgres: Postgres,
  { node, holder }: Pick<Lease, "node" | "holder">,
): Promise<Lease | undefined> {
  const renewedAt = readClocks();
  // The subqueries read the state before the statement has waited for the row, and a record that is written meanwhile
  // changes the epoch.
  const [row] = await postgres.run(
    (sql) => sql`UPDATE flagkeep.lease
      SET epoch = epoch + 1, beat = beat + 1, beat_at = clock_timestamp(), front = ${node}, holder = ${holder}
      WHERE (holder IS NULL OR front = ${node}) AND paused_until < clock_timestamp()
        AND epoch = (SELECT epoch FROM flagkeep.lease)
        AND NOT EXISTS (SELECT 1 FROM flagkeep.secret WHERE name = ANY(${stopRecords}::text[]))
      RETURNING epoch`,
  );
  if (row === undefined) return undefined;
  const lease: Lease = {
    epoch: Number(row.epoch),
    node,
    holder,
    since: performance.now(),
    renewedAt,
    assertHeld: (t) => assertLeaseHeld(t, lease),
  };
  return lease;
}

/**
 * Extends the lease, even after its end if no other node took over.
 * @returns whether loading is to be paused, and the lease released
 * @throws {LeaseLostError} @throws {PostgresUnreachableError}
 */
export async function renewLease(postgres: Postgres, lease: Lease): Promise<boolean> {
  const renewedAt = readClocks();
  // A single statement: a node that hangs during a transaction would lock the row and block the others.
  const { isPaused } = await postgres.run((sql) => assertLeaseHeld(sql, lease), leaseMs);
  lease.renewedAt = renewedAt;
  return isPaused;
}

/** Lets another node acquire the lease immediately. */
export async function releaseLease(postgres: Postgres, lease: Lease): Promise<void> {
  const { epoch, holder } = lease;
  lease.renewedAt = undefined;
  await postgres.run(
    (sql) => sql`UPDATE flagkeep.lease SET holder = NULL WHERE epoch = ${epoch} AND holder = ${holder}`,
  );
}

/** Fails the transaction if the lease is lost; otherwise renews the lease. @throws {LeaseLostError} */
export async function assertLeaseHeld(
  t: Transaction | Sql,
  { epoch, holder }: Pick<Lease, "epoch" | "holder">,
): Promise<{ isPaused: boolean }> {
  const rows = await t`UPDATE flagkeep.lease SET beat = beat + 1, beat_at = clock_timestamp()
    WHERE epoch = ${epoch} AND holder = ${holder} RETURNING paused_until > clock_timestamp() AS paused`;
  if (rows.length === 0) throw new LeaseLostError();
  return { isPaused: rows[0]!.paused };
}

/** The lease as another node sees it. */
export interface SeenLease {
  epoch: string;
  beat: string;
  isHeld: boolean;
  /** No engine acquires it: loading is paused, or persons are being converted or the data migrated. */
  isPaused: boolean;
}

/** @throws {PostgresUnreachableError} */
export async function readLease(postgres: Postgres): Promise<SeenLease> {
  return await postgres.run((sql) => selectLease(sql));
}

export async function selectLease(sql: Sql | Transaction): Promise<SeenLease> {
  const [row] = await sql`SELECT epoch::text, beat::text, holder IS NOT NULL AS held,
      paused_until > clock_timestamp()
        OR EXISTS (SELECT 1 FROM flagkeep.secret WHERE name = ANY(${stopRecords}::text[])) AS paused
    FROM flagkeep.lease`;
  return { epoch: row!.epoch, beat: row!.beat, isHeld: row!.held, isPaused: row!.paused };
}

/** Watches a lease that another node holds. */
export class LeaseObserver {
  private seen: { epoch: string; beat: string; since: number } | undefined;

  /** @param afterMs without a renewal @param now by the clock of this process */
  constructor(
    private readonly afterMs = expiredMs,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Call it regularly. @returns whether the lease was not renewed for so long that its holder has given up inserting */
  isExpired({ epoch, beat, isHeld }: Omit<SeenLease, "isPaused">): boolean {
    if (!isHeld) return false;
    if (this.seen?.epoch !== epoch || this.seen.beat !== beat) this.seen = { epoch, beat, since: this.now() };
    return this.now() - this.seen.since >= this.afterMs;
  }
}

/** Longer without a read, and it is not known whether leases were renewed meanwhile. */
const unreadMsMax = 2_000;

/** Watches leases that others hold, by a key. */
export class LeaseObservers {
  private readonly observers = new Map<string, LeaseObserver>();
  private readAt = Number.NEGATIVE_INFINITY;

  /** @param afterMs see `LeaseObserver` @param now by the clock of this process */
  constructor(
    private readonly afterMs = expiredMs,
    private readonly now: () => number = () => performance.now(),
  ) {}

  /** Call it after each read: while PostgreSQL is unavailable, holders cannot renew their leases either. */
  recordRead(): void {
    const now = this.now();
    if (now - this.readAt > unreadMsMax) this.observers.clear();
    this.readAt = now;
  }

  /** @see LeaseObserver.isExpired */
  isExpired(key: string, lease: Omit<SeenLease, "isPaused">): boolean {
    const observer = this.observers.get(key) ?? new LeaseObserver(this.afterMs, this.now);
    this.observers.set(key, observer);
    return observer.isExpired(lease);
  }
}

/**
 * Releases an expired lease of another node.
 * @returns false if it was renewed meanwhile: this process may have been suspended since it read the lease
 * @throws {PostgresUnreachableError}
 */
export async function revokeLease(postgres: Postgres, { epoch, beat }: SeenLease): Promise<boolean> {
  const rows = await postgres.run(
    (sql) => sql`UPDATE flagkeep.lease SET epoch = epoch + 1, holder = NULL
      WHERE epoch = ${epoch} AND beat = ${beat} AND holder IS NOT NULL RETURNING 1`,
  );
  return rows.length > 0;
}

/** Ends the lease of any holder, also of a suspended one, which cannot commit any more. */
export async function fenceLease(t: Transaction): Promise<void> {
  await t`UPDATE flagkeep.lease SET epoch = epoch + 1, holder = NULL`;
}
