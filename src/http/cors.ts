/**
 * What pages on other origins may read.
 *
 * The origin is mirrored and never `*`. Every answer carries the headers, refusals too: without them a browser library
 * cannot tell a refusal from a broken connection and sends again.
 * Source: contract, README (CORS), ingestion 1.2, management-api 1.5; sdk-compat 4.1.
 */

/** The rules of a kind of route. */
export interface CorsRules {
  readonly methods: string;
  /** Request headers that are allowed where the browser names none. */
  readonly headers: string;
  /** Beacons are sent with credentials; keys never travel in cookies. */
  readonly takesCredentials: boolean;
  /** Status of the answer to a browser's question. */
  readonly preflightStatus: 200 | 204;
}

/** The header of the console's own requests. A page of another origin cannot send it: no preflight allows it. */
export const consoleHeader = "x-flagkeep-console";

const exposedHeaders = "ETag, Retry-After, X-Request-Id, PostHog-Request-Id";
const maxAgeSeconds = "86400";

/** Management: a key is sent by the caller's own code. */
export const apiCors: CorsRules = {
  methods: "DELETE, GET, OPTIONS, PATCH, POST, PUT",
  headers: "accept, authorization, content-type, user-agent, x-csrftoken, x-requested-with",
  takesCredentials: false,
  preflightStatus: 204,
};

/** Capture, flag evaluation, client configuration. */
export const publicCors: CorsRules = {
  methods: "GET, POST, OPTIONS",
  headers:
    "content-type, content-encoding, authorization, traceparent, x-posthog-distinct-id, x-posthog-session-id, x-posthog-window-id",
  takesCredentials: true,
  preflightStatus: 204,
};

/** Whether a request is a browser's question before the real one. */
export function isPreflight(request: Request): boolean {
  return (
    request.method === "OPTIONS" &&
    request.headers.has("origin") &&
    request.headers.has("access-control-request-method")
  );
}

/** Puts the headers that let the page that asks read the answer beside the others. */
export function addCors(headers: Record<string, string>, request: Request, rules: CorsRules): void {
  // Also without an origin: a cache must not hand this answer to a page that has one.
  headers.Vary = "Origin";
  const origin = request.headers.get("origin");
  if (origin === null) return;
  headers["Access-Control-Allow-Origin"] = origin;
  headers["Access-Control-Expose-Headers"] = exposedHeaders;
  if (rules.takesCredentials) headers["Access-Control-Allow-Credentials"] = "true";
}

/** The headers of the answer to a preflight besides those of every answer: requested headers are allowed, the console's own never. */
export function preflightHeaders(request: Request, rules: CorsRules): Record<string, string> {
  return {
    "Access-Control-Allow-Methods": rules.methods,
    "Access-Control-Allow-Headers": allowedHeaders(request) || rules.headers,
    "Access-Control-Max-Age": maxAgeSeconds,
  };
}

function allowedHeaders(request: Request): string {
  return (request.headers.get("access-control-request-headers") ?? "")
    .split(",")
    .filter((name) => !["", consoleHeader].includes(name.trim().toLowerCase()))
    .join(",")
    .trim();
}
