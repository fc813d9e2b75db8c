/**
 * Commits of a store in PostgreSQL. A new commit is one compressed value; compaction writes it to single rows later,
 * which is cheap if the same rows change repeatedly.
 */

import type { SharedRow } from "./change-capture.ts";
import type { Postgres, Transaction } from "./connection.ts";

export type StoreName = "metadata" | "people";

/** NOTIFY channel; the payload is the name of the changed store. */
export const changeChannel = "flagkeep_store";

/** Rows per read: a person can have 0.5 MB. */
const rowsAtOnce = 500;
/** Commits per read. */
export const commitsAtOnce = 16;
/** Maximum rows and characters per statement. */
const rowsPerStatement = 5_000;
const charactersPerStatement = 8 * 1024 * 1024;
/** Characters of rows compacted per transaction, about a second: loading waits for it (`safe-number.ts`). */
const compactedCharactersMax = 16 * 1024 * 1024;
/** How long deleted rows and commit IDs are retained. */
const reportedFor = "1 day";
const tidyMs = 120_000;
/** Smaller commits are compressed synchronously: a thread costs more. */
const syncCharactersMax = 64 * 1024;
const compression = { level: 1 } as const;
/**
 * Table of changes to copy to the event store. Its rows are not needed afterwards, and a commit is compacted only then,
 * so they never become single rows.
 */
const transientTable = "change";

/** Whether compaction writes the row to PostgreSQL's table of single rows. */
export const isRowStored = ({ tbl }: Pick<SharedRow, "tbl">) => tbl !== transientTable;

export interface Commit {
  store: StoreName;
  revision: number;
  /** Random: identifies the history that the commit belongs to. */
  id: string;
  rows: readonly SharedRow[];
}

/** A commit with its time, later than that of the previous one. */
export type NewCommit = Commit & { at: Date };

/** Appends a commit; the caller holds the lock of the store's row. */
export async function sendCommit(
  t: Transaction,
  { store, revision, id, rows, at }: NewCommit,
): Promise<void> {
  const text = Buffer.from(rows.map(({ tbl, key, body }) => `${tbl}\t${key}\t${body ?? ""}\n`).join(""));
  const body =
    text.length <= syncCharactersMax
      ? Bun.zstdCompressSync(text, compression)
      : await Bun.zstdCompress(text, compression);
  await t`
    WITH counted AS (UPDATE flagkeep.store SET revision = ${revision}, last_at = ${at} WHERE name = ${store})
    INSERT INTO flagkeep.commit (store, revision, id, body) VALUES (${store}, ${revision}, ${id}, ${body as Buffer})`;
  await t`SELECT pg_notify(${changeChannel}, ${store})`;
}

/** Rows of all commits after a revision that is compacted or already applied, in order. */
export async function* commitRows(
  t: Transaction,
  store: StoreName,
  after: number,
): AsyncGenerator<readonly SharedRow[]> {
  for await (const { rows } of commitsAfter(t, store, after)) yield rows;
}

async function* commitsAfter(t: Transaction, store: StoreName, after: number) {
  for (let last = after; ; ) {
    const commits = await commitPage(t, store, last);
    for (const commit of commits) {
      last = commit.revision;
      yield commit;
    }
    if (commits.length < commitsAtOnce) return;
  }
}

/** The first commits after a revision that is compacted or already applied, at most `commitsAtOnce`. */
export async function commitPage(t: Transaction, store: StoreName, after: number): Promise<Commit[]> {
  const commits = await t`SELECT revision, id, body FROM flagkeep.commit
    WHERE store = ${store} AND revision > ${after} AND body IS NOT NULL ORDER BY revision LIMIT ${commitsAtOnce}`;
  return commits.map(({ revision, id, body }) => ({
    store,
    revision: Number(revision),
    id,
    rows: getRows(body as Uint8Array),
  }));
}

