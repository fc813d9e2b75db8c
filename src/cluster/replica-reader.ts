/**
 * Applies newer rows from PostgreSQL to the file of a replica. Many rows are read in pages of their own transactions,
 * each with a timeout, so that a copy of any size ends and an interrupted one resumes; the last few commits in one.
 */

import { AppError } from "../lib/errors.ts";
import type { SharedRow } from "./change-capture.ts";
import {
  commitPage,
  commitRows,
  commitsAtOnce,
  compactedPage,
  compactedRows,
  rowsAfter,
  rowsByKey,
  type StoreName,
} from "./commits.ts";
import type { Postgres, Transaction } from "./connection.ts";
import type { CopyPosition, ReplicaFile } from "./replica-file.ts";

/** Timeout of reading one page. Any number of pages may follow. */
export const pageMs = 10_000;
/** Pages of compacted rows per transaction: a long one would keep PostgreSQL from removing old row versions. */
const pagesAtOnce = 10;
/** Interval of `onCopying`. */
const reportEveryMs = 5_000;

/** The replica belongs to another PostgreSQL, or to one that was restored to an earlier state. */
export class HistoryMismatchError extends AppError {
  readonly code = "other_history";
}

export interface ReplicaCallbacks {
  /** Commits of other nodes were applied. @param isBack whether rows that were readable here were reverted */
  onApplied?: (isBack: boolean) => void;
  /** All rows are being copied; called every few seconds. */
  onCopying?: (progress: CopyProgress) => void;
}

/** Rows copied, and approximately how many there are. */
export type CopyProgress = Pick<CopyPosition, "done" | "total">;

export const describeProgress = ({ done, total }: CopyProgress): string =>
  `${done} of about ${Math.max(done, total)} rows`;

export class ReplicaReader {
  /** Rows were applied without `onApplied`; the value is its argument. */
  private isBackPending: boolean | undefined;
  private reportedAt = performance.now();

  constructor(
    private readonly file: ReplicaFile,
    private readonly store: { readonly name: StoreName },
    private readonly postgres: Postgres,
    private readonly callbacks: ReplicaCallbacks,
  ) {}

  /**
   * Applies some of many newer rows, so that an interrupted copy resumes there. Rows that are compacted meanwhile come
   * after the position.
   * @returns whether there may be more; a few remaining commits are left to `sync` @throws {HistoryMismatchError}
   */
  async readPages(): Promise<boolean> {
    return await this.postgres.transaction(async (t, extend) => {
      await t`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY`;
      const { there, compacted, unsentFrom, newest, compactedId } = await this.head(t);
      const { name } = this.store;
      let { position } = this.file;
      const here = this.file.state.revision;
      if (position === undefined && here >= compacted) {
        if (there - here <= commitsAtOnce) return false;
        const commits = await commitPage(t, name, here);
        const { revision, id } = commits.at(-1)!;
        const rows = commits.flatMap((commit) => commit.rows);
        this.applyPage(rows, () => this.file.setState({ revision, commit_id: id }));
        return true;
      }
      position ??= {
        after: rowsAfter(here),
        done: 0,
        total: await this.countRows(t),
        unsentFrom,
        seen: { revision: there, commit_id: newest },
      };
      for (let page = 0; page < pagesAtOnce; page++) {
        const { rows, next } = await compactedPage(t, name, position.after);
        extend();
        const done = position.done + rows.length;
        if (next === undefined) {
          this.applyPage(rows, () => this.file.setState({ revision: compacted, commit_id: compactedId }));
          return true;
        }
        const seen = { revision: there, commit_id: newest };
        const lastSeq: CopyPosition = { ...position, after: next, done, seen };
        this.applyPage(rows, () => this.file.setPosition(lastSeq));
        position = lastSeq;
        this.reportCopying(lastSeq);
      }
      return true;
    }, pageMs);
  }

  private applyPage(rows: readonly SharedRow[], then: () => void): void {
    const own = new Set(this.file.tables.unshipped().map(getName));
    const lost = rows.filter((row) => own.has(getName(row)));
    this.isBackPending = this.isBackPending === true || lost.length > 0 || this.file.state.revision === 0;
    this.file.write(rows, lost, then);
  }

