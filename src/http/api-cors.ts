/**
 * Cross-origin answers of the management API.
 *
 * The origin is mirrored, without credentials: a key is sent by the caller's own code, never by a cookie.
 * Source: contract, README (CORS) and management-api 1.5.
 */

const methods = "DELETE, GET, OPTIONS, PATCH, POST, PUT";
const allowedHeaders = "accept, authorization, content-type, user-agent, x-csrftoken, x-requested-with";
const maxAgeSeconds = "86400";

/** Whether a request is a browser's question before the real one. */
export function isPreflight(request: Request): boolean {
  return (
    request.method === "OPTIONS" &&
    request.headers.has("origin") &&
    request.headers.has("access-control-request-method")
  );
}

/** Answers a browser's question; needs no key. */
export function preflightResponse(request: Request): Response {
  const response = new Response(null, { status: 204 });
  allowOrigin(request, response);
  response.headers.set("Access-Control-Allow-Methods", methods);
  response.headers.set(
    "Access-Control-Allow-Headers",
    request.headers.get("access-control-request-headers") ?? allowedHeaders,
  );
  response.headers.set("Access-Control-Max-Age", maxAgeSeconds);
  return response;
}

/** Lets the page that asks read the answer, refusals included. */
export function allowOrigin(request: Request, response: Response): void {
  // Also without an origin: a cache must not hand this answer to a page that has one.
  response.headers.append("Vary", "Origin");
  const origin = request.headers.get("origin");
  if (origin === null) return;
  response.headers.set("Access-Control-Allow-Origin", origin);
  response.headers.set("Access-Control-Expose-Headers", "ETag, Retry-After, X-Request-Id");
}