/** Table names, keys and JSON never contain a raw tab or line feed. */
function getRows(body: Uint8Array): SharedRow[] {
  const rows: SharedRow[] = [];
  for (const line of Bun.zstdDecompressSync(body).toString("utf8").split("\n")) {
    if (line === "") continue;
    const first = line.indexOf("\t");
    const second = line.indexOf("\t", line.indexOf("\t") + 1);
    const text = line.slice(second + 1);
    rows.push({
      tbl: line.slice(0, first),
      key: line.slice(first + 1, second),
      body: text === "" ? null : text,
    });
  }
  return rows;
}

/** Position in the compacted rows, which are read in the order of revision, table and hash of the key. */
export interface RowPosition {
  revision: number;
  tbl: string;
  hash: Buffer;
}

/** Before the first row that was written after a revision. */
export const rowsAfter = (revision: number): RowPosition => ({
  revision: revision + 1,
  tbl: "",
  hash: Buffer.alloc(0),
});

/** The compacted rows after a position. @returns also the position of the last one; undefined if there are no more */
export async function compactedPage(
  t: Transaction,
  store: StoreName,
  { revision, tbl, hash }: RowPosition,
): Promise<{ rows: SharedRow[]; next: RowPosition | undefined }> {
  const rows = await t<(SharedRow & { revision: string; key_hash: Buffer })[]>`
    SELECT tbl, key, body, revision, key_hash FROM flagkeep.row
    WHERE store = ${store} AND (revision, tbl, key_hash) > (${revision}, ${tbl}, ${hash})
    ORDER BY revision, tbl, key_hash LIMIT ${rowsAtOnce}`;
  if (rows.length < rowsAtOnce) return { rows, next: undefined };
  const last = rows.at(-1)!;
  return { rows, next: { revision: Number(last.revision), tbl: last.tbl, hash: last.key_hash } };
}

/** Compacted rows written after a revision, in commit order. */
export async function* compactedRows(
  t: Transaction,
  store: StoreName,
  after: number,
): AsyncGenerator<SharedRow[]> {
  for (let at: RowPosition | undefined = rowsAfter(after); at !== undefined; ) {
    const page = await compactedPage(t, store, at);
    yield page.rows;
    at = page.next;
  }
}

/** The current rows of a small table; reads every commit that is not compacted. */
export async function tableRows(t: Transaction, store: StoreName, tbl: string): Promise<SharedRow[]> {
  const [progress] = await t`SELECT folded AS compacted FROM flagkeep.store WHERE name = ${store}`;
  if (progress === undefined) return [];
  const compacted = await t<SharedRow[]>`
    SELECT tbl, key, body FROM flagkeep.row WHERE store = ${store} AND tbl = ${tbl}`;
  const rows = new Map(compacted.map((row) => [row.key, row]));
  for await (const part of commitRows(t, store, Number(progress.compacted)))
    for (const row of part) if (row.tbl === tbl) rows.set(row.key, row);
  return [...rows.values()].filter(({ body }) => body !== null);
}

/** Compacted rows by key; missing ones have a null body. */
export async function* rowsByKey(
  t: Transaction,
  store: StoreName,
  keys: readonly Pick<SharedRow, "tbl" | "key">[],
): AsyncGenerator<SharedRow[]> {
  for (let start = 0; start < keys.length; start += rowsAtOnce) {
    const part = keys.slice(start, start + rowsAtOnce);
    yield [
      ...(await t<SharedRow[]>`
        SELECT w.tbl, w.key, r.body FROM unnest(${part.map(({ tbl }) => tbl)}::text[], ${part.map(({ key }) => key)}::text[]) AS w(tbl, key)
        LEFT JOIN flagkeep.row r ON r.store = ${store} AND r.tbl = w.tbl AND r.key_hash = sha256(convert_to(w.key, 'UTF8'))`),
    ];
  }
}

/** Records that all changes of persons up to a revision are in the event store. */
export async function markMirrored(postgres: Postgres, revision: number): Promise<void> {
  await postgres.run(
    (sql) => sql`UPDATE flagkeep.store SET mirrored = greatest(mirrored, ${revision}) WHERE name = 'people'`,
  );
}

