/** Connections to PostgreSQL: uses the primary among several hosts, and every call has a timeout. */

import postgres, { type Sql, type TransactionSql } from "postgres";
import { AppError, firstLine, OperatorActionError } from "../lib/errors.ts";
import { type PostgresAddress, redactPostgresUrl } from "../lib/store-urls.ts";

/** PostgreSQL is temporarily unavailable; retry later. */
export class PostgresUnreachableError extends AppError {
  readonly code: string = "postgres_unreachable";
  override readonly hint: string =
    "Check that PostgreSQL runs and accepts Flagkeep's user; Flagkeep reconnects automatically.";
  constructor(
    address: PostgresAddress,
    readonly reason: unknown,
    message = `PostgreSQL at ${redactPostgresUrl(address)} is unavailable: ${firstLine(reason)}`,
  ) {
    super(message);
  }

  /** PostgreSQL rejects this user: wrong settings at startup, a changed configuration later. */
  get isShutOut(): boolean {
    const { code } = this.reason as { code?: string };
    return code !== undefined && shutOutClasses.some((start) => code.startsWith(start));
  }
}

/** The lock of a change was not acquired in time; nothing was changed. */
export class ChangeInProgressError extends PostgresUnreachableError {
  override readonly code = "change_in_progress";
  override readonly hint = "Try again. `flagkeep status` shows the nodes.";
  constructor(address: PostgresAddress, reason: unknown) {
    super(address, reason, "Another change is still in progress; nothing was changed.");
  }
}

/** PostgreSQL responds but permanently cannot do what Flagkeep needs. */
export class PostgresRejectedError extends OperatorActionError {
  readonly code = "postgres_refuses";
  override readonly hint = "Use a dedicated database and a user with the privilege to create a schema.";
  constructor(address: PostgresAddress, reason: unknown) {
    super(`PostgreSQL at ${redactPostgresUrl(address)} rejects the connection: ${firstLine(reason)}`);
  }
}

export type Transaction = TransactionSql;

/** Default timeout of a call. */
const callMs = 10_000;
const connectSeconds = 5;
/** The server ends a transaction whose client is idle for this long. */
const idleMsMax = 60_000;
/** The same for a transaction for which other nodes wait. */
export const lockingIdleMsMax = 4_000;
/** If no call was answered for this long, all connections are recreated: each may lead to a dead server. */
const quietMsMax = 3_000;
const firstPauseMs = 100;
const pauseMsMax = 2_000;
/** SQLSTATEs of failed logins, missing privileges, and missing databases, schemas or tables. */
const shutOutClasses = ["28", "3D", "3F", "42501", "42P01"];
/** SQLSTATE of a lock that was not acquired within `lock_timeout`. */
const lockTimeoutCode = "55P03";
/** SQLSTATE of a write to a server that only accepts reads: a standby, or a primary that was set to be read-only. */
const readOnlyCode = "25006";
/**
 * SQLSTATE prefixes of errors that are not caused by the statement: connection, resources, operator intervention,
 * transactions ended while idle, a database that rejects connections, disk errors.
 */
const passingClasses = ["08", "53", "57", "25P03", "40", "55", "58", readOnlyCode, ...shutOutClasses];
/** Minimum interval between renewals of the pool because of `readOnlyCode`: all hosts may be read-only. */
const renewEveryMs = 1_000;
/** Time for calls on the other connections of a renewed pool. */
const endSeconds = 5;

/**
 * Errors of statements are passed through; all others become `PostgresUnreachableError`, and the next call tries again,
 * possibly on another host.
 */
export class Postgres {
  private pool: Sql;
  private answeredAt = performance.now();
  private renewedAt = Number.NEGATIVE_INFINITY;
  private failedAt = Number.NEGATIVE_INFINITY;
  private isClosed = false;
  private readonly listeners: { channel: string; onNotice: (text: string) => void }[] = [];

  /**
   * Connects lazily.
   * @param onState receives the error when PostgreSQL becomes unavailable, and null when it is available again
   */
  constructor(
    readonly address: PostgresAddress,
    private readonly settings: { connections: number; name: string },
    private readonly onState: (reason: PostgresUnreachableError | null) => void = () => undefined,
  ) {
    this.pool = this.open();
  }

