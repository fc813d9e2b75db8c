/**
 * Request errors that can be thrown, and their response body.
 *
 * Source: contract, management-api 1.3.
 */

import { AppError } from "../lib/errors.ts";

/** The body of every error response. */
export interface ErrorBody {
  type: string;
  code: string;
  detail: string;
  /** Name of the invalid field, nested parts joined by `__`; null without a single field. */
  attr: string | null;
  extra?: Record<string, unknown>;
}

/** An error that only HTTP knows: credentials, methods, bodies. Modules throw their own errors instead. */
export class HttpError extends AppError {
  readonly code: string;
  constructor(
    readonly status: number,
    readonly type: string,
    code: string,
    detail: string,
    readonly attr: string | null = null,
    readonly headers: Record<string, string> = {},
  ) {
    super(detail);
    this.code = code;
  }
}

/** 401: the request has no credential. To the console, identified by this code alone: no session. */
export const notAuthenticated = () =>
  new HttpError(
    401,
    "authentication_error",
    "not_authenticated",
    "Authentication credentials were not provided.",
    null,
    { "WWW-Authenticate": "Bearer" },
  );

/** 401: the credential is invalid; `attr` is the field that contained it. */
export const authenticationFailed = (detail: string, attr: string | null = null) =>
  new HttpError(401, "authentication_error", "authentication_failed", detail, attr, {
    "WWW-Authenticate": "Bearer",
  });

/** 403. */
export const permissionDenied = (detail: string) =>
  new HttpError(403, "authentication_error", "permission_denied", detail);

/** 403: the result is a credential, and the key or the session has fewer permissions than its user. */
export const fullAccessRequired = () =>
  permissionDenied(
    "This action requires a personal API key with the scope '*' and no restriction, or a session that was not created with a restricted key.",
  );

/** 403: the session requires password re-authentication. */
export const confirmationRequired = () =>
  new HttpError(
    403,
    "authentication_error",
    "confirmation_required",
    "Password re-authentication is required: POST /api/session/confirm/. It is valid for ten minutes.",
  );

/** 404. */
export const notFound = (detail = "Not found.") => new HttpError(404, "invalid_request", "not_found", detail);

/** 405; `allowed` are the methods of the path. */
export const methodNotAllowed = (method: string, allowed: readonly string[], detail?: string) =>
  new HttpError(
    405,
    "invalid_request",
    "method_not_allowed",
    detail ?? `Method "${method}" not allowed.`,
    null,
    { Allow: allowed.join(", ") },
  );

/** 400: the body does not match its content type. */
export const parseError = (reason: string) =>
  new HttpError(400, "invalid_request", "parse_error", `JSON parse error - ${reason}`);

/** 413. */
export const bodyTooLarge = (bytesMax: number) =>
  new HttpError(
    413,
    "invalid_request",
    "request_too_large",
    `The request body is larger than ${bytesMax} bytes.`,
  );

/** 415. */
export const unsupportedMediaType = (mediaType: string) =>
  new HttpError(
    415,
    "invalid_request",
    "unsupported_media_type",
    `Unsupported media type "${mediaType}" in request.`,
  );

/** 499, as in reverse proxies: the client has disconnected. */
export const clientDisconnected = () =>
  new HttpError(
    499,
    "invalid_request",
    "client_closed_request",
    "The client closed the connection before the response.",
  );
