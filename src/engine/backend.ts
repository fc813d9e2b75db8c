/** What keeps events and answers about them, behind the engine's questions: DuckDB, or a ClickHouse server. */

import { duckdbSql, type EventSql, type PropertyPlace } from "../events/dialect.ts";
import { readAllRows } from "../events/duckdb/every-block.ts";
import type { EventLoader } from "../events/duckdb/loader.ts";
import { type RetentionCutoff, removeOldEvents } from "../events/duckdb/old-events.ts";
import type { PersonMirror } from "../events/duckdb/person-mirror.ts";
import type { Sink } from "../events/export/writer.ts";
import { type DownloadRequest, downloadQuery } from "../events/query/download.ts";
import { type QueryRequest, runQuery } from "../events/query/run-query.ts";
import type { EventStore } from "../events/store.ts";
import type { PeopleDb } from "../people/open.ts";
import type { RunningQueries, RunOptions } from "./running-queries.ts";

/** The event store's copies of persons. */
export interface PersonCopies {
  /** Takes over every change made before the call. */
  follow(): Promise<void>;
  /** The number of the last change that was taken over. */
  readonly followed: number;
}

export interface EventBackend {
  readonly events: EventStore;
  readonly copies: PersonCopies;
  /** Asks questions; a query that takes too long or that nobody waits for is stopped. */
  run<Result>(query: (store: EventSql) => Promise<Result>, options: RunOptions): Promise<Result>;
  /** Answers an operator's SELECT with the JSON of a `QueryResult`, in portions. @throws {StatementRefused} */
  runStatement(request: QueryRequest, options: RunOptions): Promise<Uint8Array[]>;
  /**
   * Writes the rows of an operator's SELECT as a file, while they are computed.
   *
   * @param options `endsAt` is looked at again and again, and may be put off. @throws {StatementRefused}
   */
  download(request: DownloadRequest, sink: Sink, options: RunOptions): Promise<void>;
  /** @returns how many events went. */
  removeOldEvents(cutoffs: readonly RetentionCutoff[], options: RunOptions): Promise<number>;
  /** Reads everything that is stored. @throws what the store says of damage */
  readEverything(options: RunOptions): Promise<void>;
  /** Leaves the event store's file as it is for so long, because it is copied; 0 ends that. */
  holdCheckpoints(ms: number, checkpointFirst: boolean): Promise<void>;
}

export interface DuckdbParts {
  loader: EventLoader;
  mirror: PersonMirror;
  queries: RunningQueries;
  people: PeopleDb;
  resultBytesMax: number;
  /** Told which properties of events a question reads; see `promotion.ts`. */
  onProperties?: (names: Iterable<string>) => void;
}

/** Events in DuckDB, in the engine's own process. */
export function duckdbBackend({
  loader,
  mirror,
  queries,
  people,
  resultBytesMax,
  onProperties,
}: DuckdbParts): EventBackend {
  /** Of one question, which is counted as one however often it names a property. */
  const eventProperties = (): PropertyPlace => {
    const names = new Set<string>();
    return loader.propertyColumns.place("e", (name) => {
      if (!names.has(name)) onProperties?.([name]);
      names.add(name);
    });
  };
  return {
    events: loader,
    copies: mirror,
    run: (query, options) =>
      queries.run((connection) => query(duckdbSql(connection, eventProperties())), options),
    runStatement: (request, options) =>
      queries.run((connection) => runQuery(connection, { people, resultBytesMax }, request), {
        ...options,
        isForeign: true,
      }),
    download: (request, sink, options) =>
      queries.run(
        (connection) => downloadQuery(connection, { people }, request, sink),
        Object.assign(options, { isForeign: true }),
      ),
    removeOldEvents: (cutoffs, options) =>
      queries.run((connection) => removeOldEvents(connection, cutoffs), options),
    readEverything: (options) => queries.run(readAllRows, options),
    async holdCheckpoints(ms, checkpointFirst) {
      loader.holdCheckpoints(ms);
      if (checkpointFirst) await queries.run((other) => loader.checkpointForCopy(other));
    },
  };
}
