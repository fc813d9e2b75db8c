/** Event storage behind the engine's queries: DuckDB or a ClickHouse server. */

import { CachedTables } from "../events/duckdb/cached-tables.ts";
import { deleteExpiredEvents, type RetentionCutoff } from "../events/duckdb/event-expiry.ts";
import type { EventLoader } from "../events/duckdb/loader.ts";
import type { DuckdbPersonReplica } from "../events/duckdb/person-replica.ts";
import { duckdbSql } from "../events/duckdb/sql-dialect.ts";
import { readAllBlocks } from "../events/duckdb/verify-blocks.ts";
import type { Sink } from "../events/export/writer.ts";
import { type DownloadRequest, downloadQuery } from "../events/query/download.ts";
import { type QueryRequest, runQuery } from "../events/query/run-query.ts";
import type { EventSql, SentPropertiesLocation } from "../events/sql-dialect.ts";
import type { EventStore } from "../events/store.ts";
import type { PersonsDb } from "../persons/open.ts";
import { QueryTimeoutError, type RunningQueries, type RunOptions } from "./running-queries.ts";

/** The event store's replicas of persons. */
export interface PersonCopies {
  /** Applies every change made before the call. */
  follow(): Promise<void>;
  /** The number of the last applied change. */
  readonly followed: number;
}

export interface EventBackend {
  readonly events: EventStore;
  readonly copies: PersonCopies;
  /** Runs queries; cancels those over the time limit or without a waiting client. */
  run<Result>(query: (store: EventSql) => Promise<Result>, options: RunOptions): Promise<Result>;
  /** Returns the chunks of a `QueryResult` in JSON for an operator's SELECT. @throws {StatementRejectedError} */
  runStatement(request: QueryRequest, options: RunOptions): Promise<Uint8Array[]>;
  /**
   * Streams the rows of an operator's SELECT as a file.
   * @param options `endsAt` is read repeatedly and may be extended @throws {StatementRejectedError}
   */
  download(request: DownloadRequest, sink: Sink, options: RunOptions): Promise<void>;
  /** @returns the number of deleted events */
  deleteExpiredEvents(cutoffs: readonly RetentionCutoff[], options: RunOptions): Promise<number>;
  /** Reads all stored data. @throws errors of the store about corruption */
  readEverything(options: RunOptions): Promise<void>;
  /** Suspends checkpoints of the event store for this long while its file is copied; 0 resumes them. */
  holdCheckpoints(ms: number, checkpointFirst: boolean): Promise<void>;
}

export interface DuckdbDeps {
  loader: EventLoader;
  mirror: DuckdbPersonReplica;
  queries: RunningQueries;
  people: PersonsDb;
  resultBytesMax: number;
  /** Receives the event properties that a query reads; see `materialized-columns.ts`. */
  onProperties?: (names: Iterable<string>) => void;
}

/** Aborted when the client disconnects or the time limit is reached. */
function stopSignal({ signal, endsAt }: RunOptions): AbortSignal | undefined {
  if (endsAt === undefined) return signal;
  const limit = new AbortController();
  setTimeout(() => limit.abort(new QueryTimeoutError()), Math.max(0, endsAt - performance.now())).unref();
  return signal === undefined ? limit.signal : AbortSignal.any([signal, limit.signal]);
}

/** Events in DuckDB, in the engine's process. */
export function duckdbBackend({
  loader,
  mirror,
  queries,
  people,
  resultBytesMax,
  onProperties,
}: DuckdbDeps): EventBackend {
  /** For one query: repeated use of a property is counted once. */
  const eventProperties = (): SentPropertiesLocation => {
    const names = new Set<string>();
    return loader.propertyColumns.location("e", (name) => {
      if (!names.has(name)) onProperties?.([name]);
      names.add(name);
    });
  };
  const cachedTables = new CachedTables();
  return {
    events: loader,
    copies: mirror,
    run: (query, options) =>
      queries.run(async (connection) => {
        const cached = cachedTables.reader(connection, () => stopSignal(options));
        try {
          return await query(duckdbSql(connection, eventProperties(), cached.table));
        } finally {
          await cached.end();
        }
      }, options),
    runStatement: (request, options) =>
      queries.run(
        (connection) =>
          runQuery(connection, { people, resultBytesMax, eventProperties: eventProperties() }, request),
        {
          ...options,
          isForeign: true,
        },
      ),
    download: (request, sink, options) =>
      queries.run(
        (connection) =>
          downloadQuery(connection, { people, eventProperties: eventProperties() }, request, sink),
        Object.assign(options, { isForeign: true }),
      ),
    async deleteExpiredEvents(cutoffs, options) {
      cachedTables.clear();
      return await queries
        .run((connection) => deleteExpiredEvents(connection, cutoffs), options)
        .finally(() => cachedTables.clear());
    },
    readEverything: (options) => queries.run(readAllBlocks, options),
    async holdCheckpoints(ms, checkpointFirst) {
      loader.holdCheckpoints(ms);
      if (checkpointFirst) await queries.run((other) => loader.checkpointForCopy(other));
    },
  };
}
