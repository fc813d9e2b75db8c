/** The HTTP server: passes requests to the application, and answers those that it cannot handle. */

import { lookup } from "node:dns/promises";
import type { Server } from "bun";
import type { Config } from "../config/settings.ts";
import { AppError } from "../lib/errors.ts";
import type { Log } from "../log.ts";
import type { App } from "./app.ts";
import type { Connection } from "./edge-deps.ts";

/** Longest time without a byte in either direction, in seconds. */
const idleSeconds = 30;
/** Replay bodies are drained up to 64 MiB; the server itself cuts off larger ones than this. */
const drainedBytesMax = 65 * 1024 * 1024;

export interface Listening {
  readonly hostname: string;
  readonly port: number;
  /** Largest body that any route accepts; routes reject larger ones with their own message. */
  readonly bodyBytesMax: number;
  /** For HTTPS. */
  readonly tls?: { readonly key: string; readonly cert: string };
  /** Several processes listen on the address, and the system divides connections among them. Default: no. */
  readonly isShared?: boolean;
}

export interface SecureListening extends Pick<Listening, "isShared"> {
  readonly config: Pick<Config, "https-host" | "https-port" | "acme-domain" | "body-limit">;
  readonly log: Pick<Log, "info" | "warn">;
  readonly tls: NonNullable<Listening["tls"]>;
}

/** What all listeners of a server have in common. */
export const commonOptions = (bodyBytesMax: number) => ({
  maxRequestBodySize: Math.max(bodyBytesMax + 1024, drainedBytesMax),
  idleTimeout: idleSeconds,
  // Otherwise an error page would expose sources and paths.
  development: false,
  error: () => broken(),
});

/**
 * Starts listening.
 *
 * @throws {Error} the address cannot be listened on.
 */
export function listen(app: App, listening: Listening): Server<undefined> {
  const { hostname, port, bodyBytesMax, tls, isShared = false } = listening;
  const server = Bun.serve({
    ...commonOptions(bodyBytesMax),
    hostname,
    port,
    ...(tls === undefined ? {} : { tls }),
    // Otherwise two servers on one port would share its requests.
    reusePort: isShared,
    fetch: (request) => {
      if (!hasValidHost(request) || (tls !== undefined && shortHost.test(request.url))) return unreadable();
      if (tls !== undefined) overTls.set(request, server);
      return app.handle(request).catch(broken);
    },
  });
  if (tls === undefined)
    app.connect((request) => new SocketConnection(overTls.get(request) ?? server, request));
  return server;
}

/**
 * Starts listening for HTTPS. A failure is logged: HTTP continues without it.
 *
 * @param isShared as in `Listening`.
 */
export function listenSecurely(
  app: App,
  { config, log, tls, isShared }: SecureListening,
): Server<undefined> | undefined {
  const hostname = config["https-host"];
  const port = config["https-port"];
  try {
    const server = listen(app, { hostname, port, bodyBytesMax: config["body-limit"], tls, isShared });
    log.info({ domains: config["acme-domain"], port }, "serving HTTPS");
    return server;
  } catch (error) {
    log.warn({ port, error: (error as Error).message }, "failed to serve HTTPS; continuing without it");
    return undefined;
  }
}

/** A host too short for any certificate, after which the router would not find the path. */
const shortHost = /^https:\/\/[^/]{0,2}(\/|$)/;

/** Requests that arrived at the TLS server. */
const overTls = new WeakMap<Request, Server<undefined>>();

/** Valid origins as clients write them: a server has few, and parsing costs more than the lookup. */
const knownOrigins = new Set<string>();
const knownOriginsMax = 1_000;
const schemeLength = "https://".length;

/** Whether there is exactly one Host header, with a valid host (contract, ingestion 1.4). */
function hasValidHost({ url, headers }: Request): boolean {
  const end = url.indexOf("/", schemeLength);
  const origin = end === -1 ? url : url.slice(0, end);
  if (!knownOrigins.has(origin)) {
    if (!URL.canParse(origin)) return false;
    if (knownOrigins.size >= knownOriginsMax) knownOrigins.clear();
    knownOrigins.add(origin);
  }
  // The runtime joins two headers with a comma, which no host contains, and uses the first one for the URL.
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
  return rejection(
    400,
    "invalid_request",
    "invalid_host",
    "The request must have one Host header with a valid host name or IP address.",
  );
}

/** The response to a request whose handling failed unexpectedly. */
export function broken(): Response {
  return rejection(500, "server_error", "error", "A server error occurred.");
}

function rejection(status: number, type: string, code: string, detail: string): Response {
  return Response.json(
    { type, code, detail, attr: null },
    { status, headers: { "X-Request-Id": Bun.randomUUIDv7(), "X-Content-Type-Options": "nosniff" } },
  );
}

/** The address cannot be listened on. */
export class ListenError extends AppError {
  readonly code = "can_not_listen";
  override readonly hint: string;
  constructor(host: string, port: number, problem: string) {
    super(`${host}:${port} cannot be listened on (${problem}).`);
    // Addresses of other machines and invalid names are rejected as invalid settings.
    this.hint = /EINVAL|EADDRNOTAVAIL|ENOTFOUND/.test(problem)
      ? "--host must be an address of this machine: 127.0.0.1, or 0.0.0.0 for all interfaces."
      : /EACCES/.test(problem)
        ? "Choose a --port above 1023, or grant the program access to lower ports."
        : "Stop the program that uses it, or choose another --host or --port.";
  }
}

/** Listens briefly. @returns the reason of a failure */
export async function listenErrorReason(host: string, port: number): Promise<string | undefined> {
  try {
    // For unknown host names the runtime reports an unrelated earlier error.
    await lookup(host);
    await Bun.serve({ hostname: host, port, reusePort: false, fetch: () => new Response() }).stop(true);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** @throws {ListenError} */
export async function assertAddressAvailable(host: string, port: number): Promise<void> {
  const problem = await listenErrorReason(host, port);
  if (problem !== undefined) throw new ListenError(host, port, problem);
}
