/** Opens the metadata store: everything of Flagkeep that is neither an event nor a person. */

import { sql } from "drizzle-orm";
import { type Migration, migrate } from "../lib/sqlite/migrate.ts";
import { openSqlite, type Sqlite, type Transaction, tx } from "../lib/sqlite/open.ts";
import { Changes } from "./changes.ts";
import { KeyRing } from "./key-ring.ts";
import initialSql from "./migrations/001-initial.sql" with { type: "text" };
import experimentSetSql from "./migrations/002-experiment-set.sql" with { type: "text" };
import sessionsSql from "./migrations/003-sessions.sql" with { type: "text" };
import { ProjectDirectory } from "./project-directory.ts";
import * as schema from "./schema.ts";

export type Schema = typeof schema;
/** Statements inside a transaction. */
export type MetadataTx = Transaction<Schema>;
/** Statements inside or outside a transaction. */
export type Reading = MetadataTx | Sqlite<Schema>;

const migrations: readonly Migration[] = [
  { version: 1, name: "initial", sql: initialSql },
  { version: 2, name: "experiment set", sql: experimentSetSql },
  { version: 3, name: "sessions", sql: sessionsSql },
];

/** The newest schema this version knows. */
export const metadataSchemaVersion = migrations.length;

export class Metadata {
  readonly db: Sqlite<Schema>;
  /** Notices changes, those of other processes included. */
  readonly changes: Changes;
  /** The projects by id and by key, in memory. */
  readonly projects: ProjectDirectory;
  /** The keys in use, in memory. */
  readonly keyRing: KeyRing;

  constructor(path: string) {
    this.db = openSqlite(path, schema);
    migrate(this.db.$client, "metadata store", migrations);
    this.changes = new Changes(this.db.$client);
    this.projects = new ProjectDirectory(this.db, this.changes);
    this.keyRing = new KeyRing(this.db, this.changes);
  }

  /**
   * Runs a synchronous change in one transaction that is on disk when this returns.
   *
   * Whoever changes what other processes or this one keep in memory calls `bumpRevision` in it.
   */
  change<Result>(run: (t: MetadataTx) => Result): Result {
    try {
      return tx(this.db, run);
    } finally {
      this.changes.expect();
    }
  }

  close(): void {
    this.db.$client.close();
  }
}

/**
 * Opens the store and brings it to the newest schema.
 *
 * @param path the SQLite file; created when missing.
 * @throws {DataFromNewerVersion} the file was written by a newer Flagkeep.
 */
export function openMetadata(path: string): Metadata {
  return new Metadata(path);
}

/** Name of the revision that moves whenever a flag or cohort of the project changes. */
export const flagRevision = (projectId: number): string => `flags:${projectId}`;

/**
 * Says that something changed, in the transaction that changes it.
 *
 * @param name `keys`, `projects`, or `flags:<project id>` (flags and the cohorts they refer to).
 */
export function bumpRevision(t: MetadataTx, name: string): void {
  t.insert(schema.revision)
    .values({ name, value: 1 })
    .onConflictDoUpdate({ target: schema.revision.name, set: { value: sql`value + 1` } })
    .run();
}
