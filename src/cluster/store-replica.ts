/**
 * A replica of a store in PostgreSQL: an SQLite file that this node reads like a standalone one. Replicas apply the
 * numbered commits in order. A writer locks the store's row, applies all commits and commits its rows before other
 * nodes are notified. Local changes that were not committed (a crash, a lost lease) are reverted from PostgreSQL.
 */

import type { Database } from "bun:sqlite";
import { Semaphore } from "../lib/concurrency.ts";
import { OperatorActionError } from "../lib/errors.ts";
import { type Migration, migrate, NewerDataVersionError, openSqlite } from "../lib/sqlite.ts";
import { compactCommits, pruneOld, type StoreName, sendCommit } from "./commits.ts";
import { ChangeInProgressError, lockingIdleMsMax, type Postgres, type Transaction } from "./connection.ts";
import type { PersonsLayout } from "./layout.ts";
import type { CommitFence } from "./lease.ts";
import { deleteSqlite, ReplicaFile } from "./replica-file.ts";
import { markAsReplica } from "./replica-marker.ts";
import {
  type CopyProgress,
  HistoryMismatchError,
  pageMs,
  type ReplicaCallbacks,
  ReplicaReader,
} from "./replica-reader.ts";
import { assertNodeMayWrite } from "./write-check.ts";

/** Timeout of a commit, including its lock. */
const commitMs = 60_000;
/** Rows per commit of a migrated store. */
const migratedRowsAtOnce = 5_000;
const waitingMax = 10_000;
/** A change with less time is not started. */
const changeMsMin = 100;
/** Part of a change's timeout for which it waits for other nodes' changes. */
const lockShare = 0.9;

/** A node with a newer version has migrated the tables. */
class NewerNodesError extends OperatorActionError {
  readonly code = "newer_fronts";
  override readonly hint = "Start the newer version here.";
  constructor(store: StoreName) {
    super(`A newer version of Flagkeep has migrated the ${store} store.`);
  }
}

export interface ReplicatedStore {
  readonly name: StoreName;
  readonly migrations: readonly Migration[];
}

export interface ReplicaOptions extends ReplicaCallbacks {
  /** The layout that the process was started with: changes are rejected once it is another one. Default: any. */
  persons?: PersonsLayout;
}

export class StoreReplica {
  private readonly turn = new Semaphore({ total: 1, perKey: 1, waiting: waitingMax });
  private readonly file: ReplicaFile;
  private readonly reader: ReplicaReader;
  private checking: Promise<void> | undefined;
  /** Local rows may differ from PostgreSQL. */
  private isAmbiguous = true;
  private replacing: CopyProgress | undefined;
  /** The `write` of `commitWith` whose result is unknown. Its local rows are captured, so any other commit would include them. */
  private unfinished: unknown;

  private constructor(
    client: Database,
    private readonly store: ReplicatedStore,
    private readonly postgres: Postgres,
    private readonly options: ReplicaOptions,
  ) {
    this.file = new ReplicaFile(client);
    this.reader = new ReplicaReader(this.file, store, postgres, options);
  }

  /**
   * Creates or updates a replica, and migrates older tables in PostgreSQL to this version's schema. If it is
   * interrupted, the next call resumes it.
   * @param path of an empty file or a replica
   * @throws {PostgresUnreachableError} @throws {NewerDataVersionError} @throws {NewerNodesError}
   */
  static async prepare(
    path: string,
    store: ReplicatedStore,
    postgres: Postgres,
    options: Pick<ReplicaOptions, "onCopying"> = {},
  ): Promise<void> {
    const { name, migrations } = store;
    const newest = migrations.length;
    await postgres.run(
      (sql) =>
        sql`INSERT INTO flagkeep.store (name, schema_version, revision) VALUES (${name}, ${newest}, 0) ON CONFLICT DO NOTHING`,
    );
    const there = await schemaVersionThere(postgres, name);
    if (there > newest) throw new NewerDataVersionError(`${name} store in PostgreSQL`, there, newest);
    // Rows of an older schema are applied as they are; `upgrade` migrates them with the tables.
    const client = openReplica(path, store, there);
    try {
      const copy = StoreReplica.attach(client, store, postgres, options);
      await copy.catchUp();
      if (there < newest) await copy.upgrade(there);
    } finally {
      client.close();
    }
  }

