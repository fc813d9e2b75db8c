/**
 * A replica of a store in PostgreSQL: an SQLite file that this node reads like a standalone one. Replicas apply the
 * numbered commits in order. A writer locks the store's row, applies all commits and commits its rows before other
 * nodes are notified. Local changes that were not committed (a crash, a lost lease) are reverted from PostgreSQL.
 */

import type { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { AppError, OperatorActionError } from "../lib/errors.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { type Migration, migrate, NewerDataVersionError } from "../lib/sqlite/migrate.ts";
import { openSqlite } from "../lib/sqlite/open.ts";
import { ChangeCapture, type ChangedRows, type SharedRow } from "./change-capture.ts";
import {
  commitRows,
  compactCommits,
  compactedRows,
  pruneOld,
  rowsByKey,
  type StoreName,
  sendCommit,
} from "./commits.ts";
import { type Postgres, PostgresUnreachableError, type Transaction } from "./connection.ts";
import { assertLeaseHeld, type Lease } from "./lease.ts";
import { markAsReplica } from "./replica-marker.ts";

/** Timeout of a commit, including its lock. */
const commitMs = 60_000;
/** Maximum time for which a node that hangs during a commit blocks the others. */
const idleMsMax = 4_000;
const waitingMax = 10_000;

/** The replica belongs to another PostgreSQL, or to one that was restored to an earlier state. */
class HistoryMismatchError extends AppError {
  readonly code = "other_history";
}

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

export interface ReplicaCallbacks {
  /** Commits of other nodes were applied. @param isBack whether rows that were readable here were reverted */
  onTaken?: (isBack: boolean) => void;
}

export class StoreReplica {
  private readonly turn = new Semaphore({ total: 1, perKey: 1, waiting: waitingMax });
  private tables: ChangeCapture;
  private looking: Promise<void> | undefined;
  /** Local rows may differ from PostgreSQL. */
  private isAmbiguous = true;

  private constructor(
    private readonly client: Database,
    private readonly store: ReplicatedStore,
    private readonly postgres: Postgres,
    private readonly hooks: ReplicaCallbacks,
  ) {
    this.tables = new ChangeCapture(client);
  }

  /**
   * Creates or updates a replica, and migrates older tables in PostgreSQL to this version's schema.
   * @param path of an empty file or a replica
   * @throws {PostgresUnreachableError} @throws {NewerDataVersionError} @throws {NewerNodesError}
   */
  static async prepare(path: string, store: ReplicatedStore, postgres: Postgres): Promise<void> {
    const { name, migrations } = store;
    const newest = migrations.length;
    await postgres.run(
      (sql) =>
        sql`INSERT INTO flagkeep.store (name, schema_version, revision) VALUES (${name}, ${newest}, 0) ON CONFLICT DO NOTHING`,
    );
    const there = await schemaVersionThere(postgres, name);
    if (there > newest) throw new NewerDataVersionError(`${name} store in PostgreSQL`, there, newest);
    let { $client: client } = openSqlite(path, {});
    if (schemaVersionHere(client) > there) {
      // The local tables were migrated, but that was not committed.
      client.close();
      for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
      client = openSqlite(path, {}).$client;
    }
    try {
      // Mark the file before it contains any rows.
      markAsReplica(client);
      // Apply rows of an older schema as they are; `upgrade` migrates them with the tables.
      migrate(client, `${name} store`, migrations.slice(0, there));
      const copy = StoreReplica.attach(client, store, postgres);
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
    hooks: ReplicaCallbacks = {},
  ): StoreReplica {
    client.run("PRAGMA recursive_triggers = ON");
    markAsReplica(client);
    return new StoreReplica(client, store, postgres, hooks);
  }

  /** Applies all commits made before the call. @throws {PostgresUnreachableError} */
  async catchUp(): Promise<void> {
    const leave = await this.turn.enter(0, {});
    try {
      await this.readNewer();
    } catch (error) {
      if (!(error instanceof HistoryMismatchError)) throw error;
      this.clear();
      // Immediately: an empty replica must not be read as complete.
      await this.readNewer();
    } finally {
      leave();
    }
  }

  private async readNewer(): Promise<void> {
    await this.postgres.transaction(async (t) => {
      await t`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`;
      await this.takeOver(t, this.isAmbiguous ? "none" : "others");
      this.isAmbiguous = false;
    }, commitMs * 10);
  }

  /**
   * Like `catchUp`, for frequent readers: calls share a check that has not started, and if PostgreSQL is unreachable,
   * readers get the local state.
   */
  async look(): Promise<void> {
    this.looking ??= Promise.resolve().then(async () => {
      this.looking = undefined;
      const [row] = await this.postgres.run(
        (sql) => sql`SELECT revision FROM flagkeep.store WHERE name = ${this.store.name}`,
        1_000,
      );
      if (Number(row!.revision) !== this.state().revision || this.isAmbiguous) await this.catchUp();
    });
    await this.looking.catch(() => undefined);
  }

  /** Whether local changes are not committed yet. */
  get hasChanges(): boolean {
    return this.tables.hasChanges;
  }

  /**
   * Applies all commits, runs a change while no other node can change the store, and commits its rows. The change is
   * readable here before it is committed; keep it short.
   * @param lease must still be held @param withinMs total timeout, including waiting for other changes
   * @param idleMs how long a node that hangs within the change blocks the others
   * @throws {PostgresUnreachableError} nothing was changed, or the result is unknown; the replica is reconciled later
   * @throws {LeaseLostError} @throws errors of `run`, after committing what it changed
   * @throws {HistoryMismatchError} with a lease: what was read before belongs to another history
   */
  async change<Result>(
    run: (t: Transaction) => Result | Promise<Result>,
    lease?: Lease,
    withinMs = commitMs,
    idleMs = idleMsMax,
  ): Promise<Result> {
    const end = performance.now() + withinMs;
    try {
      return await this.tryChange(run, lease, end, idleMs);
    } catch (error) {
      // The mismatch is detected before `run` is called.
      if (!(error instanceof HistoryMismatchError) || lease !== undefined) throw error;
      await this.catchUp();
      return await this.tryChange(run, lease, end, idleMs);
    }
  }

  /** @param end deadline on the clock of `performance.now` */
  private async tryChange<Result>(
    run: (t: Transaction) => Result | Promise<Result>,
    lease: Lease | undefined,
    end: number,
    idleMs: number,
  ): Promise<Result> {
    const leave = await this.ownTurn(end);
    const commitId = crypto.randomUUID();
    let outcome: { result: Result } | { error: unknown } | undefined;
    let sent: { revision: number; changed: ChangedRows } | undefined;
    try {
      const work = async (t: Transaction) => {
        await this.lockStore(t);
        if (lease !== undefined) await assertLeaseHeld(t, lease);
        // The lease holder's uncommitted rows are newer than those in PostgreSQL.
        const preserved = lease !== undefined ? "all" : this.isAmbiguous ? "none" : "others";
        const newest = await this.takeOver(t, preserved);
        this.isAmbiguous = lease === undefined;
        outcome = await settled(() => run(t));
        const changed = this.tables.changed();
        if (changed.rows.length === 0) return;
        sent = { revision: newest + 1, changed };
        await sendCommit(t, {
          store: this.store.name,
          revision: newest + 1,
          id: commitId,
          rows: changed.rows,
        });
        // The change may have taken longer than the lease.
        if (lease !== undefined) await assertLeaseHeld(t, lease);
      };
      await this.postgres.transaction(work, leftUntil(end), idleMs);
      if (sent !== undefined) this.noteSent(sent, commitId);
      this.isAmbiguous = false;
    } finally {
      leave();
    }
    if ("error" in outcome!) throw outcome.error;
    return outcome!.result;
  }

  /** @throws {PostgresUnreachableError} earlier changes have not finished */
  private async ownTurn(end: number): Promise<() => void> {
    try {
      return await this.turn.enter(0, { signal: AbortSignal.timeout(leftUntil(end)) });
    } catch {
      const reason = new Error("other changes are waiting");
      throw new PostgresUnreachableError(this.postgres.address, reason);
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
    return this.state().revision;
  }

  private state(): { revision: number; commit_id: string | null } {
    return this.client
      .query<{ revision: number; commit_id: string | null }, []>("SELECT revision, commit_id FROM copy_state")
      .get()!;
  }

  private async lockStore(t: Transaction): Promise<void> {
    const { name, migrations } = this.store;
    const [row] = await t`SELECT schema_version FROM flagkeep.store WHERE name = ${name} FOR UPDATE`;
    if (row!.schema_version > migrations.length) throw new NewerNodesError(name);
  }

  /**
   * Applies all newer commits.
   * @param preserved uncommitted local rows to keep: all; those that no other node has changed ("others", for writes without
   * a lease such as a key's last use); or none
   * @returns the newest commit @throws {HistoryMismatchError}
   */
  private async takeOver(t: Transaction, preserved: "all" | "others" | "none"): Promise<number> {
    const { name } = this.store;
    const { revision: here, commit_id } = this.state();
    const [row] = await t`SELECT revision, folded, told_from,
        (SELECT id FROM flagkeep.commit c WHERE c.store = s.name AND c.revision = s.revision) AS newest,
        (SELECT id FROM flagkeep.commit c WHERE c.store = s.name AND c.revision = ${here}) AS known
      FROM flagkeep.store s WHERE name = ${name}`;
    const there = Number(row!.revision);
    const folded = Number(row!.folded);
    if (here > 0 && (here > there || row!.known !== commit_id || here < Number(row!.told_from)))
      throw new HistoryMismatchError(`The copy of the ${name} store has diverged.`);
    const mine = this.tables.unshipped();
    const takesBack = preserved === "none" && mine.length > 0;
    if (here === there && !takesBack) return there;
    const own = new Set(mine.map(getName));
    let isBack = takesBack || here === 0;
    const take = (rows: readonly SharedRow[]) => {
      if (preserved === "all") return this.write(rows.filter((one) => !own.has(getName(one))));
      const lost = rows.filter((one) => own.has(getName(one)));
      isBack ||= lost.length > 0;
      this.write(rows, lost);
    };
    if (takesBack)
      for await (const rows of rowsByKey(t, name, [...mine, ...this.tables.numberKeys()])) take(rows);
    if (here < folded) for await (const rows of compactedRows(t, name, here)) take(rows);
    // Any commit that is not compacted may have written the reverted rows.
    const from = takesBack ? folded : Math.max(here, folded);
    for await (const rows of commitRows(t, name, from)) take(rows);
    this.client
      .transaction(() => {
        if (takesBack) this.client.run("DELETE FROM copy_changed");
        this.client.run("UPDATE copy_state SET revision = ?, commit_id = ?", [there, row!.newest]);
      })
      .immediate();
    this.hooks.onTaken?.(isBack);
    return there;
  }

  /** Foreign keys are off because rows come in commit order. @param lost rows whose local changes are discarded */
  private write(rows: readonly SharedRow[], lost: readonly SharedRow[] = []): void {
    this.client.run("PRAGMA foreign_keys = OFF");
    try {
      this.client
        .transaction(() => {
          this.tables.write(rows);
          this.tables.forgetRows(lost);
        })
        .immediate();
    } finally {
      this.client.run("PRAGMA foreign_keys = ON");
    }
  }

  private noteSent(sent: { revision: number; changed: ChangedRows }, commitId: string): void {
    this.client
      .transaction(() => {
        this.tables.forget(sent.changed);
        this.client.run("UPDATE copy_state SET revision = ?, commit_id = ?", [sent.revision, commitId]);
      })
      .immediate();
  }

  /** Empties the replica, so that it is read again from the start. */
  private clear(): void {
    this.tables.markAll();
    this.write(this.tables.unshipped().map((row) => ({ ...row, body: null })));
    this.client.run("DELETE FROM copy_changed");
    this.client.run("UPDATE copy_state SET revision = 0, commit_id = NULL");
  }

  /** Migrates the tables here and in PostgreSQL; only the first node does the latter. */
  private async upgrade(from: number): Promise<void> {
    const { name, migrations } = this.store;
    const work = async (t: Transaction) => {
      const [row] = await t`SELECT schema_version FROM flagkeep.store WHERE name = ${name}`;
      if (row!.schema_version !== from) return false;
      migrate(this.client, `${name} store`, migrations);
      this.tables = new ChangeCapture(this.client);
      this.tables.markAll();
      await t`UPDATE flagkeep.store SET schema_version = ${migrations.length} WHERE name = ${name}`;
      return true;
    };
    // All rows are migrated between two statements.
    if (await this.change(work, undefined, commitMs, commitMs)) return;
    migrate(this.client, `${name} store`, migrations);
    this.tables = new ChangeCapture(this.client);
    this.clear();
    await this.catchUp();
  }
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

const getName = ({ tbl, key }: Pick<SharedRow, "tbl" | "key">) => `${tbl} ${key}`;

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
