/**
 * Cross-origin answers of the public routes: capture, flag evaluation, client configuration.
 *
 * The origin is mirrored and never `*`: beacons are sent with credentials, and browsers refuse a `*` for those.
 * Every answer carries the headers, refusals too; without them a browser library cannot tell a refusal from a
 * broken connection and sends again. Source: contract, ingestion 1.2; sdk-compat 4.1.
 */

const methods = "GET, POST, OPTIONS";
const allowedHeaders =
  "content-type, content-encoding, authorization, traceparent, x-posthog-distinct-id, x-posthog-session-id, x-posthog-window-id";
const exposedHeaders = "ETag, Retry-After, PostHog-Request-Id";
const maxAgeSeconds = "86400";

const sameOrigin: Readonly<Record<string, string>> = { Vary: "Origin" };

/** The headers that let the page that asks read the answer; to be merged into the answer's own. */
export function publicCorsHeaders(request: Request): Readonly<Record<string, string>> {
  const origin = request.headers.get("origin");
  if (origin === null) return sameOrigin;
  return {
    Vary: "Origin",
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Allow-Credentials": "true",
    "Access-Control-Allow-Methods": methods,
    "Access-Control-Allow-Headers": request.headers.get("access-control-request-headers") ?? allowedHeaders,
    "Access-Control-Max-Age": maxAgeSeconds,
    "Access-Control-Expose-Headers": exposedHeaders,
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
