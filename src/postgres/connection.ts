/**
 * Connections to PostgreSQL: several hosts, of which the one that takes writes is used, and no call that waits for ever.
 */

import postgres, { type Sql, type TransactionSql } from "postgres";
import { AppError, firstLine, OperatorNeeded } from "../lib/errors.ts";
import { type PostgresAddress, shownPostgres } from "../lib/postgres-address.ts";

/** PostgreSQL cannot be used at this moment; it may be tried again. */
export class PostgresUnreachable extends AppError {
  readonly code = "postgres_unreachable";
  override readonly hint = "See that PostgreSQL runs and lets Flagkeep in; it goes on by itself.";
  constructor(
    address: PostgresAddress,
    readonly reason: unknown,
  ) {
    super(`PostgreSQL at ${shownPostgres(address)} cannot be used: ${firstLine(reason)}`);
  }

  /** It does not let this user in: at a start the settings are wrong, later somebody has changed something there. */
  get isShutOut(): boolean {
    const { code } = this.reason as { code?: string };
    return code !== undefined && shutOutClasses.some((start) => code.startsWith(start));
  }
}

/** PostgreSQL answers, but says that it will never do what Flagkeep needs. */
export class PostgresRefuses extends OperatorNeeded {
  readonly code = "postgres_refuses";
  override readonly hint = "Give Flagkeep a database of its own, and a user who may create a schema there.";
  constructor(address: PostgresAddress, reason: unknown) {
    super(`PostgreSQL at ${shownPostgres(address)} refuses: ${firstLine(reason)}`);
  }
}

/** Inside a transaction. */
export type Transaction = TransactionSql;

/** A call that has no answer for so long is given up, and with it its connection. */
const callMs = 10_000;
const connectSeconds = 5;
/** A transaction whose client says nothing for so long is ended by the server. */
const idleMsMax = 60_000;
/** Where nothing was answered for so long, all connections are made anew: each of them may lead to a dead server. */
const quietMsMax = 3_000;
const firstPauseMs = 100;
const pauseMsMax = 2_000;
/** SQLSTATEs of a user who may not log in or may not do something, and of a database, schema or table that is not there. */
const shutOutClasses = ["28", "3D", "3F", "42501", "42P01"];
/**
 * SQLSTATEs, by their beginnings, that do not speak of what was asked: connection, resources, intervention, a standby that was
 * asked to write, a database that lets nobody in, a disk with faults.
 */
const passingClasses = ["08", "53", "57", "25", "40", "55", "58", ...shutOutClasses];

/**
 * What PostgreSQL says of a statement comes through as it is; every other failure is `PostgresUnreachable`, and the next call
 * tries again, if need be another host.
 */
export class Postgres {
  private pool: Sql;
  private answeredAt = performance.now();
  private isClosed = false;
  private readonly listeners: { channel: string; onNotice: (text: string) => void }[] = [];

  /**
   * Opens nothing yet.
   *
   * @param onState told why PostgreSQL cannot be used, and with null when it can again.
   */
  constructor(
    readonly address: PostgresAddress,
    private readonly settings: { connections: number; name: string },
    private readonly onState: (reason: PostgresUnreachable | null) => void = () => undefined,
  ) {
    this.pool = this.open();
  }

  /**
   * Does something over one of the connections.
   *
   * @throws {PostgresUnreachable} it is not known whether it was done.
   */
  async run<Result>(work: (sql: Sql) => Promise<Result>, timeoutMs = callMs): Promise<Result> {
    const pool = this.pool;
    const late = Promise.withResolvers<never>();
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      late.reject(new Error(`no answer in ${timeoutMs / 1_000} s`));
    }, timeoutMs);
    try {
      const result = await Promise.race([work(pool), late.promise]);
      this.answeredAt = performance.now();
      this.onState(null);
      return result;
    } catch (error) {
      const isQuiet = performance.now() - this.answeredAt > quietMsMax;
      if (isLate && isQuiet && this.pool === pool && !this.isClosed) {
        // Whatever hangs goes with its connection; a new one may find another host.
        this.pool = this.open();
        this.answeredAt = performance.now();
        void pool.end({ timeout: 0 }).catch(() => undefined);
      }
      if (!isLate && !isPassing(error)) throw error;
      const reason = new PostgresUnreachable(this.address, error);
      this.onState(reason);
      throw reason;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * Does something in one transaction.
   *
   * @param idleMs for so long it may say nothing: a process that hangs in it does not hold up the others for ever.
   * @throws {PostgresUnreachable} it is not known whether it was committed.
   */
  async transaction<Result>(
    work: (t: Transaction) => Promise<Result>,
    timeoutMs = callMs,
    idleMs = idleMsMax,
  ): Promise<Result> {
    const begun = (t: Transaction) => {
      // Not when it connects: a pooler in between may refuse settings that it does not know. Sent with what comes next.
      t.unsafe(`SET LOCAL idle_in_transaction_session_timeout = ${idleMs}`).catch(() => undefined);
      return work(t);
    };
    return (await this.run((sql) => sql.begin(begun), timeoutMs)) as Result;
  }

  /** Does something again and again until it is done. @param isWanted asked before each try; else the reason is thrown */
  async untilDone<Result>(
    work: () => Promise<Result>,
    isWanted: () => boolean = () => true,
  ): Promise<Result> {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, pauseMsMax)) {
      try {
        return await work();
      } catch (error) {
        if (!(error instanceof PostgresUnreachable) || this.isClosed || !isWanted()) throw error;
      }
      await Bun.sleep(pauseMs);
    }
  }

  /** Calls back whenever somebody notifies a channel; what happens while the connection is away is missed. */
  async listen(channel: string, onNotice: (text: string) => void): Promise<void> {
    this.listeners.push({ channel, onNotice });
    await this.pool.listen(channel, onNotice).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.isClosed = true;
    await this.pool.end({ timeout: 1 }).catch(() => undefined);
  }

  private open(): Sql {
    const { hosts, user, password, database, tls } = this.address;
    const { connections, name } = this.settings;
    const pool = postgres({
      // Lists are taken, though the types do not say so.
      host: hosts.map(({ host }) => host) as unknown as string,
      port: hosts.map(({ port }) => port) as unknown as number,
      ...{ user, database, ssl: tls && ("require" as const), max: connections },
      password: password === "" ? undefined : password,
      // Of several hosts the one that takes writes, also after another one was promoted. Not "read-write", for which the
      // client takes a standby, too.
      target_session_attrs: "primary" as const,
      // The client's question for types of lists fails where nobody can catch it when a new connection breaks.
      fetch_types: false,
      types: {
        texts: { to: textArray, from: [textArray], serialize: listText, parse: (text: string) => text },
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

/** The type `text[]`. */
const textArray = 1009;

/** A list as PostgreSQL reads it. */
function listText(list: readonly (string | null)[]): string {
  const quoted = list.map((text) => (text === null ? "NULL" : `"${text.replace(/["\\]/g, "\\$&")}"`));
  return `{${quoted.join(",")}}`;
}

/** Whether an error speaks of the connection or the moment, not of what was asked. */
function isPassing(error: unknown): boolean {
  const { code } = error as { code?: string };
  if (code === undefined) return false;
  // The system's, of which one has five letters as the codes of PostgreSQL have.
  if (/^E[A-Z]+$/.test(code)) return true;
  if (/^[0-9A-Z]{5}$/.test(code)) return passingClasses.some((start) => code.startsWith(start));
  return code.startsWith("CONNECT") || code.startsWith("CONNECTION");
}
