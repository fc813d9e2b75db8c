/**
 * Failures of a request as values that can be thrown, and the shape in which they leave.
 *
 * Source: contract, management-api 1.3.
 */

import { AppError } from "../lib/errors.ts";

/** The body of every failure. */
export interface FailureBody {
  type: string;
  code: string;
  detail: string;
  /** Name of the field at fault, nested parts joined by `__`; null when it is no single field. */
  attr: string | null;
  extra?: Record<string, unknown>;
}

/** A refusal that only HTTP knows: credentials, methods, bodies. Subjects throw their own errors instead. */
export class HttpFailure extends AppError {
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

/** 401: no credential came with the request. To the console, and by this code alone: nobody is signed in. */
export const notAuthenticated = () =>
  new HttpFailure(
    401,
    "authentication_error",
    "not_authenticated",
    "Authentication credentials were not provided.",
    null,
    { "WWW-Authenticate": "Bearer" },
  );

/** 401: a credential came and is not usable; `attr` is the field that it came in. */
export const authenticationFailed = (detail: string, attr: string | null = null) =>
  new HttpFailure(401, "authentication_error", "authentication_failed", detail, attr, {
    "WWW-Authenticate": "Bearer",
  });

/** 403. */
export const permissionDenied = (detail: string) =>
  new HttpFailure(403, "authentication_error", "permission_denied", detail);

/** 403: the result is a credential, and the key, or the session, has less than the permissions of its user. */
export const fullAccessRequired = () =>
  permissionDenied(
    "This action needs a personal API key with the scope '*' and no restriction, or a session that was not created with a restricted key.",
  );

/** 403: somebody signed in has to give the password again before this. */
export const confirmationRequired = () =>
  new HttpFailure(
    403,
    "authentication_error",
    "confirmation_required",
    "Give your password again first: POST /api/session/confirm/. That holds for ten minutes.",
  );

/** 404. */
export const notFound = (detail = "Not found.") =>
  new HttpFailure(404, "invalid_request", "not_found", detail);

/** 405; `allowed` are the methods that the path has. */
export const methodNotAllowed = (method: string, allowed: readonly string[], detail?: string) =>
  new HttpFailure(
    405,
    "invalid_request",
    "method_not_allowed",
    detail ?? `Method "${method}" not allowed.`,
    null,
    { Allow: allowed.join(", ") },
  );

/** 400: the body is not what its content type says. */
export const parseError = (reason: string) =>
  new HttpFailure(400, "invalid_request", "parse_error", `JSON parse error - ${reason}`);

/** 413. */
export const bodyTooLarge = (bytesMax: number) =>
  new HttpFailure(
    413,
    "invalid_request",
    "request_too_large",
    `The request body is larger than ${bytesMax} bytes.`,
  );

/** 415. */
export const unsupportedMediaType = (mediaType: string) =>
  new HttpFailure(
    415,
    "invalid_request",
    "unsupported_media_type",
    `Unsupported media type "${mediaType}" in request.`,
  );

/** 499, as reverse proxies count it: nobody reads this answer. */
export const callerGone = () =>
  new HttpFailure(
    499,
    "invalid_request",
    "client_closed_request",
    "The client closed the connection before the answer.",
  );
