/**
 * Cross-origin answers of the public routes: capture, flag evaluation, client configuration.
 *
 * The origin is mirrored and never `*`: beacons are sent with credentials, and browsers refuse a `*` for those.
 * Every answer carries the headers, refusals too; without them a browser library cannot tell a refusal from a
 * broken connection and sends again. Source: contract, ingestion 1.2; sdk-compat 4.1.
 */

const METHODS = "GET, POST, OPTIONS";
const HEADERS =
  "content-type, content-encoding, authorization, traceparent, x-posthog-distinct-id, x-posthog-session-id, x-posthog-window-id";
const EXPOSED_HEADERS = "ETag, Retry-After, PostHog-Request-Id";
const MAX_AGE_SECONDS = "86400";

const SAME_ORIGIN: Readonly<Record<string, string>> = { Vary: "Origin" };

/** The headers that let the page that asks read the answer; to be merged into the answer's own. */
export function publicCorsHeaders(request: Request): Readonly<Record<string, string>> {
  const origin = request.headers.get("origin");
  if (origin === null) return SAME_ORIGIN;
  return {
    Vary: "Origin",
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Allow-Credentials": "true",
    "Access-Control-Allow-Methods": METHODS,
    "Access-Control-Allow-Headers": request.headers.get("access-control-request-headers") ?? HEADERS,
    "Access-Control-Max-Age": MAX_AGE_SECONDS,
    "Access-Control-Expose-Headers": EXPOSED_HEADERS,
  };
}

/** Whether a request is a browser's question before the real one. */
export function isPublicPreflight(request: Request): boolean {
  return (
    request.method === "OPTIONS" &&
    request.headers.has("origin") &&
    request.headers.has("access-control-request-method")
  );
}

/** Answers a browser's question: 200 on capture routes, 204 on the others. */
export function publicPreflight(request: Request, status: 200 | 204): Response {
  return new Response(null, { status, headers: publicCorsHeaders(request) });
}
