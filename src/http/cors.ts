/**
 * CORS: what pages on other origins may read.
 *
 * The origin is mirrored and never `*`. Every response carries the headers, including errors: without them a browser
 * library cannot distinguish an error from a broken connection, and retries. Source: contract, README (CORS), ingestion
 * 1.2, management-api 1.5; sdk-compat 4.1.
 */

/** CORS rules of a kind of route. */
export interface CorsRules {
  readonly methods: string;
  /** Allowed request headers when the browser requests none. */
  readonly headers: string;
  /** Beacons are sent with credentials; keys never travel in cookies. */
  readonly takesCredentials: boolean;
  /** Status of the preflight response. */
  readonly preflightStatus: 200 | 204;
}

/** Header of the console's own requests. Pages of other origins cannot send it: no preflight allows it. */
export const consoleHeader = "x-flagkeep-console";

const exposedHeaders = "ETag, Retry-After, X-Request-Id, PostHog-Request-Id";
const maxAgeSeconds = "86400";

/** Management API: keys are sent by the caller's own code. */
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

/** Whether a request is a CORS preflight. */
export function isPreflight(request: Request): boolean {
  return (
    request.method === "OPTIONS" &&
    request.headers.has("origin") &&
    request.headers.has("access-control-request-method")
  );
}

/** Adds the headers that let the requesting page read the response. */
export function addCors(headers: Record<string, string>, request: Request, rules: CorsRules): void {
  // Even without an Origin: a cache must not return this response to a page that sends one.
  headers.Vary = "Origin";
  const origin = request.headers.get("origin");
  if (origin === null) return;
  headers["Access-Control-Allow-Origin"] = origin;
  headers["Access-Control-Expose-Headers"] = exposedHeaders;
  if (rules.takesCredentials) headers["Access-Control-Allow-Credentials"] = "true";
}

/** Additional headers of a preflight response: requested headers are allowed, the console's own never. */
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
