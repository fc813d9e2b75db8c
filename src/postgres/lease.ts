/**
 * Who loads events: one front at a time, by a row with an end and an epoch.
 *
 * A lock of a session would not do: a process that is stopped keeps its session. Whoever takes the lease counts the epoch up,
 * and every commit of the loader asks for its own epoch, so that one that was taken for dead cannot commit any more.
 */

import type { Sql } from "postgres";
import { AppError } from "../lib/errors.ts";
import type { Postgres, Transaction } from "./connection.ts";

export interface Lease {
  readonly epoch: number;
  /** The front whose engine loads events, and by which of its processes. */
  readonly front: string;
  readonly holder: string;
}

/** Another front loads events now. */
export class LeaseLost extends AppError {
  readonly code = "lease_lost";
  constructor() {
    super("Another front loads events now.");
  }
}

/** A holder that says nothing for so long is taken for dead. */
export const leaseMs = 5_000;
export const renewEveryMs = 1_000;

/** Takes the lease when nobody holds it. @throws {PostgresUnreachable} */
export async function takeLease(
  postgres: Postgres,
  { front, holder }: Pick<Lease, "front" | "holder">,
): Promise<Lease | undefined> {
  const rows = await postgres.run(
    (sql) => sql`UPDATE flagkeep.lease
      SET epoch = epoch + 1, front = ${front}, holder = ${holder}, until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
      WHERE until < clock_timestamp() RETURNING epoch`,
  );
  return rows[0] && { epoch: Number(rows[0].epoch), front, holder };
}

/** Holds it for longer, also when its time was over and nobody took it. @throws {LeaseLost} @throws {PostgresUnreachable} */
export async function renewLease(postgres: Postgres, lease: Lease): Promise<void> {
  // One statement and no transaction: a front that hangs in the middle of one would hold the row, and nobody could take it.
  await postgres.run((sql) => requireLease(sql, lease), leaseMs);
}

/** Lets the next one take it at once. */
export async function releaseLease(postgres: Postgres, { epoch, holder }: Lease): Promise<void> {
  await postgres.run(
    (sql) => sql`UPDATE flagkeep.lease SET until = '-infinity' WHERE epoch = ${epoch} AND holder = ${holder}`,
  );
}

/** Whether nobody holds it at this moment. @throws {PostgresUnreachable} */
export async function isLeaseFree(postgres: Postgres): Promise<boolean> {
  const [row] = await postgres.run(
    (sql) => sql`SELECT until < clock_timestamp() AS free FROM flagkeep.lease`,
  );
  return row!.free === true;
}

/** The front that loads events, if one does. @throws {PostgresUnreachable} */
export async function leaseHolder(postgres: Postgres): Promise<string | null> {
  const [row] = await postgres.run(
    (sql) => sql`SELECT CASE WHEN until >= clock_timestamp() THEN front END AS front FROM flagkeep.lease`,
  );
  return row!.front;
}

/**
 * Makes a commit fail whose maker has lost the lease; nobody takes it before the commit, which holds it for longer.
 *
 * @throws {LeaseLost}
 */
export async function requireLease(t: Transaction | Sql, { epoch, holder }: Lease): Promise<void> {
  const rows =
    await t`UPDATE flagkeep.lease SET until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
    WHERE epoch = ${epoch} AND holder = ${holder} RETURNING epoch`;
  if (rows.length === 0) throw new LeaseLost();
}
