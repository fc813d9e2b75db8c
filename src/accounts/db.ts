/**
 * Core of the metadata store: everything that is neither an event nor a person. `PRAGMA data_version` counts commits of
 * other connections, costs about a microsecond and touches no page. Revisions are read only after it moved or after a
 * write by this process.
 */

import type { Database, Statement } from "bun:sqlite";
import { sql } from "drizzle-orm";
import { AppError, firstLine } from "../lib/errors.ts";
import {
  type Migration,
  migrate,
  type OpenOptions,
  openSqlite,
  type Sqlite,
  type Transaction,
  tx,
} from "../lib/sqlite.ts";
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
import webAnalyticsSql from "./migrations/012-web-analytics.sql" with { type: "text" };
import webhooksSql from "./migrations/013-webhooks.sql" with { type: "text" };
import experimentsSql from "./migrations/014-experiments.sql" with { type: "text" };
import shareLinksSql from "./migrations/015-share-links.sql" with { type: "text" };
import annotationsSql from "./migrations/016-annotations.sql" with { type: "text" };
import surveysSql from "./migrations/017-surveys.sql" with { type: "text" };
import rollbackConditionsSql from "./migrations/018-rollback-conditions.sql" with { type: "text" };
import surveyIterationsSql from "./migrations/019-survey-iterations.sql" with { type: "text" };
import flagViewsSql from "./migrations/020-flag-views.sql" with { type: "text" };
import webExperimentsSql from "./migrations/021-web-experiments.sql" with { type: "text" };
import cohortSizesSql from "./migrations/022-cohort-sizes.sql" with { type: "text" };
import sharedOverviewSql from "./migrations/023-shared-overview.sql" with { type: "text" };
import analyzedVariantsSql from "./migrations/024-analyzed-variants.sql" with { type: "text" };
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
  { version: 12, name: "web analytics", sql: webAnalyticsSql },
  { version: 13, name: "webhooks", sql: webhooksSql },
  { version: 14, name: "experiments", sql: experimentsSql },
  { version: 15, name: "share links", sql: shareLinksSql },
  { version: 16, name: "annotations", sql: annotationsSql },
  { version: 17, name: "surveys", sql: surveysSql },
  { version: 18, name: "rollback conditions", sql: rollbackConditionsSql },
  { version: 19, name: "survey iterations", sql: surveyIterationsSql },
  { version: 20, name: "flag views", sql: flagViewsSql },
  { version: 21, name: "web experiments", sql: webExperimentsSql },
  { version: 22, name: "cohort sizes", sql: cohortSizesSql },
  { version: 23, name: "shared overview", sql: sharedOverviewSql },
  { version: 24, name: "analyzed variants", sql: analyzedVariantsSql },
];

/** The part that cluster nodes share in PostgreSQL. */
export const metadataStore = { name: "metadata", migrations: metadataMigrations } as const;

/** The newest schema this version supports. */
export const metadataSchemaVersion = metadataMigrations.length;

export interface MetadataOptions extends Pick<OpenOptions, "synchronous"> {
  /** How long a change of another process may stay unnoticed, in milliseconds. */
  checkEveryMs?: number;
}

/** The store without its in-memory indexes. */
export class MetadataDb {
  readonly db: Sqlite<Schema>;
  /** Notices changes, including those of other processes. */
  readonly changes: Changes;
  private closed = false;

  constructor(path: string, { checkEveryMs, ...options }: MetadataOptions = {}) {
    this.db = openSqlite(path, schema, options);
    // Deleted or replaced values may be secrets: their bytes are overwritten with zeros.
    this.db.$client.run("PRAGMA secure_delete = ON");
    migrate(this.db.$client, "metadata store", metadataMigrations);
    this.changes = new Changes(this.db.$client, checkEveryMs);
  }

  /**
   * Runs a synchronous change in one transaction that is on disk when this returns.
   *
   * Changes to data that processes cache must call `bumpRevision` in it.
   */
  change<Result>(run: (t: MetadataTx) => Result): Result {
    try {
      return tx(this.db, run);
    } finally {
      this.changes.expect();
    }
  }

  /** For work that outlives its response: the result can no longer be written. */
  get isClosed(): boolean {
    return this.closed;
  }

  close(): void {
    this.closed = true;
    this.db.$client.close();
  }
}

/** Name of the revision that changes with any flag or cohort of the project. */
export const flagRevision = (projectId: number): string => `flags:${projectId}`;

/**
 * Records a change, in its transaction.
 *
 * @param name `keys`, `projects`, or `flags:<project id>` (flags and the cohorts they refer to).
 */
export function bumpRevision(t: MetadataTx, name: string): void {
  t.insert(schema.revision)
    .values({ name, value: 1 })
    .onConflictDoUpdate({ target: schema.revision.name, set: { value: sql`value + 1` } })
    .run();
}

/** How long a change of another process may stay unnoticed, in milliseconds; 0: not at all. */
const checkEveryMsDefault = 2;

/** Invalidates in-memory caches of the store. Names are those of `bumpRevision`. */
export class Changes {
  private readonly dataVersion: Statement<{ data_version: number }, []>;
  private readonly revisions: Statement<{ name: string; value: number }, []>;
  private checkedAt = Number.NEGATIVE_INFINITY;
  private version = -1;
  private isLocalChange = true;
  private known = new Map<string, number>();
  private restoredCount = 0;

  constructor(
    client: Database,
    private readonly checkEveryMs = checkEveryMsDefault,
  ) {
    this.dataVersion = client.query("PRAGMA data_version");
    this.revisions = client.query("SELECT name, value FROM revision");
  }

  /** Reports a change by this process: SQLite does not count a connection's own commits. */
  expect(): void {
    this.isLocalChange = true;
  }

  /**
   * Reports rows synced from other nodes. @param isBack some rows have an earlier state again, so that a known
   * revision may now belong to other rows.
   */
  syncRows(isBack: boolean): void {
    this.isLocalChange = true;
    if (isBack) this.restoredCount += 1;
  }

  /** Changes whenever the data behind `name` may have changed: a cache key. */
  mark(name: string): string {
    const revision = this.revision(name);
    return `${this.restoredCount} ${revision}`;
  }

  /** Current revision of `name`; 0 if it never changed. At most `checkEveryMs` behind other processes. */
  revision(name: string): number {
    const now = performance.now();
    if (this.isLocalChange || now - this.checkedAt >= this.checkEveryMs) this.check(now);
    return this.known.get(name) ?? 0;
  }

  private check(now: number): void {
    this.checkedAt = now;
    const version = this.dataVersion.get()?.data_version ?? 0;
    if (version === this.version && !this.isLocalChange) return;
    this.version = version;
    this.isLocalChange = false;
    this.known = new Map(this.revisions.all().map((row) => [row.name, row.value]));
  }
}

/** The store of organizations, projects, keys and flags is corrupt: the server cannot start without it. */
export class MetadataCorruptError extends AppError {
  readonly code = "metadata_corrupt";
  override readonly hint: string;
  /** @param advice how the last backup is restored, as a clause. */
  constructor(path: string, cause: unknown, advice: string) {
    super(`${path} is corrupt (${firstLine(cause).replace(/^flagkeep\.sqlite: /, "")}).`);
    this.hint = `Keep a copy of the data directory, then ${advice}.`;
  }
}
