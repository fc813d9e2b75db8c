/**
 * The one door through which errors become answers: nobody else knows which status an error has.
 *
 * What is not known here is a defect: it is logged with the request id that the client also gets, and the
 * client learns nothing else.
 */

import {
  AppError,
  EditConflict,
  InvalidField,
  isCorruptSqlite,
  NotFound,
  NotPermitted,
  TooManyAttempts,
} from "../lib/errors.ts";
import { BodyInterrupted, RequestRefused } from "./decode/failures.ts";
import { HttpFailure, notFound } from "./failure.ts";

/** Where unexpected errors are written. */
export interface ErrorLog {
  error(facts: Record<string, unknown>, message: string): void;
}

/** The request an error belongs to. */
export interface FailedRequest {
  request: Request;
  requestId: string;
  log: ErrorLog;
}

/** Errors of other subjects that mean "not now": the client shall repeat the request. What each says is in the documentation. */
export const retriedCodes: Readonly<Record<string, string>> = {
  engine_unavailable: "the event store is being opened",
  events_unreachable: "the ClickHouse that keeps the events does not answer",
  query_timeout: "it took too long",
  query_busy: "too many wait",
  postgres_unreachable: "the PostgreSQL that the fronts share does not answer",
};
const storeBusy = new Set<unknown>(["SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_LOCKED"]);
const storeFull = new Set<unknown>(["SQLITE_FULL", "SQLITE_IOERR_WRITE"]);
const retryAfterSeconds = 5;

/** What an error is to a client. */
export function failureOf(error: unknown): HttpFailure {
  if (error instanceof HttpFailure) return error;
  if (error instanceof RequestRefused) {
    // What is left of a body that was not waited for must not be taken for the next request.
    const headers: Record<string, string> = error instanceof BodyInterrupted ? { Connection: "close" } : {};
    return new HttpFailure(error.status, error.type, error.code, error.message, null, headers);
  }
  if (error instanceof InvalidField) {
    return new HttpFailure(400, "validation_error", error.code, error.message, error.field);
  }
  if (error instanceof NotFound) return notFound(error.message);
  if (error instanceof NotPermitted) {
    return new HttpFailure(403, "authentication_error", error.code, error.message);
  }
  if (error instanceof TooManyAttempts) {
    const headers = { "Retry-After": String(error.waitSeconds) };
    return new HttpFailure(429, "throttled_error", error.code, error.message, null, headers);
  }
  // The type is what clients of the original see; the contract asks for it.
  if (error instanceof EditConflict) return new HttpFailure(409, "server_error", error.code, error.message);
  const code = codeOf(error);
  if (code === "journal_unavailable") return retryLater(code, "transient error, please retry");
  if (error instanceof AppError && Object.hasOwn(retriedCodes, error.code))
    return retryLater(error.code, error.message);
  if (storeBusy.has(code)) return retryLater("store_busy", "Another process holds the store; try again.");
  if (storeFull.has(code)) return retryLater("store_full", "The disk is full; nothing was changed.");
  if (isCorruptSqlite(error))
    return retryLater(
      "store_corrupt",
      "A store is corrupt and cannot be read; `flagkeep status` reports it.",
    );
  return new HttpFailure(500, "server_error", "error", "A server error occurred.");
}

function codeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}

function retryLater(code: string, detail: string): HttpFailure {
  return new HttpFailure(503, "server_error", code, detail, null, {
    "Retry-After": String(retryAfterSeconds),
  });
}

/** Writes a defect of ours down, with the id that the client gets as well. */
export function logDefect(error: unknown, { request, requestId, log }: FailedRequest): void {
  log.error(
    {
      requestId,
      method: request.method,
      path: pathOf(request.url),
      status: 500,
      error:
        error instanceof Error ? { name: error.name, message: error.message, stack: error.stack } : error,
    },
    "request failed",
  );
}

/** Without the query, where keys may stand; an address that is none is cut all the same. */
export function pathOf(url: string): string {
  return /^(?:https?:\/\/[^/?#]*)?([^?#]*)/.exec(url)?.[1] ?? "";
}