  /** @param client a replica created by `prepare`, writable */
  static attach(
    client: Database,
    store: ReplicatedStore,
    postgres: Postgres,
    options: ReplicaOptions = {},
  ): StoreReplica {
    return new StoreReplica(client, store, postgres, options);
  }

  /** The progress of copying a store that was restored to an earlier state: the rows here are those of before. */
  get copying(): CopyProgress | undefined {
    return this.replacing;
  }

  /** Applies all commits made before the call. @throws {PostgresUnreachableError} */
  async catchUp(): Promise<void> {
    const leave = await this.turn.enter(0, {});
    try {
      await this.readNewer();
    } catch (error) {
      if (!(error instanceof HistoryMismatchError)) throw error;
      await this.replace();
    } finally {
      leave();
    }
  }

  private async readNewer(): Promise<void> {
    while (await this.reader.readPages());
    await this.postgres.transaction(async (t, extend) => {
      await t`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`;
      await this.reader.sync(t, this.isAmbiguous ? "none" : "others", extend);
      this.isAmbiguous = false;
    }, pageMs);
  }

  /**
   * Like `catchUp`, for frequent readers: calls share a check that has not started, and if PostgreSQL is unreachable,
   * readers get the local state.
   */
  async check(): Promise<void> {
    this.checking ??= Promise.resolve().then(async () => {
      this.checking = undefined;
      const [row] = await this.postgres.run(
        (sql) => sql`SELECT revision FROM flagkeep.store WHERE name = ${this.store.name}`,
        1_000,
      );
      if (Number(row!.revision) !== this.file.state.revision || this.isAmbiguous) await this.catchUp();
    });
    await this.checking.catch(() => undefined);
  }

  /** Whether local changes are not committed yet. */
  get hasChanges(): boolean {
    return this.file.tables.hasChanges;
  }

  /**
   * Applies all commits, runs a change while no other node can change the store, and commits its rows. The change is
   * readable here before it is committed; keep it short.
   * @param run receives the time of the change: changes of all nodes are in the order of their times
   * @param lease must still be held @param withinMs total timeout, including waiting for other changes
   * @param idleMs how long a node that hangs within the change blocks the others
   * @throws {ChangeInProgressError} nothing was changed: another node's change did not end in time
   * @throws {PostgresUnreachableError} nothing was changed, or the result is unknown; the replica is reconciled later
   * @throws {LeaseLostError} @throws errors of `assertNodeMayWrite`, and of `run` after committing what it changed
   * @throws {HistoryMismatchError} with a lease: what was read before belongs to another history
   */
  async change<Result>(
    run: (t: Transaction, now: Date) => Result | Promise<Result>,
    lease?: CommitFence,
    withinMs = commitMs,
    idleMs = lockingIdleMsMax,
  ): Promise<Result> {
    const end = performance.now() + withinMs;
    // An unfinished copy would be completed while all nodes wait.
    if (this.file.position !== undefined) await this.catchUp();
    const options = { lease, end, idleMs };
    try {
      return await this.tryChange(run, options);
    } catch (error) {
      // The mismatch is detected before `run` is called.
      if (!(error instanceof HistoryMismatchError) || lease !== undefined) throw error;
      await this.catchUp();
      return await this.tryChange(run, options);
    }
  }

  /**
   * Like `change` with a lease, but rows that `write` writes in the transaction are part of the commit: if it throws,
   * nothing is committed. Until a call with the same function succeeds, all other changes are rejected: they would commit
   * the local rows of `write` alone. @throws {PostgresUnreachableError} it is unknown whether it was committed
   * @param prepare runs first, before other nodes have to wait
   * @throws {LeaseLostError} @throws errors of `write`
   */
  async commitWith(
    write: (t: Transaction) => Promise<void>,
    lease: CommitFence,
    prepare?: (t: Transaction) => Promise<void>,
  ): Promise<void> {
    const end = performance.now() + commitMs;
    const limits = { lease, end, idleMs: lockingIdleMsMax, isAtomic: true, prepare };
    await this.tryChange(write, limits);
  }

