/** Opens `people.sqlite`. The engine is its only writer; the front opens it for reading. */

import { type Migration, migrate } from "../lib/sqlite/migrate.ts";
import { openSqlite, type Sqlite } from "../lib/sqlite/open.ts";
import peopleSql from "./migrations/001-people.sql" with { type: "text" };
import personlessSql from "./migrations/002-personless.sql" with { type: "text" };
import namesSql from "./migrations/003-names.sql" with { type: "text" };
import outsideSql from "./migrations/004-outside-events.sql" with { type: "text" };
import * as schema from "./schema.ts";

export type PeopleDb = Sqlite<typeof schema>;

/** Never changed once released. */
const peopleMigrations: readonly Migration[] = [
  { version: 1, name: "people", sql: peopleSql },
  { version: 2, name: "personless", sql: personlessSql },
  { version: 3, name: "names", sql: namesSql },
  { version: 4, name: "outside events", sql: outsideSql },
];

/** What several fronts share of it, in PostgreSQL. */
export const peopleStore = { name: "people", migrations: peopleMigrations } as const;

/** The newest schema this version knows. */
export const peopleSchemaVersion = peopleMigrations.length;

/** Pages of the file that a connection keeps in memory, in KiB: the indexes of about a million persons. */
const writerCacheKib = 131_072;
const readerCacheKib = 32_768;

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
 * @throws {DataFromNewerVersion} the file was written by a newer Flagkeep; nothing was changed.
 */
export function openPeople(path: string, options: { readonly?: boolean } = {}): PeopleDb {
  const db = openSqlite(path, schema, { readonly: options.readonly, synchronous: "full" });
  db.$client.run(`PRAGMA cache_size = -${options.readonly ? readerCacheKib : writerCacheKib}`);
  if (options.readonly) return db;
  db.$client.run(`PRAGMA wal_autocheckpoint = ${checkpointPages}`);
  migrate(db.$client, "store of persons", peopleMigrations);
  return db;
}