  /**
   * Runs work on one of the connections.
   * @param work calls its second argument whenever a part was answered, which starts the timeout again
   * @throws {PostgresUnreachableError} it is unknown whether the work was done
   */
  async run<Result>(
    work: (sql: Sql, extend: () => void) => Promise<Result>,
    timeoutMs = callMs,
  ): Promise<Result> {
    const pool = this.pool;
    const startedAt = performance.now();
    const late = Promise.withResolvers<never>();
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      late.reject(new Error(`no answer in ${timeoutMs / 1_000} s`));
    }, timeoutMs);
    const extend = () => {
      if (isLate) return;
      this.answeredAt = performance.now();
      timer.refresh();
    };
    try {
      const result = await Promise.race([work(pool, extend), late.promise]);
      this.answeredAt = performance.now();
      // The failure of a later call is newer information.
      if (startedAt > this.failedAt) this.onState(null);
      return result;
    } catch (error) {
      const now = performance.now();
      // Close hanging calls with their connections; new ones may find another host.
      if (isLate && now - this.answeredAt > quietMsMax) this.renew(pool, 0);
      const { code } = error as { code?: string };
      if (code === readOnlyCode && now - this.renewedAt > renewEveryMs) this.renew(pool, endSeconds);
      if (!isLate && code === lockTimeoutCode) throw new ChangeInProgressError(this.address, error);
      if (!isLate && !isPassing(error)) throw error;
      const reason = new PostgresUnreachableError(this.address, error);
      this.failedAt = now;
      this.onState(reason);
      throw reason;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Runs work in one transaction.
   * @param work see `run`
   * @param idleMs limit of the transaction's idle time, so that a hanging process does not block others
   * @throws {PostgresUnreachableError} it is unknown whether it was committed
   */
  async transaction<Result>(
    work: (t: Transaction, extend: () => void) => Promise<Result>,
    timeoutMs = callMs,
    idleMs = idleMsMax,
  ): Promise<Result> {
    const started = (t: Transaction, extend: () => void) => {
      // Not a connection setting: a pooler may reject unknown ones. Pipelined with the next statement.
      t.unsafe(`SET LOCAL idle_in_transaction_session_timeout = ${idleMs}`).catch(() => undefined);
      return work(t, extend);
    };
    return (await this.run((sql, extend) => sql.begin((t) => started(t, extend)), timeoutMs)) as Result;
  }

  /** Retries work until it succeeds. @param isWanted checked before each retry; if false, the error is thrown */
  async untilDone<Result>(
    work: () => Promise<Result>,
    isWanted: () => boolean = () => true,
  ): Promise<Result> {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, pauseMsMax)) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof PostgresUnreachableError) || this.isClosed || !isWanted()) throw error;
      }
      await Bun.sleep(pauseMs);
    }
  }

  /** Subscribes to a channel; notifications sent while disconnected are missed. */
  async listen(channel: string, onNotice: (text: string) => void): Promise<void> {
    this.listeners.push({ channel, onNotice });
    await this.pool.listen(channel, onNotice).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.pool.end({ timeout: 1 }).catch(() => undefined);
  }

  /** Replaces a pool unless another call already did. @param seconds until calls on its connections are cancelled */
  private renew(pool: Sql, seconds: number): void {
    if (this.pool !== pool || this.isClosed) return;
    this.pool = this.open();
    this.answeredAt = performance.now();
    this.renewedAt = performance.now();
    void pool.end({ timeout: seconds }).catch(() => undefined);
  }

  private open(): Sql {
    const { hosts, user, password, database, tls } = this.address;
    const { connections, name } = this.settings;
    const pool = postgres({
      // Lists are accepted, although the types do not say so.
      host: hosts.map(({ host }) => host) as unknown as string,
      port: hosts.map(({ port }) => port) as unknown as number,
      user,
      database,
      ssl: tls && ("require" as const),
      max: connections,
      password: password === "" ? undefined : password,
      // Finds the primary again after a failover. Not "read-write", for which the client also accepts a standby.
      target_session_attrs: "primary" as const,
      // The client's query for array types fails with an uncatchable error if a new connection breaks.
      fetch_types: false,
      types: {
        texts: { to: textArray, from: [textArray], serialize: formatList, parse: (text: string) => text },
      },
      connect_timeout: connectSeconds,
      keep_alive: 5,
      backoff: () => 0.2,
      onnotice: () => undefined,
      connection: { application_name: `flagkeep ${name}` },
    });
    for (const { channel, onNotice } of this.listeners)
      void pool.listen(channel, onNotice).catch(() => undefined);
    return pool as unknown as Sql;
  }
}

/** Runs work that is repeated anyway. @returns undefined while PostgreSQL is unavailable */
export async function ifAvailable<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof PostgresUnreachableError) return undefined;
    throw error;
  }
}

/** OID of `text[]`. */
const textArray = 1009;

/** PostgreSQL array literal. */
export function formatList(list: readonly (string | null)[]): string {
  const quoted = list.map((text) => (text === null ? "NULL" : `"${text.replace(/["\\]/g, "\\$&")}"`));
  return `{${quoted.join(",")}}`;
}

/** Whether an error is caused by the connection or a temporary state, not by the statement. */
function isPassing(error: unknown): boolean {
  const { code } = error as { code?: string };
  if (code === undefined) return false;
  // System error codes; some have five letters like SQLSTATEs.
  if (/^E[A-Z]+$/.test(code)) return true;
  if (/^[0-9A-Z]{5}$/.test(code)) return passingClasses.some((start) => code.startsWith(start));
  return code.startsWith("CONNECT") || code.startsWith("CONNECTION");
}