  /** An estimate: counting many millions of rows takes too long. */
  private async countRows(t: Transaction): Promise<number> {
    const [row] = await t`EXPLAIN (FORMAT JSON) SELECT 1 FROM flagkeep.row WHERE store = ${this.store.name}`;
    const plan = row!["QUERY PLAN"];
    const [{ Plan }] = typeof plan === "string" ? JSON.parse(plan) : plan;
    return Plan["Plan Rows"];
  }

  private reportCopying({ done, total }: CopyProgress): void {
    if (performance.now() - this.reportedAt < reportEveryMs) return;
    this.reportedAt = performance.now();
    this.callbacks.onCopying?.({ done, total });
  }

  /**
   * Applies all newer commits.
   * @param preserved uncommitted local rows to keep: all; those that no other node has changed ("others", for writes without
   * a lease such as a key's last use); or none
   * @returns the newest commit @throws {HistoryMismatchError}
   */
  async sync(
    t: Transaction,
    preserved: "all" | "others" | "none",
    extend: () => void = () => undefined,
  ): Promise<number> {
    const { name } = this.store;
    const { there, compacted, newest } = await this.head(t);
    const here = this.file.state.revision;
    const mine = this.file.tables.unshipped();
    const cancels = preserved === "none" && mine.length > 0;
    if (here === there && !cancels) {
      this.reportApplied(undefined);
      return there;
    }
    const own = new Set(mine.map(getName));
    let isBack = cancels || here === 0;
    const apply = (rows: readonly SharedRow[]) => {
      extend();
      if (preserved === "all") return this.file.write(rows.filter((row) => !own.has(getName(row))));
      const lost = rows.filter((row) => own.has(getName(row)));
      isBack ||= lost.length > 0;
      this.file.write(rows, lost);
    };
    if (cancels)
      for await (const rows of rowsByKey(t, name, [...mine, ...this.file.tables.numberKeys()])) apply(rows);
    if (here < compacted) for await (const rows of compactedRows(t, name, here)) apply(rows);
    // Any commit that is not compacted may have written the reverted rows.
    const from = cancels ? compacted : Math.max(here, compacted);
    for await (const rows of commitRows(t, name, from)) apply(rows);
    this.file.client
      .transaction(() => {
        if (cancels) this.file.client.run("DELETE FROM copy_changed");
        this.file.setState({ revision: there, commit_id: newest });
      })
      .immediate();
    this.reportApplied(isBack);
    return there;
  }

  /** @param isBack undefined: nothing was applied since the last page */
  private reportApplied(isBack: boolean | undefined): void {
    const pending = this.isBackPending;
    this.isBackPending = undefined;
    if (isBack !== undefined || pending !== undefined)
      this.callbacks.onApplied?.(isBack === true || pending === true);
  }

  /** The newest commit, and up to which one the rows are compacted. @throws {HistoryMismatchError} */
  private async head(t: Transaction) {
    const { name } = this.store;
    const { position, state } = this.file;
    const known = position?.seen ?? state;
    const [row] = await t`SELECT revision, folded AS compacted, told_from,
        (SELECT id FROM flagkeep.commit c WHERE c.store = s.name AND c.revision = s.revision) AS newest,
        (SELECT id FROM flagkeep.commit c WHERE c.store = s.name AND c.revision = s.folded) AS compacted_id,
        (SELECT id FROM flagkeep.commit c WHERE c.store = s.name AND c.revision = ${known.revision}) AS known
      FROM flagkeep.store s WHERE name = ${name}`;
    const there = Number(row!.revision);
    const unsentFrom = Number(row!.told_from);
    const isOther = known.revision > 0 && (known.revision > there || row!.known !== known.commit_id);
    // Rows deleted after they were copied are unknown if their tombstones are deleted.
    const isTooOld =
      position === undefined
        ? state.revision > 0 && state.revision < unsentFrom
        : unsentFrom > position.unsentFrom && unsentFrom > position.after.revision;
    if (isOther || isTooOld) throw new HistoryMismatchError(`The copy of the ${name} store has diverged.`);
    return {
      there,
      compacted: Number(row!.compacted),
      unsentFrom,
      newest: row!.newest as string | null,
      compactedId: row!.compacted_id as string | null,
    };
  }
}

const getName = ({ tbl, key }: Pick<SharedRow, "tbl" | "key">) => `${tbl} ${key}`;
