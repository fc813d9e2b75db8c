/**
 * A copy of a store whose rows are in PostgreSQL: an SQLite file that this front reads as if it were alone.
 *
 * Every commit there has a number. A copy takes over what it lacks, in order; whoever changes something holds the lock of
 * the store's row, has taken over everything, and its rows are committed there before anybody is told. What is in the copy and
 * did not get there (a crash, a lost lease) is taken back from there.
 */

import type { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { AppError, OperatorNeeded } from "../lib/errors.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { DataFromNewerVersion, type Migration, migrate } from "../lib/sqlite/migrate.ts";
import { openSqlite } from "../lib/sqlite/open.ts";
import { CapturedTables, type ChangedRows, type SharedRow } from "./captured-tables.ts";
import {
  commitRows,
  foldCommits,
  foldedRows,
  forgetOld,
  rowsByKey,
  type StoreName,
  sendCommit,
} from "./commits.ts";
import { type Postgres, PostgresUnreachable, type Transaction } from "./connection.ts";
import { markAsCopy } from "./copy-mark.ts";
import { type Lease, requireLease } from "./lease.ts";

/** How long a commit may take, its lock and all. */
const commitMs = 60_000;
/** A front that hangs in the middle of a commit holds the others up for no longer than this. */
const idleMs = 4_000;
const waitingMax = 10_000;

/** The copy is of another PostgreSQL, or of one that was set back. */
class OtherHistory extends AppError {
  readonly code = "other_history";
}

/** Another front runs a newer version, which has changed the tables. */
class NewerFronts extends OperatorNeeded {
  readonly code = "newer_fronts";
  override readonly hint = "Start the newer version here, too.";
  constructor(store: StoreName) {
    super(`A newer version of Flagkeep has brought the store of ${store} up to date.`);
  }
}

export interface CopiedStore {
  readonly name: StoreName;
  readonly migrations: readonly Migration[];
}

export interface CopyHooks {
  /** Rows of others were taken over. @param isBack rows that were read here have become what they never were here. */
  onTaken?: (isBack: boolean) => void;
}

export class StoreCopy {
  private readonly turn = new Semaphore({ total: 1, perKey: 1, waiting: waitingMax });
  private tables: CapturedTables;
  private looking: Promise<void> | undefined;
  /** Rows here may differ from those there. */
  private isDoubtful = true;

  private constructor(
    private readonly client: Database,
    private readonly store: CopiedStore,
    private readonly postgres: Postgres,
    private readonly hooks: CopyHooks,
  ) {
    this.tables = new CapturedTables(client);
  }

  /**
   * Makes a file a copy of what PostgreSQL has, or brings one up to date; the tables are brought to this version's schema
   * there, where they are older.
   *
   * @param path a file that has no tables yet, or is a copy. @throws {PostgresUnreachable} @throws {DataFromNewerVersion} @throws {NewerFronts}
   */
  static async prepare(path: string, store: CopiedStore, postgres: Postgres): Promise<void> {
    const { name, migrations } = store;
    const newest = migrations.length;
    await postgres.run(
      (sql) =>
        sql`INSERT INTO flagkeep.store (name, schema_version, revision) VALUES (${name}, ${newest}, 0) ON CONFLICT DO NOTHING`,
    );
    const there = await schemaVersionThere(postgres, name);
    if (there > newest) throw new DataFromNewerVersion(`store of ${name} in PostgreSQL`, there, newest);
    let { $client: client } = openSqlite(path, {});
    if (schemaVersionHere(client) > there) {
      // Its tables were changed here, but that did not get there.
      client.close();
      for (const suffix of ["", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
      client = openSqlite(path, {}).$client;
    }
    try {
      // Known as a copy before it holds anything.
      markAsCopy(client);
      // Rows of an older schema are taken over as they are, and changed with the tables.
      migrate(client, `store of ${name}`, migrations.slice(0, there));
      const copy = StoreCopy.attach(client, store, postgres);
      await copy.catchUp();
      if (there < newest) await copy.upgrade(there);
    } finally {
      client.close();
    }
  }

  /** @param client a copy that `prepare` has made, open for writing. */
  static attach(client: Database, store: CopiedStore, postgres: Postgres, hooks: CopyHooks = {}): StoreCopy {
    client.run("PRAGMA recursive_triggers = ON");
    markAsCopy(client);
    return new StoreCopy(client, store, postgres, hooks);
  }

  /** Takes over what others have committed before the call. @throws {PostgresUnreachable} */
  async catchUp(): Promise<void> {
    const leave = await this.turn.enter(0, {});
    try {
      await this.readNewer();
    } catch (error) {
      if (!(error instanceof OtherHistory)) throw error;
      this.forgetAll();
      // At once: an empty copy is not to be taken for everything.
      await this.readNewer();
    } finally {
      leave();
    }
  }

  private async readNewer(): Promise<void> {
    await this.postgres.transaction(async (t) => {
      await t`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`;
      await this.takeOver(t, this.isDoubtful ? "none" : "others");
      this.isDoubtful = false;
    }, commitMs * 10);
  }

  /**
   * As `catchUp`, for those who only want to read and are many: one look serves all who ask while it has not begun, and
   * where PostgreSQL is away, what is here is what there is.
   */
  async look(): Promise<void> {
    this.looking ??= Promise.resolve().then(async () => {
      this.looking = undefined;
      const [row] = await this.postgres.run(
        (sql) => sql`SELECT revision FROM flagkeep.store WHERE name = ${this.store.name}`,
        1_000,
      );
      if (Number(row!.revision) !== this.state().revision || this.isDoubtful) await this.catchUp();
    });
    await this.looking.catch(() => undefined);
  }

  /** Whether something changed here that is not committed there. */
  get hasChanges(): boolean {
    return this.tables.hasChanges;
  }

  /**
   * Runs a change with the newest rows, while no other front changes anything, and commits what it changed there.
   *
   * What it changes can be read here before it is committed there. It must not take long.
   *
   * @param lease has to be held still.
   * @param withinMs for so long it is tried, waiting for others included.
   * @throws {PostgresUnreachable} nothing was changed, or it is not known; what is here is brought in line later.
   * @throws {LeaseLost} @throws what `run` throws; what it changed before is committed.
   * @throws {OtherHistory} while a lease is held: what was read before it began was of another history.
   */
  async change<Result>(
    run: (t: Transaction) => Result | Promise<Result>,
    lease?: Lease,
    withinMs = commitMs,
  ): Promise<Result> {
    const end = performance.now() + withinMs;
    try {
      return await this.tryChange(run, lease, end);
    } catch (error) {
      // Nothing has run: it is found before.
      if (!(error instanceof OtherHistory) || lease !== undefined) throw error;
      await this.catchUp();
      return await this.tryChange(run, lease, end);
    }
  }

  /** @param end of `performance.now`: it is not tried any longer. */
  private async tryChange<Result>(
    run: (t: Transaction) => Result | Promise<Result>,
    lease: Lease | undefined,
    end: number,
  ): Promise<Result> {
    const leave = await this.ownTurn(end);
    const commitId = crypto.randomUUID();
    let outcome: { result: Result } | { error: unknown } | undefined;
    let sent: { revision: number; changed: ChangedRows } | undefined;
    try {
      const work = async (t: Transaction) => {
        await this.lockStore(t);
        if (lease !== undefined) await requireLease(t, lease);
        // The holder's own rows that are not there yet are newer than what is there.
        const kept = lease !== undefined ? "all" : this.isDoubtful ? "none" : "others";
        const newest = await this.takeOver(t, kept);
        this.isDoubtful = lease === undefined;
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
        // It may have taken longer than the lease lasts.
        if (lease !== undefined) await requireLease(t, lease);
      };
      await this.postgres.transaction(work, leftUntil(end), lease === undefined ? commitMs : idleMs);
      if (sent !== undefined) this.noteSent(sent, commitId);
      this.isDoubtful = false;
    } finally {
      leave();
    }
    if ("error" in outcome!) throw outcome.error;
    return outcome!.result;
  }

  /** @throws {PostgresUnreachable} changes before this one have not come to an end. */
  private async ownTurn(end: number): Promise<() => void> {
    try {
      return await this.turn.enter(0, { signal: AbortSignal.timeout(leftUntil(end)) });
    } catch {
      const reason = new Error("other changes wait for it");
      throw new PostgresUnreachable(this.postgres.address, reason);
    }
  }

  /**
   * Brings the rows in PostgreSQL up to date with the commits, so that a new copy need not read them all; and forgets what
   * has been gone for long. Call it now and then; of several fronts only one does it.
   */
  async tidy(): Promise<void> {
    await foldCommits(this.postgres, this.store.name);
    await forgetOld(this.postgres, this.store.name);
  }

  /** The newest commit that is here. */
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
    if (row!.schema_version > migrations.length) throw new NewerFronts(name);
  }

  /**
   * Writes the rows of all commits that are not here yet.
   *
   * @param kept which of the rows that were changed here, and are not there, stay as they are: all; those that nobody else
   *   has changed meanwhile, for who holds no lease has written them without the newest, such as when a key was last used;
   *   or none.
   * @returns the newest commit. @throws {OtherHistory}
   */
  private async takeOver(t: Transaction, kept: "all" | "others" | "none"): Promise<number> {
    const { name } = this.store;
    const { revision: here, commit_id } = this.state();
    const [row] = await t`SELECT revision, folded, told_from,
        (SELECT id FROM flagkeep.commit c WHERE c.store = s.name AND c.revision = s.revision) AS newest,
        (SELECT id FROM flagkeep.commit c WHERE c.store = s.name AND c.revision = ${here}) AS known
      FROM flagkeep.store s WHERE name = ${name}`;
    const there = Number(row!.revision);
    const folded = Number(row!.folded);
    if (here > 0 && (here > there || row!.known !== commit_id || here < Number(row!.told_from)))
      throw new OtherHistory(`The copy of the store of ${name} has another history.`);
    const mine = this.tables.unshipped();
    const takesBack = kept === "none" && mine.length > 0;
    if (here === there && !takesBack) return there;
    const own = new Set(mine.map(nameOf));
    let isBack = takesBack || here === 0;
    const take = (rows: readonly SharedRow[]) => {
      if (kept === "all") return this.write(rows.filter((one) => !own.has(nameOf(one))));
      const lost = rows.filter((one) => own.has(nameOf(one)));
      isBack ||= lost.length > 0;
      this.write(rows, lost);
    };
    if (takesBack)
      for await (const rows of rowsByKey(t, name, [...mine, ...this.tables.numberKeys()])) take(rows);
    if (here < folded) for await (const rows of foldedRows(t, name, here)) take(rows);
    // What is taken back may have been written by any commit that is not folded yet.
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

  /** Rows come in the order of their commits, not in that of their references. @param lost what was changed here of them */
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

  /** Empties the copy, which is to be read anew. */
  private forgetAll(): void {
    this.tables.markAll();
    this.write(this.tables.unshipped().map((row) => ({ ...row, body: null })));
    this.client.run("DELETE FROM copy_changed");
    this.client.run("UPDATE copy_state SET revision = 0, commit_id = NULL");
  }

  /** Brings the tables to this version's schema, here and there; only one front does. */
  private async upgrade(from: number): Promise<void> {
    const { name, migrations } = this.store;
    const isFirst = await this.change(async (t) => {
      const [row] = await t`SELECT schema_version FROM flagkeep.store WHERE name = ${name}`;
      if (row!.schema_version !== from) return false;
      migrate(this.client, `store of ${name}`, migrations);
      this.tables = new CapturedTables(this.client);
      this.tables.markAll();
      await t`UPDATE flagkeep.store SET schema_version = ${migrations.length} WHERE name = ${name}`;
      return true;
    });
    if (isFirst) return;
    migrate(this.client, `store of ${name}`, migrations);
    this.tables = new CapturedTables(this.client);
    this.forgetAll();
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

const nameOf = ({ tbl, key }: Pick<SharedRow, "tbl" | "key">) => `${tbl} ${key}`;

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
