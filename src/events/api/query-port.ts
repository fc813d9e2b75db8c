/** The server process's interface to the event store, which another process owns. */

import { AppError } from "../../lib/errors.ts";
import type { TrendsRequest } from "../insights/event-source.ts";
import type { ComputedInsight, Refresh } from "../insights/insight-cache.ts";
import type { EventFilter, EventPosition } from "../list.ts";
import type { DownloadRequest } from "../query/download.ts";
import type { QueryRequest } from "../query/run-query.ts";

/** Results as JSON streams, passed through unparsed. All methods reject with errors such as `QueryRejectedError`. */
export interface EventQueries {
  /** A page of events; `meta` is the start of the next page. */
  stream(
    name: "events",
    request: EventFilter,
  ): Promise<{ body: ReadableStream<Uint8Array>; meta: EventPosition | null }>;
  /** The result of an operator's SELECT. @throws {StatementBlockedError} */
  stream(name: "query", request: QueryRequest): Promise<{ body: ReadableStream<Uint8Array> }>;
  /** The result as CSV or Parquet, streamed while it is computed. @throws {StatementBlockedError} */
  stream(name: "download", request: DownloadRequest): Promise<{ body: ReadableStream<Uint8Array> }>;
  ask(name: "trends", request: TrendsRequest & { refresh: Refresh }): Promise<ComputedInsight>;
}

/** Statements of the project have crashed the engine twice within a minute. */
export class StatementBlockedError extends AppError {
  readonly code = "statements_barred";
  constructor(readonly waitSeconds: number) {
    super(
      "Statements of this project crashed the event store twice within a minute and are blocked for " +
        `${waitSeconds} second${waitSeconds === 1 ? "" : "s"}.`,
    );
  }
}
