/**
 * Persons of a cluster as a node reads them: what flag evaluation needs is cached, and forgotten when it changes; the
 * rest is read from PostgreSQL.
 */

import type { Postgres } from "../../cluster/connection.ts";
import type { MaybePromise } from "../../lib/concurrency.ts";
import { PeriodicTasks } from "../../lib/concurrency.ts";
import { CachedSubjects, type CacheUse } from "../cached-subjects.ts";
import type { StoredSubject, SubjectQuery } from "../person-reader.ts";
import { PostgresPersonReader } from "./reader.ts";

/** Interval of reading what changed. */
const feedEveryMs = 500;
/** Changes per read; more are read immediately. */
const changesAtOnce = 10_000;

export interface NodeReaderOptions {
  /** Bytes of cached persons. */
  cacheBytes: number;
  /** Whether PostgreSQL is known to be unavailable. */
  isUnavailable: () => boolean;
  onError: (error: unknown) => void;
}

export class NodePersonReader extends PostgresPersonReader {
  private readonly cache: CachedSubjects;
  private readonly feed: PeriodicTasks;
  /** The last change that was read; undefined before the first. */
  private last: number | undefined;
  /** When all changes had been read, in milliseconds. */
  private followedAt = performance.now();

  constructor(postgres: Postgres, options: NodeReaderOptions) {
    super(postgres);
    this.cache = new CachedSubjects(new PostgresPersonReader(postgres), {
      bytesMax: options.cacheBytes,
      isUnavailable: options.isUnavailable,
    });
    this.feed = new PeriodicTasks(options.onError);
    this.feed.every(feedEveryMs, () => this.follow());
  }

  override subject(query: SubjectQuery): MaybePromise<StoredSubject> {
    return this.cache.subject(query);
  }

  override hasHashKeyOverrides(): MaybePromise<boolean> {
    return this.cache.hasHashKeyOverrides();
  }

  /** Forgets IDs whose overrides this node has stored. */
  forget(projectId: number, distinctIds: readonly string[]): void {
    for (const distinctId of distinctIds) this.cache.overridesStored(projectId, distinctId);
  }

  get cacheUse(): CacheUse {
    return this.cache.use;
  }

  /** Time since all changes had been read: cached persons may be that old. */
  get feedAgeSeconds(): number {
    return (performance.now() - this.followedAt) / 1_000;
  }

  stop(): void {
    this.feed.stop();
  }

  /** Forgets what changed since the last call. @throws {PostgresUnreachableError} */
  private async follow(): Promise<void> {
    if (this.last === undefined) {
      this.last = await this.newestChange();
      // What requests have read before may be older.
      this.cache.clear();
    }
    for (;;) {
      const startedAt = performance.now();
      const rows = await this.postgres.run(
        (sql) => sql<ChangeRow[]>`
          SELECT change_id::float8 AS "changeId", project_id AS "projectId", person_uuid AS uuid,
            distinct_id AS "distinctId"
          FROM flagkeep.person_change WHERE change_id > ${this.last!} ORDER BY change_id LIMIT ${changesAtOnce}`,
      );
      const uuids = rows.flatMap(({ uuid }) => uuid ?? []);
      if (uuids.length > 0) this.cache.evict(uuids);
      for (const { projectId, distinctId } of rows)
        if (distinctId !== null) this.cache.evictId(projectId, distinctId);
      this.last = rows.at(-1)?.changeId ?? this.last;
      if (rows.length >= changesAtOnce) continue;
      this.followedAt = startedAt;
      return;
    }
  }

  private async newestChange(): Promise<number> {
    const [row] = await this.postgres.run(
      (sql) => sql<{ last: number }[]>`
        SELECT coalesce(max(change_id), 0)::float8 AS last FROM flagkeep.person_change`,
    );
    return row!.last;
  }
}

interface ChangeRow {
  changeId: number;
  projectId: number;
  uuid: string | null;
  distinctId: string | null;
}
