/** Opens `people.sqlite`. The engine is its only writer; the server process opens it read-only. */

import { personCacheBytesMax } from "../lib/memory-budget.ts";
import { type Migration, migrate, type OpenOptions, openSqlite, type Sqlite } from "../lib/sqlite.ts";
import personsSql from "./migrations/001-people.sql" with { type: "text" };
import personlessSql from "./migrations/002-personless.sql" with { type: "text" };
import namesSql from "./migrations/003-names.sql" with { type: "text" };
import outsideSql from "./migrations/004-outside-events.sql" with { type: "text" };
import listsSql from "./migrations/005-property-lists.sql" with { type: "text" };
import pendingOverridesSql from "./migrations/006-pending-overrides.sql" with { type: "text" };
import * as schema from "./schema.ts";

export type PersonsDb = Sqlite<typeof schema>;

/** Never changed once released. */
const personMigrations: readonly Migration[] = [
  { version: 1, name: "people", sql: personsSql },
  { version: 2, name: "personless", sql: personlessSql },
  { version: 3, name: "names", sql: namesSql },
  { version: 4, name: "outside events", sql: outsideSql },
  { version: 5, name: "property lists", sql: listsSql },
  { version: 6, name: "pending overrides", sql: pendingOverridesSql },
];

/** The part that a cluster replicates to PostgreSQL. */
export const personStore = { name: "people", migrations: personMigrations } as const;

/** The newest supported schema version. */
export const personSchemaVersion = personMigrations.length;

/**
 * Pages in the write-ahead log before a checkpoint: 32 MiB. Batches change the same thousands of pages repeatedly;
 * checkpointing each batch would write them many times.
 */
const checkpointPages = 8_192;

/**
 * Opens the person store and migrates its schema; if read-only, it must exist and is not migrated. Commits are synced:
 * the event store replicates changes by number, and a replicated number must not be lost.
 * @param options.cacheBytes page cache of this connection; default: no budget
 * @throws {NewerDataVersionError} the file was written by a newer Flagkeep; nothing was changed
 */
export function openPersons(
  path: string,
  options: { readonly?: boolean; cacheBytes?: number; synchronous?: OpenOptions["synchronous"] } = {},
): PersonsDb {
  const { readonly, synchronous = "full" } = options;
  const db = openSqlite(path, schema, { readonly, synchronous });
  try {
    return prepared(db, options);
  } catch (error) {
    db.$client.close();
    throw error;
  }
}

function prepared(db: PersonsDb, options: { readonly?: boolean; cacheBytes?: number }): PersonsDb {
  const defaultBytes = options.readonly ? personCacheBytesMax.reader : personCacheBytesMax.writer;
  db.$client.run(`PRAGMA cache_size = -${Math.floor((options.cacheBytes ?? defaultBytes) / 1024)}`);
  if (options.readonly) return db;
  db.$client.run(`PRAGMA wal_autocheckpoint = ${checkpointPages}`);
  migrate(db.$client, "person store", personMigrations);
  return db;
}

/**
 * Closes the writer's connection. The log is checkpointed and truncated first: SQLite does that only for the last
 * connection, which is often a reader. If that fails, the next start reads the log.
 */
export function closePersons({ $client }: PersonsDb): void {
  try {
    // Do not wait for readers.
    $client.run("PRAGMA busy_timeout = 0");
    $client.run("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch {
    // For example, the disk is full: no data is lost.
  }
  $client.close();
}
