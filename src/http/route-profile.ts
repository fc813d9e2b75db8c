/**
 * Behavior of a kind of route: its error envelope, its CORS rules, and its responses to methods without a route. Every
 * route record names its dialect; everything else is the same for all.
 */

import { apiCors, type CorsRules, publicCors } from "./cors.ts";
import { InvalidPayloadError, PayloadTooLargeError } from "./decode/errors.ts";
import type { ErrorBody, HttpError } from "./http-error.ts";
import { bodyTooLarge, parseError } from "./http-error.ts";
import { RouteResponse } from "./route-response.ts";

/** The rejected request. */
export interface RejectedRequest {
  readonly request: Request;
  readonly requestId: string;
  readonly params: Readonly<Record<string, string>>;
}

export interface RouteProfile {
  /** Absent: pages on other origins may read nothing. */
  readonly cors?: CorsRules;
  /** Default `Cache-Control` of responses. */
  readonly caching?: string;
  /** Whether its requests contain events. */
  readonly isCapture?: boolean;
  /** Whether HEAD is a GET without its body; on capture routes a GET stores an event. */
  readonly headIsGet: boolean;
  /**
   * Builds an error response.
   *
   * @param failure the general HTTP error.
   * @param error   the thrown error, for dialects with their own messages.
   */
  reject(failure: HttpError, error: unknown, rejected: RejectedRequest): RouteResponse;
  /** The response to an OPTIONS that is not a preflight; absent: it requires a key, like reading. */
  options?(): RouteResponse;
}

/** The error envelope of the management API. Source: contract, management-api 1.3. */
export function envelope(failure: HttpError, { requestId }: RejectedRequest): RouteResponse {
  const body: ErrorBody = {
    type: failure.type,
    code: failure.code,
    detail: failure.message,
    attr: failure.attr,
  };
  if (failure.status === 500) body.extra = { request_id: requestId };
  return new RouteResponse(failure.status, body, failure.headers);
}

/** The management API. */
export const managementProfile: RouteProfile = {
  cors: apiCors,
  // The console's user is identified by a cookie, which caches ignore.
  caching: "no-store",
  headIsGet: true,
  reject(failure, error, rejected) {
    if (error instanceof PayloadTooLargeError) return envelope(bodyTooLarge(error.limitBytes), rejected);
    if (error instanceof InvalidPayloadError) return envelope(parseError(error.message), rejected);
    return envelope(failure, rejected);
  },
};

/** Event capture. */
export const captureProfile: RouteProfile = {
  cors: { ...publicCors, preflightStatus: 200 },
  isCapture: true,
  headIsGet: false,
  reject: (failure, _, rejected) => envelope(failure, rejected),
  options: () => new RouteResponse(200, { status: "Ok" }),
};

/** Files that browsers and libraries load. */
export const publicFilesProfile: RouteProfile = {
  cors: publicCors,
  headIsGet: true,
  reject(failure, _, rejected) {
    // Plain text: an HTML page in place of a script would be executed as one.
    if (failure.status === 404) return RouteResponse.text("Not found.\n", 404);
    return envelope(failure, rejected);
  },
  options: () => new RouteResponse(204),
};

/** Files for users and tools of this server only. */
export const uiFilesProfile: RouteProfile = { ...publicFilesProfile, cors: undefined };
