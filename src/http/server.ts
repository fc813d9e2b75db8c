/** The server: hands requests to the application, and answers those that no application could. */

import type { Server } from "bun";
import type { App } from "./app.ts";
import type { Connection } from "./edge-deps.ts";

/** Longest time without a byte in either direction, in seconds. */
const idleSeconds = 30;
/** Replay bodies are drained up to 64 MiB; what is larger than this is cut off by the server itself. */
const drainedBytesMax = 65 * 1024 * 1024;

export interface Listening {
  readonly hostname: string;
  readonly port: number;
  /** Largest body that a route takes; routes refuse larger ones in their own words. */
  readonly bodyBytesMax: number;
  /** For https. */
  readonly tls?: { readonly key: string; readonly cert: string };
}

/**
 * Listens.
 *
 * @throws {Error} the address cannot be listened on.
 */
export function listen(app: App, { hostname, port, bodyBytesMax, tls }: Listening): Server<undefined> {
  const server = Bun.serve({
    hostname,
    port,
    ...(tls === undefined ? {} : { tls }),
    maxRequestBodySize: Math.max(bodyBytesMax + 1024, drainedBytesMax),
    idleTimeout: idleSeconds,
    // Otherwise two servers on one port would share the requests between them.
    reusePort: false,
    // Else an error would be answered with a page that shows sources and paths.
    development: false,
    fetch: (request) => {
      if (!hasValidHost(request) || (tls !== undefined && shortHost.test(request.url))) return unreadable();
      if (tls !== undefined) overTls.set(request, server);
      return app.handle(request).catch(broken);
    },
    error: () => broken(),
  });
  if (tls === undefined)
    app.connect((request) => new SocketConnection(overTls.get(request) ?? server, request));
  return server;
}

/** A host that no certificate is for, and behind which the router would look for the path in vain. */
const shortHost = /^https:\/\/[^/]{0,2}(\/|$)/;

/** Requests that came to another server than that for plain HTTP. */
const overTls = new WeakMap<Request, Server<undefined>>();

/** Origins that can be parsed, as clients write them: a server has few, and parsing costs more than the look-up. */
const knownOrigins = new Set<string>();
const knownOriginsMax = 1_000;
const schemeLength = "https://".length;

/** Whether there is one Host header, and a host in it that can be parsed (contract, ingestion 1.4). */
function hasValidHost({ url, headers }: Request): boolean {
  const end = url.indexOf("/", schemeLength);
  const origin = end === -1 ? url : url.slice(0, end);
  if (!knownOrigins.has(origin)) {
    if (!URL.canParse(origin)) return false;
    if (knownOrigins.size >= knownOriginsMax) knownOrigins.clear();
    knownOrigins.add(origin);
  }
  // The runtime joins two headers with a comma, which no host has, and takes the first one for the address.
  return headers.get("host")?.includes(",") !== true;
}

class SocketConnection implements Connection {
  constructor(
    private readonly server: Server<undefined>,
    private readonly request: Request,
  ) {}

  peer(): string | undefined {
    return this.server.requestIP(this.request)?.address;
  }

  allowSilence(seconds: number): void {
    this.server.timeout(this.request, seconds);
  }
}

function unreadable(): Response {
  return refusal(
    400,
    "invalid_request",
    "invalid_host",
    "The request must have one Host header with a valid host name or IP address.",
  );
}

function broken(): Response {
  return refusal(500, "server_error", "error", "A server error occurred.");
}

function refusal(status: number, type: string, code: string, detail: string): Response {
  return Response.json(
    { type, code, detail, attr: null },
    { status, headers: { "X-Request-Id": Bun.randomUUIDv7(), "X-Content-Type-Options": "nosniff" } },
  );
}
