/** How the front asks the event store, which another process owns. */

import { AppError } from "../lib/errors.ts";
import type { TrendsRequest } from "./insights/found-events.ts";
import type { ComputedInsight, Refresh } from "./insights/insight-cache.ts";
import type { EventFilter, EventPosition } from "./list.ts";
import type { DownloadRequest } from "./query/download.ts";
import type { QueryRequest } from "./query/run-query.ts";

/** JSON as a stream, which goes out as it is. Each rejects with `QueryRefused` and the like. */
export interface EventQueries {
  /** A page of events; `meta` is where the next one starts. */
  stream(
    name: "events",
    request: EventFilter,
  ): Promise<{ body: ReadableStream<Uint8Array>; meta: EventPosition | null }>;
  /** An operator's SELECT. @throws {StatementsBarred} */
  stream(name: "query", request: QueryRequest): Promise<{ body: ReadableStream<Uint8Array> }>;
  /** The same as CSV or Parquet, sent while it is computed. @throws {StatementsBarred} */
  stream(name: "download", request: DownloadRequest): Promise<{ body: ReadableStream<Uint8Array> }>;
  ask(name: "trends", request: TrendsRequest & { refresh: Refresh }): Promise<ComputedInsight>;
}

/** The query asks for something that cannot be answered; the message says what. */
export class QueryRefused extends AppError {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
  }
}

/** The statements of a project have brought the engine down twice within a minute. */
export class StatementsBarred extends AppError {
  readonly code = "statements_barred";
  constructor(readonly waitSeconds: number) {
    super(
      "Statements of this project have brought the event store down twice within a minute; they have to wait for " +
        `${waitSeconds} second${waitSeconds === 1 ? "" : "s"}.`,
    );
  }
}