/** Compacts commits into single rows, in batches. @param waits for a process that is compacting; default: skips it */
export async function compactCommits(postgres: Postgres, store: StoreName, waits = false): Promise<void> {
  const lock = `flagkeep fold ${store}`;
  for (let isMore = true; isMore; ) {
    isMore = await postgres.transaction(async (t) => {
      if (waits) await t`SELECT pg_advisory_xact_lock(hashtext(${lock}))`;
      const [own] = await t`SELECT pg_try_advisory_xact_lock(hashtext(${lock})) AS held`;
      if (!own!.held) return false;
      const [progress] =
        await t`SELECT folded AS compacted, mirrored AS copied FROM flagkeep.store WHERE name = ${store}`;
      const until = store === "people" ? Number(progress!.copied) : Number.POSITIVE_INFINITY;
      const newest = new Map<string, SharedRow & { revision: number }>();
      let characters = 0;
      let last = Number(progress!.compacted);
      const before = last;
      for await (const { revision, rows } of commitsAfter(t, store, last)) {
        if (revision > until) break;
        for (const row of rows.filter(isRowStored)) {
          newest.set(`${row.tbl} ${row.key}`, { ...row, revision });
          characters += row.body?.length ?? 0;
        }
        last = revision;
        if (characters > compactedCharactersMax) break;
      }
      if (last === before) return false;
      await writeRows(t, store, [...newest.values()]);
      await t`UPDATE flagkeep.commit SET body = NULL WHERE store = ${store} AND revision > ${before} AND revision <= ${last}`;
      await t`UPDATE flagkeep.store SET folded = ${last} WHERE name = ${store}`;
      return characters > compactedCharactersMax;
    }, tidyMs);
  }
}

/** Writes single rows in their state after a commit. */
export async function writeRows(
  t: Transaction,
  store: StoreName,
  rows: readonly (SharedRow & { revision: number })[],
): Promise<void> {
  for (let start = 0; start < rows.length; ) {
    let end = start;
    for (
      let size = 0;
      end < rows.length && end - start < rowsPerStatement && size < charactersPerStatement;
      end++
    )
      size += rows[end]!.key.length + (rows[end]!.body?.length ?? 0);
    const part = rows.slice(start, end);
    await t`
      INSERT INTO flagkeep.row (store, tbl, key_hash, key, body, revision)
      SELECT ${store}, tbl, sha256(convert_to(key, 'UTF8')), key, body, revision::bigint
      FROM unnest(${part.map(({ tbl }) => tbl)}::text[], ${part.map(({ key }) => key)}::text[],
        ${part.map(({ body }) => body)}::text[], ${part.map(({ revision }) => String(revision))}::text[]) AS u(tbl, key, body, revision)
      ON CONFLICT (store, tbl, key_hash) DO UPDATE SET body = excluded.body, revision = excluded.revision`;
    start = end;
  }
}

/** Deletes the tombstones of rows and the IDs of compacted commits after `toldFor`. */
export async function pruneOld(postgres: Postgres, store: StoreName): Promise<void> {
  await postgres.transaction(async (t) => {
    const [last] = await t`SELECT max(revision) AS revision FROM flagkeep.commit
      WHERE store = ${store} AND body IS NULL AND at < clock_timestamp() - ${reportedFor}::interval`;
    if (last?.revision === null) return;
    await t`SELECT 1 FROM flagkeep.store WHERE name = ${store} FOR UPDATE`;
    await t`UPDATE flagkeep.store SET told_from = greatest(told_from, ${last!.revision}) WHERE name = ${store}`;
    await t`DELETE FROM flagkeep.row WHERE store = ${store} AND body IS NULL AND revision <= ${last!.revision}`;
    await t`DELETE FROM flagkeep.commit WHERE store = ${store} AND revision < ${last!.revision}`;
  }, tidyMs);
}
