/**
 * Elects the one node that loads events, by a row with an expiry and an epoch. A session lock would not do: a suspended
 * process keeps its session. Acquiring the lease increments the epoch, and every commit of the loader checks it, so a
 * node that was presumed dead cannot commit any more.
 */

import type { Sql } from "postgres";
import { AppError } from "../lib/errors.ts";
import type { Postgres, Transaction } from "./connection.ts";

export interface Lease {
  readonly epoch: number;
  /** The node whose engine loads events. */
  readonly front: string;
  readonly holder: string;
  /** When it was acquired, by this process's clock (`performance.now`). */
  readonly since: number;
  /** Until when no other node loads, by the same clock: counted from before the last renewal was sent. */
  until: number;
}

/** Another node has acquired the lease. */
export class LeaseLostError extends AppError {
  readonly code = "lease_lost";
  constructor() {
    super("Another node is loading events.");
  }
}

/** A holder that does not renew for this long loses the lease. */
export const leaseMs = 5_000;
export const renewEveryMs = 1_000;

/** Acquires the lease if it is free and loading is not paused. @throws {PostgresUnreachableError} */
export async function acquireLease(
  postgres: Postgres,
  { front, holder }: Pick<Lease, "front" | "holder">,
): Promise<Lease | undefined> {
  const sentAt = performance.now();
  const rows = await postgres.run(
    (sql) => sql`UPDATE flagkeep.lease
      SET epoch = epoch + 1, front = ${front}, holder = ${holder}, until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
      WHERE until < clock_timestamp() AND paused_until < clock_timestamp() RETURNING epoch`,
  );
  const since = performance.now();
  return rows[0] && { epoch: Number(rows[0].epoch), front, holder, since, until: sentAt + leaseMs };
}

/**
 * Extends the lease, even after its expiry if no other node acquired it.
 * @returns whether loading is to be paused, and the lease released
 * @throws {LeaseLostError} @throws {PostgresUnreachableError}
 */
export async function renewLease(postgres: Postgres, lease: Lease): Promise<boolean> {
  const sentAt = performance.now();
  // A single statement: a node that hangs during a transaction would lock the row and block the others.
  const { isPaused } = await postgres.run((sql) => assertLeaseHeld(sql, lease), leaseMs);
  lease.until = sentAt + leaseMs;
  return isPaused;
}

/** Lets another node acquire the lease immediately. */
export async function releaseLease(postgres: Postgres, lease: Lease): Promise<void> {
  const { epoch, holder } = lease;
  lease.until = Number.NEGATIVE_INFINITY;
  await postgres.run(
    (sql) => sql`UPDATE flagkeep.lease SET until = '-infinity' WHERE epoch = ${epoch} AND holder = ${holder}`,
  );
}

/** Whether a node can acquire the lease. @throws {PostgresUnreachableError} */
export async function isLeaseFree(postgres: Postgres): Promise<boolean> {
  const [row] = await postgres.run(
    (sql) =>
      sql`SELECT until < clock_timestamp() AND paused_until < clock_timestamp() AS free FROM flagkeep.lease`,
  );
  return row!.free === true;
}

/** Fails the transaction if the lease is lost; otherwise extends the lease. @throws {LeaseLostError} */
export async function assertLeaseHeld(
  t: Transaction | Sql,
  { epoch, holder }: Lease,
): Promise<{ isPaused: boolean }> {
  const rows =
    await t`UPDATE flagkeep.lease SET until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
    WHERE epoch = ${epoch} AND holder = ${holder} RETURNING paused_until > clock_timestamp() AS paused`;
  if (rows.length === 0) throw new LeaseLostError();
  return { isPaused: rows[0]!.paused };
}
