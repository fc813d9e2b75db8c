/**
 * The only place that maps errors to responses and status codes.
 *
 * An unknown error is a defect: it is logged with the request ID, which is all that the client receives.
 */

import {
  AppError,
  EditConflictError,
  InvalidFieldError,
  isCorruptSqlite,
  NotFoundError,
  PermissionDeniedError,
  TooManyAttemptsError,
} from "../lib/errors.ts";
import { IncompleteBodyError, RequestRejectedError } from "./decode/errors.ts";
import { HttpError, notFound } from "./http-error.ts";
import type { ResponseSpec } from "./route.ts";
import { ApiFailure } from "./schemas.ts";

/** Log for unexpected errors. */
export interface ErrorLog {
  error(facts: Record<string, unknown>, message: string): void;
}

/** The request of an error. */
export interface FailedRequest {
  request: Request;
  requestId: string;
  log: ErrorLog;
}

/** Codes of temporary errors: the client should retry. The values are the documentation. */
const retryableCodes: Readonly<Record<string, string>> = {
  engine_unavailable: "the event store is opening",
  events_unreachable: "ClickHouse does not respond",
  query_timeout: "the query exceeded the time limit",
  query_busy: "too many queries are queued",
  postgres_unreachable: "PostgreSQL does not respond",
  change_in_progress: "another node's change did not end in time",
  persons_conversion: "persons of the cluster are being converted",
  persons_converted: "the node has missed a conversion of persons, and stops",
  take_over_refused: "the data of the cluster was migrated, and the node stops",
};
const storeBusy = new Set<unknown>(["SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT", "SQLITE_LOCKED"]);
const storeFull = new Set<unknown>(["SQLITE_FULL", "SQLITE_IOERR_WRITE"]);
const retryAfterSeconds = 5;

/** The HTTP error for any thrown error. */
export function toHttpError(error: unknown): HttpError {
  if (error instanceof HttpError) return error;
  if (error instanceof RequestRejectedError) {
    // The unread rest of the body must not be parsed as the next request.
    const headers: Record<string, string> =
      error instanceof IncompleteBodyError ? { Connection: "close" } : {};
    return new HttpError(error.status, error.type, error.code, error.message, null, headers);
  }
  if (error instanceof InvalidFieldError) {
    return new HttpError(400, "validation_error", error.code, error.message, error.field);
  }
  if (error instanceof NotFoundError) return notFound(error.message);
  if (error instanceof PermissionDeniedError) {
    return new HttpError(403, "authentication_error", error.code, error.message);
  }
  if (error instanceof TooManyAttemptsError) {
    const headers = { "Retry-After": String(error.waitSeconds) };
    return new HttpError(429, "throttled_error", error.code, error.message, null, headers);
  }
  // Clients of PostHog expect this type; the contract requires it.
  if (error instanceof EditConflictError)
    return new HttpError(409, "server_error", error.code, error.message);
  const code = getCode(error);
  if (code === "journal_unavailable") return retryLater(code, "transient error, please retry");
  if (error instanceof AppError && Object.hasOwn(retryableCodes, error.code))
    return retryLater(error.code, error.message);
  if (storeBusy.has(code)) return retryLater("store_busy", "Another process locks the store. Try again.");
  if (storeFull.has(code)) return retryLater("store_full", "The disk is full; nothing was changed.");
  if (isCorruptSqlite(error))
    return retryLater(
      "store_corrupt",
      "A store is corrupt and cannot be read; `flagkeep status` reports it.",
    );
  return new HttpError(500, "server_error", "error", "A server error occurred.");
}

function getCode(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : undefined;
}

function retryLater(code: string, detail: string): HttpError {
  return new HttpError(503, "server_error", code, detail, null, {
    "Retry-After": String(retryAfterSeconds),
  });
}

/** Logs a defect with the request ID that the client receives. */
export function logUnexpectedError(error: unknown, { request, requestId, log }: FailedRequest): void {
  log.error(
    {
      requestId,
      method: request.method,
      path: getPath(request.url),
      status: 500,
      error:
        error instanceof Error ? { name: error.name, message: error.message, stack: error.stack } : error,
    },
    "request failed",
  );
}

/** Without the query, which may contain keys; also for invalid URLs. */
export function getPath(url: string): string {
  return /^(?:https?:\/\/[^/?#]*)?([^?#]*)/.exec(url)?.[1] ?? "";
}

/** For routes that use the engine: it may be restarting, or the query may time out. */
export const unavailable: Record<503, ResponseSpec> = {
  503: {
    description: `Temporarily unavailable: ${Object.entries(retryableCodes)
      .map(([code, reason]) => `\`${code}\` (${reason})`)
      .join(", ")}. Repeat the request after the seconds in \`Retry-After\`.`,
    schema: ApiFailure,
    example: {
      type: "server_error",
      code: "engine_unavailable",
      detail: "Queries are unavailable while the event store is being reopened.",
      attr: null,
    },
  },
};
