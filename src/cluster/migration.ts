/**
 * Migrates the stores of a data directory to PostgreSQL and back. The SQLite file records which rows were copied, so an
 * interrupted migration resumes; changes made meanwhile are captured by the triggers that nodes use.
 */

import type { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import type { Sql } from "postgres";
import { type Lane, lanes } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";
import { openSqlite } from "../lib/sqlite.ts";
import { ChangeCapture, type SharedRow } from "./change-capture.ts";
import { isRowStored, writeRows } from "./commits.ts";
import type { Postgres, Transaction } from "./connection.ts";
import { ClusterMigrationError, migrationName, readNodeState, returnedName } from "./layout.ts";
import { fenceLease } from "./lease.ts";
import { nodeTimeoutMs } from "./nodes.ts";
import { ReplicaFile } from "./replica-file.ts";
import { addRowHashes, noRows, rowHash, rowHashSql } from "./row-hashes.ts";
import type { ReplicatedStore } from "./store-replica.ts";
import { assertNothingPending, lockStores } from "./write-check.ts";

/** Rows in PostgreSQL differ from the file. */
class ClusterMigrationMismatchError extends AppError {
  readonly code = "take_over_differs";
  override readonly hint =
    "Nothing was switched over. Drop the schema `flagkeep` in PostgreSQL and try again.";
}

/** Rows per commit: a person can have 0.5 MB. */
const rowsAtOnce = 500;
const commitMs = 60_000;
const compareMs = 3_600_000;

/**
 * Starts or resumes a migration. @param id identifies the migration, constant across attempts
 * @throws {ClusterMigrationError}
 */
export async function startMigration(postgres: Postgres, id: string): Promise<void> {
  const { migrationId } = await postgres.run((sql) => readNodeState(sql));
  if (migrationId === id) return;
  const [found] = await postgres.run(
    (sql) => sql`SELECT coalesce(sum(revision), 0)::int AS rows FROM flagkeep.store`,
  );
  if (migrationId !== undefined || found!.rows > 0)
    throw new ClusterMigrationError(
      "The schema `flagkeep` in PostgreSQL contains the data of another Flagkeep.",
      "Use an empty database, or drop the schema.",
    );
  await postgres.run((sql) => sql`INSERT INTO flagkeep.secret VALUES (${migrationName}, ${id})`);
}

/**
 * Copies all rows of a file that PostgreSQL does not have, then compares both sides.
 * @param id of the migration @param onProgress receives the number of remaining rows @param omitted tables
 * @throws {ClusterMigrationMismatchError} @throws {PostgresUnreachableError}
 */
export async function copyStore(
  client: Database,
  { name, migrations }: ReplicatedStore,
  postgres: Postgres,
  {
    id,
    onProgress,
    omitted = new Set(),
  }: { id: string; onProgress: (left: number) => void; omitted?: ReadonlySet<string> },
): Promise<{ rows: number }> {
  const isSent = (row: Pick<SharedRow, "tbl">) => isRowStored(row) && !omitted.has(row.tbl);
  const tables = new ChangeCapture(client);
  client.run("CREATE TABLE IF NOT EXISTS copy_sent (id TEXT PRIMARY KEY)");
  if (client.query("SELECT 1 FROM copy_sent WHERE id = ?").get(id) === null) {
    client.run("DELETE FROM copy_sent; DELETE FROM copy_changed");
    tables.markAll();
    client.run("INSERT INTO copy_sent VALUES (?)", [id]);
  }
  let revision = 0;
  let commitId: string | null = null;
  for (;;) {
    const changed = tables.changed(rowsAtOnce);
    const { rows } = changed;
    commitId = crypto.randomUUID();
    const commit = commitId;
    revision = await postgres.transaction(async (t) => {
      await t`INSERT INTO flagkeep.store (name, schema_version, revision) VALUES (${name}, ${migrations.length}, 0) ON CONFLICT DO NOTHING`;
      const [row] = await t`UPDATE flagkeep.store
        SET revision = revision + 1, folded = revision + 1, schema_version = ${migrations.length}
        WHERE name = ${name} RETURNING revision`;
      const next = Number(row!.revision);
      await writeRows(
        t,
        name,
        rows.filter(isSent).map((row: SharedRow) => ({ ...row, revision: next })),
      );
      await t`INSERT INTO flagkeep.commit (store, revision, id) VALUES (${name}, ${next}, ${commit})`;
      return next;
    }, commitMs);
    tables.forget(changed);
    if (rows.length === 0) break;
    const left = client.query("SELECT count(*) AS count FROM copy_changed").get() as { count: number };
    onProgress(left.count);
  }
  const count = await compare(tables, name, postgres, isSent);
  new ReplicaFile(client).setState({ revision, commit_id: commitId });
  return { rows: count };
}

/** Whether `copyStore` of a migration has started with a file; false if it does not exist. */
export function isStoreSent(path: string, id: string): boolean {
  if (!existsSync(path)) return false;
  const client = openSqlite(path, {}).$client;
  try {
    const hasTable = client.query("SELECT 1 FROM sqlite_schema WHERE name = 'copy_sent'").get() !== null;
    return hasTable && client.query("SELECT 1 FROM copy_sent WHERE id = ?").get(id) !== null;
  } finally {
    client.close();
  }
}

/** Lets new numbers follow those of both lanes, and ends the migration, so that nodes may start. */
export async function finishMigration(
  postgres: Postgres,
  { lastSeqs, secrets }: { lastSeqs: Record<Lane, number>; secrets: Record<string, string> },
): Promise<void> {
  await postgres.transaction(async (t) => {
    for (const lane of lanes)
      await t`UPDATE flagkeep.lane SET last_seq = ${lastSeqs[lane]} WHERE name = ${lane}`;
    await t`SELECT setval('flagkeep.block', greatest((SELECT last_value FROM flagkeep.block),
      (SELECT max(last_seq) / 1024 + 1 FROM flagkeep.lane)))`;
    for (const [name, value] of Object.entries(secrets))
      await t`INSERT INTO flagkeep.secret VALUES (${name}, ${value}) ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
    await t`DELETE FROM flagkeep.secret WHERE name = ${migrationName}`;
  });
}

/** Deletes all rows of tables of a replica that nothing has changed, here only. */
export function deleteLocally(client: Database, tables: Iterable<string>): void {
  client
    .transaction(() => {
      for (const table of tables) client.run(`DELETE FROM ${table}`);
      client.run("DELETE FROM copy_changed");
    })
    .immediate();
}

/** Turns a replica into a standalone file. */
export function finishCopy(client: Database): void {
  new ChangeCapture(client).drop();
}

/**
 * Records that the data was migrated back to a data directory, which continues the numbering in the same ClickHouse: a
 * node would assign the same numbers to other events.
 * @param assertUnchanged fails if nodes have changed what was copied
 * @throws {ClusterMigrationError} a node is running @throws errors of `assertUnchanged`
 */
export async function markReturned(
  postgres: Postgres,
  dataDir: string,
  assertUnchanged: (t: Transaction) => Promise<void>,
): Promise<void> {
  await postgres.transaction(async (t) => {
    // Writes in progress end before; later ones find the record.
    await lockStores(t);
    await t`LOCK TABLE flagkeep.journal IN SHARE MODE`;
    await assertIdle(t);
    await assertUnchanged(t);
    await t`INSERT INTO flagkeep.secret VALUES (${returnedName}, ${`${dataDir}, ${new Date().toISOString()}`})
      ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
    await fenceLease(t);
  }, commitMs);
}

/**
 * @throws {ClusterMigrationError} PostgreSQL has no data, a node is running, a migration has not finished, or the journal
 * has entries that are not loaded @throws {ConversionPendingError}
 */
export async function assertIdle(sql: Sql | Transaction): Promise<void> {
  assertNothingPending(await readNodeState(sql));
  await assertNodesStopped(sql);
  const [row] = await sql`SELECT coalesce(sum(entries), 0)::float8 AS entries FROM flagkeep.journal`;
  if (row!.entries > 0)
    throw new ClusterMigrationError(
      `The journal in PostgreSQL has ${row!.entries} entries that are not loaded.`,
      "Start a node, wait until `flagkeep status` shows no pending entries, stop it, and run the command again.",
    );
}

/** @throws {ClusterMigrationError} PostgreSQL has no data, or a node is running */
export async function assertNodesStopped(sql: Sql | Transaction): Promise<void> {
  const [row] =
    await sql`SELECT (SELECT holder IS NOT NULL AND beat_at > clock_timestamp() - ${nodeTimeoutMs} * interval '1 millisecond'
        FROM flagkeep.lease)
      OR EXISTS (SELECT 1 FROM flagkeep.front WHERE seen_at > clock_timestamp() - ${nodeTimeoutMs} * interval '1 millisecond') AS held,
    EXISTS (SELECT 1 FROM flagkeep.store WHERE name = 'metadata' AND revision > 0) AS whole`;
  if (!row!.whole)
    throw new ClusterMigrationError("PostgreSQL contains no Flagkeep data.", "Name the right database.");
  if (row!.held)
    throw new ClusterMigrationError(
      "A node is running.",
      "Stop all nodes and run the command again; a killed node expires after ten seconds.",
    );
}

/** Compares all rows by hash. @returns the number of rows @throws {ClusterMigrationMismatchError} */
async function compare(
  tables: ChangeCapture,
  name: string,
  postgres: Postgres,
  isSent: (row: Pick<SharedRow, "tbl">) => boolean,
): Promise<number> {
  const [there] = await postgres.run(
    (sql) => sql`SELECT count(*)::int AS rows, ${sql.unsafe(rowHashSql("tbl || key || body"))} AS sum
      FROM flagkeep.row WHERE store = ${name} AND body IS NOT NULL`,
    compareMs,
  );
  let here = noRows;
  for (const { tbl, key, body } of tables.all()) {
    if (!isSent({ tbl })) continue;
    here = addRowHashes(here, rowHash(`${tbl}${key}${body}`));
  }
  if (here.rows !== there!.rows || String(here.sum) !== there!.sum)
    throw new ClusterMigrationMismatchError(
      `The ${name} store has ${here.rows} rows here, but ${there!.rows} or different rows in PostgreSQL.`,
    );
  return here.rows;
}
