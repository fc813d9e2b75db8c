/**
 * The core of the metadata store: everything of Flagkeep that is neither an event nor a person.
 *
 * It opens the file, runs changes and notices them, also when another process (the command line) changed the file.
 * SQLite counts the commits of other connections in `PRAGMA data_version`, which costs about a microsecond and touches
 * no page. Only when that moved, or this process wrote itself, are the revisions read.
 */

import type { Database, Statement } from "bun:sqlite";
import { sql } from "drizzle-orm";
import { type Migration, migrate } from "../lib/sqlite/migrate.ts";
import { type OpenOptions, openSqlite, type Sqlite, type Transaction, tx } from "../lib/sqlite/open.ts";
import initialSql from "./migrations/001-initial.sql" with { type: "text" };
import experimentSetSql from "./migrations/002-experiment-set.sql" with { type: "text" };
import sessionsSql from "./migrations/003-sessions.sql" with { type: "text" };
import pendingChangesSql from "./migrations/004-pending-changes.sql" with { type: "text" };
import projectKeysSql from "./migrations/005-project-keys.sql" with { type: "text" };
import formerSecretKeysSql from "./migrations/006-former-secret-keys.sql" with { type: "text" };
import linkCreatorsSql from "./migrations/007-link-creators.sql" with { type: "text" };
import tilesAndInsightsSql from "./migrations/008-tiles-and-insights.sql" with { type: "text" };
import payloadKeySql from "./migrations/009-payload-key.sql" with { type: "text" };
import cohortRequestsSql from "./migrations/010-cohort-requests.sql" with { type: "text" };
import weekStartDaySql from "./migrations/011-week-start-day.sql" with { type: "text" };
import * as schema from "./schema.ts";

export type Schema = typeof schema;
/** Statements inside a transaction. */
export type MetadataTx = Transaction<Schema>;
/** Statements inside or outside a transaction. */
export type Reading = MetadataTx | Sqlite<Schema>;

/** Never changed once released. */
const metadataMigrations: readonly Migration[] = [
  { version: 1, name: "initial", sql: initialSql },
  { version: 2, name: "experiment set", sql: experimentSetSql },
  { version: 3, name: "sessions", sql: sessionsSql },
  { version: 4, name: "pending changes", sql: pendingChangesSql },
  { version: 5, name: "project keys", sql: projectKeysSql },
  { version: 6, name: "former secret keys", sql: formerSecretKeysSql },
  { version: 7, name: "link creators", sql: linkCreatorsSql },
  { version: 8, name: "tiles and insights", sql: tilesAndInsightsSql },
  { version: 9, name: "payload key", sql: payloadKeySql },
  { version: 10, name: "change requests for cohorts", sql: cohortRequestsSql },
  { version: 11, name: "week start day", sql: weekStartDaySql },
];

/** What several fronts share of it, in PostgreSQL. */
export const metadataStore = { name: "metadata", migrations: metadataMigrations } as const;

/** The newest schema this version knows. */
export const metadataSchemaVersion = metadataMigrations.length;

/** The store without what is kept of it in memory. */
export class MetadataDb {
  readonly db: Sqlite<Schema>;
  /** Notices changes, those of other processes included. */
  readonly changes: Changes;
  private closed = false;

  constructor(path: string, options: Pick<OpenOptions, "synchronous"> = {}) {
    this.db = openSqlite(path, schema, options);
    // What is deleted or replaced here may be a secret: its bytes are overwritten with zeros.
    this.db.$client.run("PRAGMA secure_delete = ON");
    migrate(this.db.$client, "metadata store", metadataMigrations);
    this.changes = new Changes(this.db.$client);
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

  /** For work that goes on after its answer: there is nothing to write its outcome to any more. */
  get isClosed(): boolean {
    return this.closed;
  }

  close(): void {
    this.closed = true;
    this.db.$client.close();
  }
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

/** How long a change of another process may stay unnoticed, in milliseconds. */
const checkEveryMs = 2;

/** Tells whoever keeps something of the store in memory when to read it anew. Names are those of `bumpRevision`. */
export class Changes {
  private readonly dataVersion: Statement<{ data_version: number }, []>;
  private readonly revisions: Statement<{ name: string; value: number }, []>;
  private checkedAt = Number.NEGATIVE_INFINITY;
  private version = -1;
  private ownChange = true;
  private known = new Map<string, number>();
  private retakings = 0;

  constructor(client: Database) {
    this.dataVersion = client.query("PRAGMA data_version");
    this.revisions = client.query("SELECT name, value FROM revision");
  }

  /** Tells that this process changed something: SQLite does not count a connection's own commits. */
  expect(): void {
    this.ownChange = true;
  }

  /**
   * Tells that rows were taken over from other fronts. @param isBack some have become what they never were here, so that a
   * revision that was known may now be that of other rows.
   */
  retake(isBack: boolean): void {
    this.ownChange = true;
    if (isBack) this.retakings += 1;
  }

  /** Another one whenever what `name` stands for may have changed: for whoever keeps that in memory. */
  mark(name: string): string {
    const revision = this.revision(name);
    return `${this.retakings} ${revision}`;
  }

  /** Present revision of `name`; 0 when it never changed. At most `checkEveryMs` behind other processes. */
  revision(name: string): number {
    const now = performance.now();
    if (this.ownChange || now - this.checkedAt >= checkEveryMs) this.check(now);
    return this.known.get(name) ?? 0;
  }

  private check(now: number): void {
    this.checkedAt = now;
    const version = this.dataVersion.get()?.data_version ?? 0;
    if (version === this.version && !this.ownChange) return;
    this.version = version;
    this.ownChange = false;
    this.known = new Map(this.revisions.all().map((row) => [row.name, row.value]));
  }
}
