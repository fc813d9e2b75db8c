/**
 * Sends one POST request to an address that was checked before. `fetch` would resolve the name again, follow redirects and use
 * proxies of the environment, each of which could lead elsewhere. Only the status line and the headers of the response are read.
 */

import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/** Limit for connecting, sending and the head of the response. */
const postTimeoutMs = 10_000;
/** Size of the response's head; the body is not read. */
const headBytesMax = 16 * 1024;

export interface PostOptions {
  /** Addresses of the URL's host, tried in order until one can be connected to. */
  addresses: readonly string[];
  headers: Readonly<Record<string, string>>;
  body: string;
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Trusted certificate authorities in addition to the system's, for tests. */
  ca?: string;
}

export interface PostResponse {
  status: number;
  /** The header `Retry-After` in milliseconds. */
  retryAfterMs: number | undefined;
}

/** @throws {Error} no connection, no response in time, or not an HTTP response. */
export async function post(url: URL, options: PostOptions): Promise<PostResponse> {
  const { timeoutMs = postTimeoutMs, signal } = options;
  const timeout = AbortSignal.timeout(timeoutMs);
  const stop = signal === undefined ? timeout : AbortSignal.any([timeout, signal]);
  const timedOut = new Error(`No response within ${timeoutMs / 1_000} seconds.`);
  let failure: unknown = new Error("The host has no address.");
  for (const address of options.addresses) {
    try {
      const socket = await open(url, address, options.ca, stop);
      return await exchange(socket, url, options, stop);
    } catch (error) {
      if (timeout.aborted) throw timedOut;
      if (stop.aborted || !(error instanceof ConnectError)) throw error;
      failure = error.cause;
    }
  }
  throw failure;
}

/** The request was not sent, so that another address can be tried. */
class ConnectError extends Error {}

async function open(url: URL, address: string, ca: string | undefined, stop: AbortSignal): Promise<Socket> {
  const isTls = url.protocol === "https:";
  const port = Number(url.port || (isTls ? 443 : 80));
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const isName = !host.includes(":") && !/^[\d.]+$/.test(host);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const socket: Socket = isTls
    ? connectTls({ host: address, port, ca, ...(isName ? { servername: host } : {}) }, resolve)
    : connectTcp({ host: address, port }, resolve);
  const abort = () => reject(stop.reason);
  stop.addEventListener("abort", abort, { once: true });
  socket.on("error", reject);
  try {
    if (stop.aborted) abort();
    await promise;
    return socket;
  } catch (error) {
    socket.destroy();
    throw new ConnectError("connection failed", { cause: error });
  } finally {
    stop.removeEventListener("abort", abort);
  }
}

async function exchange(
  socket: Socket,
  url: URL,
  { headers, body }: PostOptions,
  stop: AbortSignal,
): Promise<PostResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<PostResponse>();
  let head = "";
  const abort = () => reject(stop.reason);
  stop.addEventListener("abort", abort, { once: true });
  socket.setEncoding("latin1");
  socket.on("data", (text) => {
    head += text;
    try {
      const response = readHead(head);
      if (response !== undefined) resolve(response);
      else if (head.length > headBytesMax) reject(new Error("The headers of the response are too long."));
    } catch (error) {
      reject(error);
    }
  });
  socket.on("error", reject);
  socket.on("close", () => reject(new Error("The connection was closed without a response.")));
  try {
    if (stop.aborted) abort();
    const all = {
      Host: url.host,
      "Content-Length": String(Buffer.byteLength(body)),
      Connection: "close",
      ...headers,
    };
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    socket.write(`POST ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join("")}\r\n${body}`);
    return await promise;
  } finally {
    stop.removeEventListener("abort", abort);
    socket.destroy();
  }
}

/** The final response; undefined while it is incomplete. @throws {Error} */
function readHead(text: string): PostResponse | undefined {
  for (let rest = text; ; ) {
    if (rest.length >= 9 && !/^HTTP\/1\.[01] /.test(rest)) throw new Error("The response is not HTTP.");
    const end = rest.indexOf("\r\n\r\n");
    if (end < 0) return undefined;
    const status = Number(/^HTTP\/1\.[01] ([1-9]\d\d)(?: |\r\n)/.exec(rest)?.[1] ?? Number.NaN);
    if (Number.isNaN(status)) throw new Error("The response has no status.");
    if (status >= 200) {
      const [, seconds] = /\r\nretry-after:[ \t]*(\d{1,9})[ \t]*\r\n/i.exec(rest.slice(0, end + 2)) ?? [];
      return { status, retryAfterMs: seconds === undefined ? undefined : Number(seconds) * 1_000 };
    }
    // Informational responses precede the final one.
    rest = rest.slice(end + 4);
  }
}
