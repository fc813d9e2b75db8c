/** A small HTTP load generator: keep-alive connections that send ready-made bytes, so that it takes little of the machine. */

import type { Socket } from "bun";

export interface Load {
  url: string;
  connections: number;
  seconds: number;
  /** The bytes of the next request; undefined when there are no more. */
  next: () => Uint8Array | undefined;
  /** Statuses that count as an answer besides 200. */
  alsoGood?: readonly number[];
  /** Requests per second over all connections; as fast as answers come when left out. */
  requestsPerSecond?: number;
}

export interface LoadResult {
  requests: number;
  failures: number;
  seconds: number;
  /** Milliseconds from sending to the whole answer. */
  p50: number;
  p99: number;
  max: number;
}

/** Bytes of a POST request. */
export function postBytes(
  url: string,
  path: string,
  body: Uint8Array,
  headers: Record<string, string> = {},
): Uint8Array {
  const lines = Object.entries({
    Host: new URL(url).host,
    "Content-Type": "application/json",
    "Content-Length": String(body.length),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n`), body]);
}

/** Sends requests for a while and measures the answers. */
export async function runLoad(load: Load): Promise<LoadResult> {
  const started = performance.now();
  const end = started + load.seconds * 1_000;
  const latencies: number[] = [];
  let failures = 0;
  const intervalMs =
    load.requestsPerSecond === undefined ? 0 : (1_000 * load.connections) / load.requestsPerSecond;
  const connections = Array.from({ length: load.connections }, (_, index) => {
    const firstAt = started + (intervalMs * index) / load.connections;
    return connection(load, firstAt, end, intervalMs, (ms, ok) => {
      latencies.push(ms);
      if (!ok) failures += 1;
    });
  });
  await Promise.all(connections);
  const seconds = (performance.now() - started) / 1_000;
  latencies.sort((a, b) => a - b);
  const at = (share: number) =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  return {
    requests: latencies.length,
    failures,
    seconds,
    p50: at(0.5),
    p99: at(0.99),
    max: latencies.at(-1) ?? 0,
  };
}

const lastChunk = "\r\n0\r\n\r\n";

/** Where an answer ends, if that is known. */
function endOfAnswer(bytes: Buffer, head: string): number | undefined {
  if (!/transfer-encoding: chunked/i.test(head))
    return head.length + 4 + Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
  // From the end of the head's last line on: there may be no other chunk.
  const at = bytes.indexOf(lastChunk, head.length + 2);
  return at === -1 ? undefined : at + lastChunk.length;
}

async function connection(
  load: Load,
  firstAt: number,
  end: number,
  intervalMs: number,
  onAnswer: (ms: number, ok: boolean) => void,
): Promise<void> {
  const { hostname, port } = new URL(load.url);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let rest = Buffer.alloc(0);
  // With a fixed rate the time counts from when the request was due, so that a stall is not hidden.
  let sentAt = 0;
  let dueAt = firstAt;
  let unsent: Uint8Array | undefined;
  const good = new Set([200, ...(load.alsoGood ?? [])]);
  const isGood = (head: string) => good.has(Number(head.slice("HTTP/1.1 ".length, "HTTP/1.1 200".length)));
  const send = (socket: Socket) => {
    const request = performance.now() >= end ? undefined : load.next();
    if (request === undefined) {
      socket.end();
      return resolve();
    }
    sentAt = intervalMs === 0 ? performance.now() : dueAt;
    dueAt += intervalMs;
    write(socket, request);
  };
  const write = (socket: Socket, bytes: Uint8Array) => {
    const written = socket.write(bytes);
    unsent = written < bytes.length ? bytes.subarray(written) : undefined;
  };
  const schedule = (socket: Socket) => {
    const wait = intervalMs === 0 ? 0 : dueAt - performance.now();
    if (wait <= 0) send(socket);
    else setTimeout(() => send(socket), wait);
  };
  await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      open: schedule,
      drain(socket) {
        if (unsent !== undefined) write(socket, unsent);
      },
      data(socket, chunk) {
        rest = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
        const headEnd = rest.indexOf("\r\n\r\n");
        if (headEnd === -1) return;
        const head = rest.toString("latin1", 0, headEnd);
        const end = endOfAnswer(rest, head);
        if (end === undefined || rest.length < end) return;
        rest = rest.subarray(end);
        onAnswer(performance.now() - sentAt, isGood(head));
        schedule(socket);
      },
      error: (_, error) => reject(error),
      close: () => resolve(),
    },
  });
  return promise;
}
