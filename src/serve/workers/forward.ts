/**
 * Passes requests that a worker does not handle to the server process, over HTTP on a Unix socket. Bodies and responses
 * are streamed unchanged.
 */

import { declaredBytes } from "../../http/body.ts";
import type { Connection } from "../../http/edge-deps.ts";

/** Carries what the server process cannot see on the Unix socket; a client's header of this name is replaced. */
const originHeader = "x-flagkeep-origin";

/** The connection of a forwarded request. */
export interface ForwardedOrigin {
  /** Address of the client's end of the connection. */
  readonly peer: string | null;
  readonly isSecure: boolean;
  /** Headers that the client has not sent and that the runtime adds. */
  readonly added: readonly string[];
}

/** Headers of one connection only; RFC 9110, 7.6.1. */
const connectionHeaders = [
  "connection",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "expect",
];
/** Headers that the runtime's client adds. */
const addedHeaders = ["accept", "user-agent", "accept-encoding"];

/** A client's connection to the worker. */
interface ClientConnection extends Connection {
  readonly isSecure: boolean;
}

/**
 * Forwards a request.
 *
 * @returns the response of the server process, or 503 if it does not respond.
 */
export async function forward(
  socketName: string,
  request: Request,
  { peer, allowSilence, isSecure }: ClientConnection,
): Promise<Response> {
  const headers = new Headers(request.headers);
  for (const name of connectionHeaders) headers.delete(name);
  const origin: ForwardedOrigin = {
    peer: peer() ?? null,
    isSecure,
    added: addedHeaders.filter((name) => !headers.has(name)),
  };
  const declared = declaredBytes(request);
  // A length that was sent twice arrives as a list.
  if (declared !== undefined) headers.set("content-length", String(declared));
  headers.set(originHeader, encodeURIComponent(JSON.stringify(origin)));
  // The server process has its own time limits.
  allowSilence(0);
  const body = request.method === "GET" || request.method === "HEAD" ? null : request.body;
  let response: Response;
  try {
    response = await fetch(request.url.replace(/^https:/, "http:"), {
      unix: socketName,
      method: request.method,
      headers,
      signal: request.signal,
      body,
      // A connection that was just closed for being idle would fail a request whose body cannot be sent again.
      keepalive: body === null,
      // Responses are passed on as they are.
      timeout: false,
      decompress: false,
      redirect: "manual",
    } as RequestInit);
  } catch (error) {
    if (request.signal.aborted) throw error;
    return unavailable();
  }
  const passed = new Response(response.body, { status: response.status, headers: response.headers });
  for (const name of ["transfer-encoding", "keep-alive"]) passed.headers.delete(name);
  return passed;
}

/** Removes what `forward` has added to a request. @returns undefined for a request that no worker forwarded. */
export function extractOrigin({ headers }: Request): ForwardedOrigin | undefined {
  const sent = headers.get(originHeader);
  if (sent === null) return undefined;
  const origin = JSON.parse(decodeURIComponent(sent)) as ForwardedOrigin;
  for (const name of [originHeader, ...origin.added]) headers.delete(name);
  return origin;
}

function unavailable(): Response {
  const body = {
    type: "server_error",
    code: "unavailable",
    detail: "The server process does not respond. Retry the request.",
    attr: null,
  };
  return Response.json(body, {
    status: 503,
    headers: { "Retry-After": "1", "X-Request-Id": Bun.randomUUIDv7(), "X-Content-Type-Options": "nosniff" },
  });
}
