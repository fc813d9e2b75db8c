/** Opens DuckDB, the columnar event store, and gives out connections. */

import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import type { DuckDBConnection, DuckDBInstance } from "@duckdb/node-api";
import { DataFromNewerVersion, type Migration } from "../../lib/sqlite/migrate.ts";
import initial from "./migrations/001-events.sql" with { type: "text" };
import persons from "./migrations/002-persons.sql" with { type: "text" };
import mainIds from "./migrations/003-main-ids.sql" with { type: "text" };
import propertyColumns from "./migrations/004-property-columns.sql" with { type: "text" };
import ownerlessIds from "./migrations/005-ownerless-ids.sql" with { type: "text" };
import numberTexts from "./migrations/006-number-texts.sql" with { type: "text" };

export interface EventDatabaseSettings {
  memoryLimitBytes: number;
  threads: number;
  /** Where DuckDB may spill to. */
  temporaryFolder: string;
}

/** What DuckDB has taken of its limit, in bytes. */
export interface StoreMemory {
  /** Parts of the file that it keeps to read them again, and gives up at once where something else needs the memory. */
  cached: number;
  /** Everything else: events that are not in the file yet, and what queries need. */
  used: number;
  /** What of `used` holds rows that are grouped, joined or sorted: memory of queries, not of events that are loaded. */
  computing: number;
}

export interface EventDatabase {
  readonly instance: DuckDBInstance;
  /** A connection of one's own: a second statement on a busy connection interrupts the first. */
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

/** The newest schema this version knows. */
export const eventsSchemaVersion = migrations.length;

/**
 * Opens (or creates) the event store, brings its schema up to date and shuts the file system off from it.
 *
 * @throws {DataFromNewerVersion} the file was written by a newer Flagkeep; nothing was changed.
 */
export async function openEventDatabase(
  path: string,
  settings: EventDatabaseSettings,
): Promise<EventDatabase> {
  mkdirSync(settings.temporaryFolder, { recursive: true, mode: 0o700 });
  if (path !== ":memory:" && !existsSync(path)) await makeFile(path, settings);
  const instance = await openInstance(path, settings);
  try {
    const connection = await instance.connect();
    try {
      await migrateEvents(connection);
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
      measuring ??= memoryOf(own).finally(() => {
        measuring = undefined;
      });
      return measuring;
    },
    close() {
      // With one connection open the database lives on, and would write into the file that somebody opened after it.
      for (const connection of open) connection.closeSync();
      own.closeSync();
      instance.closeSync();
    },
  };
}

async function memoryOf(connection: DuckDBConnection): Promise<StoreMemory> {
  const rows = await connection.runAndReadAll(
    `SELECT CASE WHEN tag IN ('BASE_TABLE', 'METADATA') THEN 'cached'
           WHEN tag IN ('IN_MEMORY_TABLE', 'TRANSACTION', 'ART_INDEX') THEN 'loading' ELSE 'computing' END,
           sum(memory_usage_bytes)::DOUBLE FROM duckdb_memory() GROUP BY ALL`,
  );
  const bytes = new Map(rows.getRows() as [string, number][]);
  const [cached, loading, computing] = ["cached", "loading", "computing"].map((of) => bytes.get(of) ?? 0);
  return { cached: cached!, used: loading! + computing!, computing: computing! };
}

/** Whoever is killed while it is being made leaves no file: it gets its name when it can be opened. */
async function makeFile(path: string, settings: EventDatabaseSettings): Promise<void> {
  const made = `${path}.new`;
  // A log whose file is gone as well: DuckDB would read it.
  for (const old of [made, `${made}.wal`, `${path}.wal`]) rmSync(old, { force: true });
  const instance = await openInstance(made, settings);
  try {
    const connection = await instance.connect();
    await migrateEvents(connection).finally(() => connection.closeSync());
  } finally {
    // Writes the log into the file.
    instance.closeSync();
  }
  renameSync(made, path);
}

async function openInstance(path: string, settings: EventDatabaseSettings): Promise<DuckDBInstance> {
  // Loaded late: the native library is put in place only in the process that needs it.
  const { DuckDBInstance } = await import("@duckdb/node-api");
  return await DuckDBInstance.create(path, {
    memory_limit: `${Math.floor(settings.memoryLimitBytes / 1024)}KiB`,
    threads: String(settings.threads),
    temp_directory: settings.temporaryFolder,
    // Compressed JSON columns need a newer file format than the default.
    storage_compatibility_version: "latest",
    autoinstall_known_extensions: "false",
    autoload_known_extensions: "false",
    // Checkpoints are made by the pipeline, which knows when the journal may forget.
    wal_autocheckpoint: "1GB",
    preserve_insertion_order: "false",
    // Memory that a query gave back goes back to the system too, within about a second.
    allocator_background_threads: "true",
  });
}

/**
 * Opens the event store of a stopped appliance without changing it and reads its schema version; 0 when it is empty.
 *
 * @throws the file cannot be opened, is damaged or in use.
 */
export async function readEventsVersion(path: string): Promise<number> {
  return await withEventFile(path, async (connection) => {
    // Before files were made under another name, a crash during the very first start left one without tables.
    const tables = await connection.runAndReadAll(
      "SELECT count(*) FROM duckdb_tables() WHERE table_name IN ('schema_migration', 'events')",
    );
    if (Number(tables.getRows()[0]![0]) < 2) return 0;
    // Reads something of a table, so that a file that only opens does not pass.
    await connection.run("SELECT count(*) FROM events");
    const rows = await connection.runAndReadAll("SELECT coalesce(max(version), 0) FROM schema_migration");
    return Number(rows.getRows()[0]![0]);
  });
}

/** Opens a file that nobody else has open, without changing it, and does the work with a connection. */
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

/**
 * From here on no statement, whoever wrote it, reads or writes a file other than the store's own and what DuckDB puts
 * into its temporary folder, and no statement can take that back.
 */
async function lockDown(connection: DuckDBConnection): Promise<void> {
  await connection.run("SET enable_external_access = false");
  await connection.run("SET lock_configuration = true");
}

async function migrateEvents(connection: DuckDBConnection): Promise<void> {
  await connection.run(
    "CREATE TABLE IF NOT EXISTS schema_migration (version INTEGER NOT NULL, name VARCHAR NOT NULL)",
  );
  const rows = await connection.runAndReadAll("SELECT coalesce(max(version), 0) FROM schema_migration");
  const newest = Number(rows.getRows()[0]![0]);
  if (newest > migrations.length) throw new DataFromNewerVersion("event store", newest, migrations.length);
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
