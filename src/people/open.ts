/** Opens `people.sqlite`. The engine is its only writer; the front opens it for reading. */

import { peopleCacheBytesMax } from "../lib/memory-budget.ts";
import { type Migration, migrate } from "../lib/sqlite/migrate.ts";
import { type OpenOptions, openSqlite, type Sqlite } from "../lib/sqlite/open.ts";
import peopleSql from "./migrations/001-people.sql" with { type: "text" };
import personlessSql from "./migrations/002-personless.sql" with { type: "text" };
import namesSql from "./migrations/003-names.sql" with { type: "text" };
import outsideSql from "./migrations/004-outside-events.sql" with { type: "text" };
import listsSql from "./migrations/005-property-lists.sql" with { type: "text" };
import pendingOverridesSql from "./migrations/006-pending-overrides.sql" with { type: "text" };
import * as schema from "./schema.ts";

export type PeopleDb = Sqlite<typeof schema>;

/** Never changed once released. */
const peopleMigrations: readonly Migration[] = [
  { version: 1, name: "people", sql: peopleSql },
  { version: 2, name: "personless", sql: personlessSql },
  { version: 3, name: "names", sql: namesSql },
  { version: 4, name: "outside events", sql: outsideSql },
  { version: 5, name: "property lists", sql: listsSql },
  { version: 6, name: "pending overrides", sql: pendingOverridesSql },
];

/** What several fronts share of it, in PostgreSQL. */
export const peopleStore = { name: "people", migrations: peopleMigrations } as const;

/** The newest schema this version knows. */
export const peopleSchemaVersion = peopleMigrations.length;

/**
 * Pages in the write-ahead log after which they are moved into the file: 32 MiB. A batch changes thousands of pages, and
 * the same ones again and again; moving them after every batch would write each many times.
 */
const checkpointPages = 8_192;

/**
 * Opens the store of persons and brings its schema up to date; read-only, it must exist and is left as it is.
 *
 * Commits are synced: the event store mirrors changes by number, and a number that was mirrored must not be lost.
 *
 * @param options.cacheBytes pages of the file that this connection keeps in memory; left out: where there is no budget.
 * @throws {DataFromNewerVersion} the file was written by a newer Flagkeep; nothing was changed.
 */
export function openPeople(
  path: string,
  options: { readonly?: boolean; cacheBytes?: number; synchronous?: OpenOptions["synchronous"] } = {},
): PeopleDb {
  const { readonly, synchronous = "full" } = options;
  const db = openSqlite(path, schema, { readonly, synchronous });
  const usual = options.readonly ? peopleCacheBytesMax.reader : peopleCacheBytesMax.writer;
  db.$client.run(`PRAGMA cache_size = -${Math.floor((options.cacheBytes ?? usual) / 1024)}`);
  if (options.readonly) return db;
  db.$client.run(`PRAGMA wal_autocheckpoint = ${checkpointPages}`);
  migrate(db.$client, "store of persons", peopleMigrations);
  return db;
}

/**
 * Closes the store of its writer. The log goes into the file first and gives its room back: by itself SQLite does that for the
 * last connection alone, and readers are often the last. Where that cannot be, the log stays and the next start has it.
 */
export function closePeople({ $client }: PeopleDb): void {
  try {
    // Whoever reads at this moment is not waited for.
    $client.run("PRAGMA busy_timeout = 0");
    $client.run("PRAGMA wal_checkpoint(TRUNCATE)");
  } catch {
    // The disk is full, say: nothing is lost by it.
  }
  $client.close();
}
