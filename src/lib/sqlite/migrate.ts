/** Versioned schema migrations, shipped inside the executable and applied when a store is opened. */

import type { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { AppError } from "../errors.ts";
import { readonlyClient } from "./open.ts";

export interface Migration {
  /** Position in the list, from 1, without gaps. */
  version: number;
  name: string;
  /** SQL statements; never changed once released. */
  sql: string;
}

/** A newer Flagkeep has written the files. */
export class NewerDataVersionError extends AppError {
  readonly code = "data_from_newer_version";
  override readonly hint = "Start the newer version again, or restore a backup created by this version.";
  constructor(store: string, found: number, known: number) {
    super(
      `The ${store} has schema version ${found}, but this version of Flagkeep supports versions up to ${known}: ` +
        "the data was written by a newer Flagkeep.",
    );
  }
}

/** The SQL of an applied migration differs from the released one. */
class MigrationChangedError extends AppError {
  readonly code = "migration_changed";
  override readonly hint = "Install an unmodified release of Flagkeep.";
  constructor(store: string, version: number) {
    super(`Migration ${version} of the ${store} differs from the one applied to this data.`);
  }
}

/**
 * Migrates a database to the newest schema; each migration is one transaction.
 *
 * @param store  name of the database in messages, for example `flag store`.
 * @returns      the versions that were applied now.
 * @throws {NewerDataVersionError} nothing was changed.
 * @throws {MigrationChangedError} nothing was changed.
 */
export function migrate(client: Database, store: string, migrations: readonly Migration[]): number[] {
  client.run(
    "CREATE TABLE IF NOT EXISTS schema_migration (version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT",
  );
  const applied = new Map(
    (
      client.query("SELECT version, checksum FROM schema_migration").all() as {
        version: number;
        checksum: string;
      }[]
    ).map((row) => [row.version, row.checksum]),
  );
  const newest = Math.max(0, ...applied.keys());
  if (newest > migrations.length) throw new NewerDataVersionError(store, newest, migrations.length);
  const done: number[] = [];
  for (const migration of migrations) {
    const checksum = new Bun.CryptoHasher("sha256").update(migration.sql).digest("hex");
    const before = applied.get(migration.version);
    if (before === checksum) continue;
    if (before !== undefined) throw new MigrationChangedError(store, migration.version);
    const isNew = client
      .transaction(() => {
        // Another process may have applied it: a command, or the starting server.
        if (isApplied(client, migration)) return false;
        client.run(migration.sql);
        client.run("INSERT INTO schema_migration VALUES (?, ?, ?, ?)", [
          migration.version,
          migration.name,
          checksum,
          new Date().toISOString(),
        ]);
        return true;
      })
      .immediate();
    if (isNew) done.push(migration.version);
  }
  return done;
}

function isApplied(client: Database, { version }: Migration): boolean {
  return client.query("SELECT 1 FROM schema_migration WHERE version = ?").get(version) !== null;
}

/** The schema version of a file, which is not changed; null when the file does not exist. */
export function sqliteVersion(path: string): number | null {
  if (!existsSync(path)) return null;
  const db = readonlyClient(path);
  try {
    const isEmpty = db.query("SELECT 1 FROM sqlite_schema WHERE name = 'schema_migration'").get() === null;
    if (isEmpty) return 0;
    const row = db.query("SELECT max(version) AS version FROM schema_migration").get() as {
      version: number | null;
    };
    return row.version ?? 0;
  } finally {
    db.close();
  }
}