  /** @param rowsAtOnce rows per commit; readers may see the first commits without the later ones */
  private async tryChange<Result>(
    run: (t: Transaction, now: Date) => Result | Promise<Result>,
    { lease, end, idleMs, isAtomic = false, isUpgrade = false, prepare }: ChangeLimits,
    rowsAtOnce = Number.MAX_SAFE_INTEGER,
  ): Promise<Result> {
    const leave = await this.enterTurn(end, run);
    let result: { result: Result } | { error: unknown } | undefined;
    let sent: Sent | undefined;
    try {
      const work = async (t: Transaction, extend: () => void) => {
        await prepare?.(t);
        const now = await this.lockStore(t, leftUntil(end));
        // A statement of its own: it reads what was committed before the lock was acquired.
        const allowed = isUpgrade ? undefined : assertNodeMayWrite(t, this.options.persons);
        await Promise.all([lease?.assertHeld(t), allowed]);
        // The lease holder's uncommitted rows are newer than those in PostgreSQL.
        const preserved = lease !== undefined ? "all" : this.isAmbiguous ? "none" : "others";
        const newest = await this.reader.sync(t, preserved);
        this.isAmbiguous = lease === undefined;
        if (isAtomic) this.unfinished = run;
        result = await settled(() => run(t, now));
        if (isAtomic && "error" in result) throw result.error;
        sent = await this.send(t, { newest, rowsAtOnce, at: now }, extend);
        // The change may have taken longer than the lease.
        if (sent !== undefined) await lease?.assertHeld(t);
      };
      await this.postgres.transaction(work, leftUntil(end), idleMs);
      if (sent !== undefined) this.recordSent(sent);
      this.isAmbiguous = false;
      this.unfinished = undefined;
    } finally {
      leave();
    }
    if ("error" in result!) throw result.error;
    return result!.result;
  }

  /** Commits the captured changes. */
  private async send(
    t: Transaction,
    { newest, rowsAtOnce, at }: { newest: number; rowsAtOnce: number; at: Date },
    extend: () => void,
  ): Promise<Sent | undefined> {
    let sent: Sent | undefined;
    for (let revision = newest + 1; ; revision++) {
      const { rows, last } = this.file.tables.changed(rowsAtOnce, sent?.last);
      if (rows.length === 0) return sent;
      const id = crypto.randomUUID();
      await sendCommit(t, { store: this.store.name, revision, id, rows, at });
      if (rowsAtOnce !== Number.MAX_SAFE_INTEGER) extend();
      sent = { revision, commit_id: id, last };
    }
  }

  /** @throws {ChangeInProgressError} earlier changes have not finished */
  private async enterTurn(end: number, run: unknown): Promise<() => void> {
    try {
      const leave = await this.turn.enter(0, { signal: AbortSignal.timeout(leftUntil(end)) });
      const isBlocked = this.unfinished !== undefined && this.unfinished !== run;
      if (leftUntil(end) >= changeMsMin && !isBlocked) return leave;
      leave();
      throw new Error(isBlocked ? "unfinished" : "too late");
    } catch {
      throw new ChangeInProgressError(this.postgres.address, new Error("other changes are waiting"));
    }
  }

  /**
   * Compacts commits, so that a new replica need not read them all, and deletes old tombstones. Call it periodically on
   * any node: a lock lets one node compact at a time.
   */
  async tidy(): Promise<void> {
    await compactCommits(this.postgres, this.store.name);
    await pruneOld(this.postgres, this.store.name);
  }

  /** The newest applied commit. */
  get revision(): number {
    return this.file.state.revision;
  }

  /**
   * Excludes other changes. @returns the time of the change: that of PostgreSQL, but later than all earlier changes,
   * also after a failover to a server whose clock is behind. In milliseconds, like the times that are stored.
   */
  private async lockStore(t: Transaction, withinMs: number): Promise<Date> {
    const { name, migrations } = this.store;
    // Shorter than the timeout of the call, which says less.
    t.unsafe(`SET LOCAL lock_timeout = ${Math.ceil(withinMs * lockShare)}`).catch(() => undefined);
    const [row] = await t`SELECT schema_version,
        greatest(date_trunc('milliseconds', clock_timestamp()), last_at + interval '1 millisecond') AS now
      FROM flagkeep.store WHERE name = ${name} FOR UPDATE`;
    if (row!.schema_version > migrations.length) throw new NewerNodesError(name);
    return row!.now;
  }

