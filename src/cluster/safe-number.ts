/**
 * The number up to which the journal in PostgreSQL is complete. Blocks are numbered by a sequence and committed in any
 * order: a reader that went by the newest visible block would miss those that are committed later.
 */

import { AppError } from "../lib/errors.ts";
import type { Postgres } from "./connection.ts";

/** Entries per number of the sequence. */
const entriesPerBlock = 1_024;
const firstPauseMs = 1;
/** Longest pause of a call; a later call continues to wait. */
const pauseMsMax = 50;
/** A transaction that is open for longer is reported. */
const heldBackSeconds = 5;

/** PostgreSQL has lost numbers that it had assigned: a standby that was not synchronous was promoted, or a backup restored. */
class NumbersWentBackError extends AppError {
  readonly code = "numbers_went_back";
  constructor(had: number, has: number) {
    super(`PostgreSQL has assigned ${has} block numbers after it had assigned ${had}.`);
  }
}

/** For one reader. */
export class SafeNumber {
  private safe = 0;
  private newest = 0;
  /** The sequence's value, and a transaction ID assigned after it was read. */
  private pending: { block: number; id: string } | undefined;

  constructor(private readonly postgres: Postgres) {}

  /**
   * Waits briefly for open transactions.
   * @returns the last number up to which every entry is committed or never will be
   * @throws {NumbersWentBackError} @throws {PostgresUnreachableError}
   */
  async read(): Promise<number> {
    try {
      await this.advance();
    } catch (error) {
      // Another server assigns other transaction IDs.
      this.pending = undefined;
      throw error;
    }
    return (this.safe + 1) * entriesPerBlock - 1;
  }

  private async advance(): Promise<void> {
    if (this.pending === undefined) {
      const block = await this.newestBlock();
      if (block === this.safe) return;
      // In a later statement: every transaction that has a number has an earlier ID (`flagkeep.take_numbers`).
      const [row] = await this.postgres.run((sql) => sql`SELECT pg_current_xact_id()::text AS id`);
      this.pending = { block, id: row!.id };
    }
    const { block, id } = this.pending;
    for (let pauseMs = firstPauseMs; !(await this.isOldest(id)); pauseMs *= 2) {
      if (pauseMs > pauseMsMax) return;
      await Bun.sleep(pauseMs);
    }
    this.safe = block;
    this.pending = undefined;
  }

  private async newestBlock(): Promise<number> {
    // Before its first use, `last_value` is 1.
    const [row] = await this.postgres.run(
      (sql) => sql`SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last FROM flagkeep.block`,
    );
    const last = Number(row!.last);
    if (last < this.newest) throw new NumbersWentBackError(this.newest, last);
    this.newest = last;
    return last;
  }

  /**
   * Whether every transaction with a lower ID has ended. Not by `pg_snapshot_xmax`: that is behind the last one that has
   * ended, and earlier ones may still be open.
   */
  private async isOldest(id: string): Promise<boolean> {
    const [row] = await this.postgres.run(
      (sql) => sql`SELECT pg_snapshot_xmin(pg_current_snapshot()) >= ${id}::text::xid8 AS done`,
    );
    return row!.done === true;
  }
}

/** A transaction that delays loading: readers of the journal wait for all that write, in any database of the server. */
export interface HeldBack {
  /** Null: a prepared transaction. */
  pid: number | null;
  /** `application_name`, or the name of the prepared transaction. */
  name: string;
  seconds: number;
}

/**
 * The oldest transaction that has been open for more than 5 s and may have written.
 * Those of other users are visible to members of `pg_read_all_stats`. @throws {PostgresUnreachableError}
 */
export async function readHeldBack(postgres: Postgres): Promise<HeldBack | null> {
  const [row] = await postgres.run(
    (sql) => sql`SELECT pid, name, extract(epoch FROM clock_timestamp() - since)::int AS seconds FROM (
        SELECT a.pid, application_name AS name, xact_start AS since
        FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
        WHERE locktype = 'transactionid' AND granted AND mode = 'ExclusiveLock'
        UNION ALL SELECT NULL, gid, prepared FROM pg_prepared_xacts
      ) AS open WHERE since < clock_timestamp() - ${heldBackSeconds} * interval '1 second' ORDER BY since LIMIT 1`,
  );
  return row === undefined ? null : { pid: row.pid, name: row.name, seconds: row.seconds };
}

/** For operators. */
export function describeHeldBack({ pid, name, seconds }: HeldBack): string {
  const what =
    pid === null
      ? `the prepared transaction ${name}`
      : `a transaction of process ${pid} (${name || "unnamed"})`;
  return `Loading waits for ${what} in PostgreSQL, open for ${seconds} s.`;
}
