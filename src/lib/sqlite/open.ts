/** Opens SQLite files with one set of pragmas, and runs transactions. */

import { constants, Database } from "bun:sqlite";
import { accessSync, existsSync, constants as fsConstants } from "node:fs";
import { basename, dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";

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