  private recordSent({ last, ...state }: Sent): void {
    this.file.client
      .transaction(() => {
        this.file.tables.forget({ rows: [], last });
        this.file.setState(state);
      })
      .immediate();
  }

  /** Copies everything to a second file, which then replaces this one's rows: readers never see an incomplete copy. */
  private async replace(): Promise<void> {
    const { client } = this.file;
    const path = `${client.filename}.new`;
    this.replacing = { done: 0, total: 0 };
    try {
      for (;;) {
        const fresh = openReplica(path, this.store, schemaVersionHere(client));
        try {
          const onCopying = (progress: CopyProgress) => {
            this.replacing = progress;
            this.options.onCopying?.(progress);
          };
          await StoreReplica.attach(fresh, this.store, this.postgres, { onCopying }).readNewer();
          break;
        } catch (error) {
          if (!(error instanceof HistoryMismatchError)) throw error;
          deleteSqlite(path);
        } finally {
          fresh.close();
        }
      }
      this.file.replaceBy(path);
      deleteSqlite(path);
      this.isAmbiguous = false;
    } finally {
      this.replacing = undefined;
    }
    this.options.onApplied?.(true);
  }

  /** Migrates the tables here and in PostgreSQL; only the first node does the latter. */
  private async upgrade(from: number): Promise<void> {
    const { name, migrations } = this.store;
    const work = async (t: Transaction) => {
      const [row] = await t`SELECT schema_version FROM flagkeep.store WHERE name = ${name}`;
      if (row!.schema_version !== from) return false;
      migrate(this.file.client, `${name} store`, migrations);
      this.file.reloadSchema();
      this.file.tables.markAll();
      await t`UPDATE flagkeep.store SET schema_version = ${migrations.length} WHERE name = ${name}`;
      return true;
    };
    // All rows are migrated between two statements.
    const limits = { lease: undefined, end: performance.now() + commitMs, idleMs: commitMs, isUpgrade: true };
    if (await this.tryChange(work, limits, migratedRowsAtOnce)) return;
    migrate(this.file.client, `${name} store`, migrations);
    this.file.reloadSchema();
    await this.replace();
  }
}

/** What a change has sent; known once it is committed. */
interface Sent {
  revision: number;
  commit_id: string;
  /** The last captured change included. */
  last: number;
}

interface ChangeLimits {
  lease: CommitFence | undefined;
  /** Deadline on the clock of `performance.now`. */
  end: number;
  idleMs: number;
  /** Whether an error of the change rolls everything back. */
  isAtomic?: boolean;
  /** Migrates the tables, also for commands whose own record would fail `assertNodeMayWrite`. */
  isUpgrade?: boolean;
  /** Runs first, before other nodes have to wait. */
  prepare?: ((t: Transaction) => Promise<void>) | undefined;
}

/** Opens a replica at a schema version; one that was migrated further, which was not committed, is deleted. */
function openReplica(path: string, { name, migrations }: ReplicatedStore, version: number): Database {
  let { $client: client } = openSqlite(path, {});
  if (schemaVersionHere(client) > version) {
    client.close();
    deleteSqlite(path);
    client = openSqlite(path, {}).$client;
  }
  // Mark the file before it contains any rows.
  markAsReplica(client);
  migrate(client, `${name} store`, migrations.slice(0, version));
  return client;
}

async function settled<Result>(
  run: () => Result | Promise<Result>,
): Promise<{ result: Result } | { error: unknown }> {
  try {
    return { result: await run() };
  } catch (error) {
    return { error };
  }
}

const leftUntil = (end: number): number => Math.max(1, Math.round(end - performance.now()));

function schemaVersionHere(client: Database): number {
  if (client.query("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migration'").get() === null) return 0;
  const found = client.query("SELECT coalesce(max(version), 0) AS version FROM schema_migration").get();
  return (found as { version: number }).version;
}

async function schemaVersionThere(postgres: Postgres, name: StoreName): Promise<number> {
  const [row] = await postgres.run(
    (sql) => sql`SELECT schema_version FROM flagkeep.store WHERE name = ${name}`,
  );
  return row!.schema_version;
}
