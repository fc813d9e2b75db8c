/** Opens, migrates and checks SQLite files. */

import { constants, Database } from "bun:sqlite";
import { accessSync, existsSync, constants as fsConstants } from "node:fs";
import { basename, dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import { AppError, firstLine } from "./errors.ts";

/** A drizzle database over `bun:sqlite`; `$client` is the connection. */
export type Sqlite<Schema extends Record<string, unknown> = Record<string, never>> =
  BunSQLiteDatabase<Schema> & {
    $client: Database;
  };

/** The part of a database that statements in a transaction use. */
export type Transaction<Schema extends Record<string, unknown> = Record<string, never>> = Parameters<
  Parameters<BunSQLiteDatabase<Schema>["transaction"]>[0]
>[0];

export interface OpenOptions {
  /** Opens an existing file read-only. */
  readonly?: boolean;
  /** How long to wait for locks of other processes, in milliseconds. */
  busyTimeoutMs?: number;
  /** `full`: a commit survives power loss; `normal`: only a crash of the process; `off`: for a temporary copy. */
  synchronous?: "full" | "normal" | "off";
}

const busyTimeoutMs = 5_000;

/**
 * Opens (and creates, unless `readonly`) an SQLite file in WAL mode with foreign keys on.
 *
 * @throws when the file cannot be opened or is not an SQLite database.
 */
export function openSqlite<Schema extends Record<string, unknown>>(
  path: string,
  schema: Schema,
  options: OpenOptions = {},
): Sqlite<Schema> {
  const client = options.readonly
    ? readonlyClient(path, { strict: true })
    : new Database(path, { create: true, strict: true });
  try {
    client.run(`PRAGMA busy_timeout = ${options.busyTimeoutMs ?? busyTimeoutMs}`);
    if (!options.readonly) {
      // Set before the change to WAL, which is written and synced too.
      client.run(`PRAGMA synchronous = ${options.synchronous ?? "full"}`);
      client.run("PRAGMA journal_mode = WAL");
      client.run("PRAGMA foreign_keys = ON");
    }
  } catch (error) {
    client.close();
    // SQLite does not name the file in its errors.
    if (error instanceof Error) error.message = `${basename(path)}: ${error.message}`;
    throw error;
  }
  return drizzle({ client, schema }) as unknown as Sqlite<Schema>;
}

/**
 * Opens an existing file read-only. Without write access, SQLite would leave files of a log that no process can write
 * later, or fail to open; `immutable` avoids both and is safe, because there is no log.
 */
export function readonlyClient(path: string, options: { strict?: boolean } = {}): Database {
  const flags = constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI;
  return isWritable(path) || existsSync(`${path}-wal`)
    ? patientClient(path, { readonly: true, ...options })
    : patientClient(`${pathToFileURL(path).href}?immutable=1`, flags);
}

/** A connection that waits for locks. Readers need it too: the last connection to close locks the file briefly. */
export function patientClient(path: string, options: ConstructorParameters<typeof Database>[1]): Database {
  const client = new Database(path, options);
  client.run(`PRAGMA busy_timeout = ${busyTimeoutMs}`);
  return client;
}

function isWritable(path: string): boolean {
  try {
    for (const each of [path, dirname(path)]) accessSync(each, fsConstants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Runs a synchronous function in one immediate transaction; an exception rolls it back.
 *
 * Immediate: Flagkeep's transactions read before they write, and a deferred lock would fail half-way under load.
 *
 * @throws {TypeError} the function returned a Promise: `bun:sqlite` commits at its first `await`.
 */
export function tx<Schema extends Record<string, unknown>, Result>(
  db: Sqlite<Schema>,
  run: (t: Transaction<Schema>) => Result,
): Result {
  return db.transaction(
    (t) => {
      const result = run(t);
      if (result instanceof Promise) throw new TypeError("A transaction must be synchronous.");
      return result;
    },
    { behavior: "immediate" },
  );
}

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

/**
 * Reads every page of a file and checks the structure of its tables. SQLite has no checksums: a changed value is not
 * found.
 *
 * @returns the first problem; null: none.
 */
export function checkSqlite(path: string): string | null {
  try {
    const db = readonlyClient(path);
    try {
      const [first] = db.query("PRAGMA quick_check(1)").values() as [[string]];
      return first[0] === "ok" ? null : problemLine(first[0]);
    } finally {
      db.close();
    }
  } catch (error) {
    return firstLine(error);
  }
}

/** The first problem that a row of SQLite's checks names, below the line that names the database. */
export function problemLine(row: string): string {
  const lines = row.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("***"));
  return firstLine(lines[0] ?? row);
}
