/** Opens DuckDB, the columnar event store, and provides connections. */

import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import type { DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { type Migration, NewerDataVersionError } from "../../lib/sqlite.ts";
import { attachCachedTables } from "./cached-tables.ts";
import initial from "./migrations/001-events.sql" with { type: "text" };
import persons from "./migrations/002-persons.sql" with { type: "text" };
import mainIds from "./migrations/003-main-ids.sql" with { type: "text" };
import propertyColumns from "./migrations/004-property-columns.sql" with { type: "text" };
import ownerlessIds from "./migrations/005-ownerless-ids.sql" with { type: "text" };
import numberTexts from "./migrations/006-number-texts.sql" with { type: "text" };

export interface EventDatabaseOptions {
  memoryLimitBytes: number;
  threads: number;
  /** Folder for DuckDB's spill files. */
  temporaryFolder: string;
  /** Maximum bytes of spill files; default: DuckDB's, nine tenths of the free disk space. */
  spillLimitBytes?: number;
}

/** Memory used by DuckDB within its limit, in bytes. */
export interface StoreMemory {
  /** Cached blocks of the file, evicted whenever the memory is needed. */
  cached: number;
  /** All other memory: events not checkpointed yet, and working memory of queries. */
  used: number;
  /** The part of `used` for grouping, joining and sorting: memory of queries, not of loading. */
  computing: number;
  /** The bytes of `computing` by DuckDB's tag. */
  parts: Readonly<Record<string, number>>;
}

export interface EventDatabase {
  readonly instance: DuckDBInstance;
  /** A new connection: a second statement on a busy connection interrupts the first. */
  connect(): Promise<DuckDBConnection>;
  memory(): Promise<StoreMemory>;
  close(): void;
}

const migrations: readonly Migration[] = [
  { version: 1, name: "events", sql: initial },
  { version: 2, name: "persons", sql: persons },
  { version: 3, name: "main ids", sql: mainIds },
  { version: 4, name: "property columns", sql: propertyColumns },
  { version: 5, name: "ownerless ids", sql: ownerlessIds },
  { version: 6, name: "number texts", sql: numberTexts },
];

/** The newest supported schema version. */
export const eventsSchemaVersion = migrations.length;

/**
 * Opens or creates the event store, migrates its schema and disables its access to other files.
 * @throws {NewerDataVersionError} the file was written by a newer Flagkeep; nothing was changed
 */
export async function openEventDatabase(path: string, options: EventDatabaseOptions): Promise<EventDatabase> {
  mkdirSync(options.temporaryFolder, { recursive: true, mode: 0o700 });
  if (path !== ":memory:" && !existsSync(path)) await createFile(path, options);
  const instance = await openInstance(path, options);
  try {
    const connection = await instance.connect();
    try {
      await migrateEvents(connection);
      await attachCachedTables(connection);
      await limitSpillFiles(connection, options.spillLimitBytes);
      await lockDown(connection);
    } finally {
      connection.closeSync();
    }
  } catch (error) {
    instance.closeSync();
    throw error;
  }
  const open = new Set<DuckDBConnection>();
  const own = await instance.connect();
  let measuring: Promise<StoreMemory> | undefined;
  return {
    instance,
    async connect() {
      const connection = await instance.connect();
      open.add(connection);
      const close = connection.closeSync.bind(connection);
      connection.closeSync = () => {
        if (open.delete(connection)) close();
      };
      return connection;
    },
    memory() {
      // One at a time: a second statement on the connection would interrupt the first.
      measuring ??= getMemory(own).finally(() => {
        measuring = undefined;
      });
      return measuring;
    },
    close() {
      // An open connection keeps the database alive, which could then write to a file opened by another process.
      for (const connection of open) connection.closeSync();
      own.closeSync();
      instance.closeSync();
    },
  };
}

const cacheTags = new Set(["BASE_TABLE", "METADATA"]);
const loadingTags = new Set(["IN_MEMORY_TABLE", "TRANSACTION", "ART_INDEX"]);

async function getMemory(connection: DuckDBConnection): Promise<StoreMemory> {
  const rows = await connection.runAndReadAll("SELECT tag, memory_usage_bytes::DOUBLE FROM duckdb_memory()");
  const memory = { cached: 0, used: 0, computing: 0 };
  const parts: Record<string, number> = {};
  for (const [tag, bytes] of rows.getRows() as [string, number][]) {
    if (cacheTags.has(tag)) {
      memory.cached += bytes;
      continue;
    }
    memory.used += bytes;
    if (loadingTags.has(tag)) continue;
    memory.computing += bytes;
    parts[tag] = bytes;
  }
  return { ...memory, parts };
}

/** Creates the file under a temporary name, and renames it once it is usable: a crash leaves no partial file. */
async function createFile(path: string, options: EventDatabaseOptions): Promise<void> {
  const created = `${path}.new`;
  // Includes a stale log without a file: DuckDB would replay it.
  for (const old of [created, `${created}.wal`, `${path}.wal`]) rmSync(old, { force: true });
  const instance = await openInstance(created, options);
  try {
    const connection = await instance.connect();
    await migrateEvents(connection).finally(() => connection.closeSync());
  } finally {
    // Checkpoints the log.
    instance.closeSync();
  }
  renameSync(created, path);
}

async function openInstance(path: string, options: EventDatabaseOptions): Promise<DuckDBInstance> {
  // Imported on demand: the native library is extracted only in the process that needs it.
  const { DuckDBInstance } = await import("@duckdb/node-api");
  return await DuckDBInstance.create(path, {
    memory_limit: `${Math.floor(options.memoryLimitBytes / 1024)}KiB`,
    threads: String(options.threads),
    temp_directory: options.temporaryFolder,
    // Compressed JSON columns require a newer file format than the default.
    storage_compatibility_version: "latest",
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
    // The pipeline checkpoints, because it knows when the journal may delete entries.
    wal_autocheckpoint: "1GB",
    preserve_insertion_order: "false",
    // Returns freed memory to the system within about a second.
    allocator_background_threads: "true",
  });
}

/**
 * Reads the schema version of a stopped server's event store without changing it; 0 if empty.
 * @throws the file cannot be opened, is corrupt or in use
 */
export async function readEventsVersion(path: string): Promise<number> {
  return await withEventFile(path, async (connection) => {
    // In versions that created the file in place, a crash during the first start left a file without tables.
    const tables = await connection.runAndReadAll(
      "SELECT count(*) FROM duckdb_tables() WHERE table_name IN ('schema_migration', 'events')",
    );
    if (Number(tables.getRows()[0]![0]) < 2) return 0;
    // Read from a table: opening alone does not detect corruption.
    await connection.run("SELECT count(*) FROM events");
    const rows = await connection.runAndReadAll("SELECT coalesce(max(version), 0) FROM schema_migration");
    return Number(rows.getRows()[0]![0]);
  });
}

/** Opens a file read-only that no other process has open, and runs work with a connection. */
export async function withEventFile<Result>(
  path: string,
  work: (connection: DuckDBConnection) => Promise<Result>,
): Promise<Result> {
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const instance = await DuckDBInstance.create(path, { access_mode: "READ_ONLY", threads: "1" });
  const connection = await instance.connect();
  try {
    return await work(connection);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** DuckDB 1.5 ignores the limit in the options of a new instance. */
async function limitSpillFiles(connection: DuckDBConnection, bytes: number | undefined): Promise<void> {
  if (bytes === undefined) return;
  await connection.run(`SET max_temp_directory_size = '${Math.floor(bytes / 1024)}KiB'`);
}

/** Irrevocably prevents all statements from accessing files other than the store's and DuckDB's temporary folder. */
async function lockDown(connection: DuckDBConnection): Promise<void> {
  await connection.run("SET enable_external_access = false");
  await connection.run("SET GLOBAL TimeZone = 'UTC'");
  // The zone is set for statements in HogQL; statements themselves set nothing.
  await connection.run("SET allowed_configs = ['TimeZone']");
  await connection.run("SET lock_configuration = true");
}

async function migrateEvents(connection: DuckDBConnection): Promise<void> {
  await connection.run(
    "CREATE TABLE IF NOT EXISTS schema_migration (version INTEGER NOT NULL, name VARCHAR NOT NULL)",
  );
  const rows = await connection.runAndReadAll("SELECT coalesce(max(version), 0) FROM schema_migration");
  const newest = Number(rows.getRows()[0]![0]);
  if (newest > migrations.length) throw new NewerDataVersionError("event store", newest, migrations.length);
  for (const { version, name, sql } of migrations.slice(newest)) {
    await inTransaction(connection, async () => {
      await connection.run(sql);
      await connection.run("INSERT INTO schema_migration VALUES ($1, $2)", [version, name]);
    });
  }
}

/** Runs statements in one transaction; an exception rolls it back. */
export async function inTransaction<Result>(
  connection: DuckDBConnection,
  run: () => Promise<Result>,
): Promise<Result> {
  await connection.run("BEGIN TRANSACTION");
  try {
    const result = await run();
    await connection.run("COMMIT");
    return result;
  } catch (error) {
    await connection.run("ROLLBACK").catch(() => undefined);
    throw error;
  }
}
