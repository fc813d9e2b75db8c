/**
 * Serves calls of other processes of this server: JSON over HTTP over a Unix socket in the data directory. Access
 * control is the owner's permissions of the folder (0700) and the socket (0600): a process that can open it may do
 * everything.
 */

import { chmodSync, rmSync } from "node:fs";
import type { Server } from "bun";
import { isClientDisconnected, withAbortSignal } from "../lib/cancellation.ts";
import { AppError } from "../lib/errors.ts";
import { parseExactJson } from "../lib/json/exact.ts";

/** A request with a binary body. */
export class RpcUpload {
  constructor(
    /** JSON sent in a header: keep it short. */
    readonly meta: unknown,
    readonly bytes: Uint8Array,
  ) {}
}

/**
 * By name, which is the request's path. The argument is the body's JSON (null if empty) or an `RpcUpload`; handlers run
 * within `withAbortSignal`, which is aborted when the client disconnects.
 */
export type RpcHandlers = Record<string, (request: never) => unknown>;

/** A response that is JSON source already: sent as fast as it is read, without a second copy. */
export class RpcString {
  constructor(
    readonly chunks: readonly Uint8Array[],
    /** JSON sent in a header: keep it short. */
    readonly meta: unknown = null,
    /** Called once, when the response was sent or aborted. */
    readonly onSent: () => void = () => undefined,
  ) {}

  /** The whole response, for callers in this process. */
  text(): string {
    const text = Buffer.concat(this.chunks).toString();
    this.onSent();
    return text;
  }
}

/** A binary response generated while it is read. */
export class RpcBytes {
  /** @param chunks pulled one by one; closed early if the reader stops */
  constructor(readonly chunks: AsyncGenerator<Uint8Array, void>) {}
}

/** Status of error responses: `{code, message, hint}`. */
export const failedStatus = 422;
export const metaHeader = "x-meta";
/** Content type of an `RpcUpload`. */
export const bytesType = "application/octet-stream";

/** Timeout for clients that stop reading. */
const stallMs = 30_000;

/**
 * Listens on a socket that only the owner can open. Replaces a stale socket: the caller holds the lock of the data
 * directory.
 */
export function listenPrivately<Listener>(socketName: string, listen: () => Listener): Listener {
  rmSync(socketName, { force: true });
  const listener = listen();
  chmodSync(socketName, 0o600);
  return listener;
}

export class RpcServer {
  private server: Server<unknown> | undefined;

  /**
   * @param socketName relative: a socket's path is limited to 108 bytes
   * @param onUnexpected receives errors that are not an `AppError`
   */
  constructor(
    private readonly socketName: string,
    private readonly onUnexpected: (error: unknown, name: string) => void = () => undefined,
  ) {}

  /** Listens in the working directory, which is the data directory. */
  listen(handlers: RpcHandlers): void {
    this.server = listenPrivately(this.socketName, () =>
      Bun.serve({
        unix: this.socketName,
        maxRequestBodySize: Number.MAX_SAFE_INTEGER,
        // Otherwise errors are printed with source excerpts.
        development: false,
        fetch: (request) => this.answer(handlers, request),
        // For responses that fail after their first bytes: the client sees a truncated response.
        error: () => new Response(null, { status: 500 }),
      }),
    );
  }

  /** Stops listening and removes the socket. */
  async stop(): Promise<void> {
    if (this.server === undefined) return;
    await this.server.stop(true);
    this.server = undefined;
    rmSync(this.socketName, { force: true });
  }

  private async answer(handlers: RpcHandlers, request: Request): Promise<Response> {
    const name = new URL(request.url).pathname.slice(1);
    const handler = Object.hasOwn(handlers, name) ? handlers[name] : undefined;
    if (handler === undefined) return new Response(null, { status: 404 });
    try {
      const sent = (await getContent(request)) as never;
      const answer = await withAbortSignal(request.signal, () => handler(sent));
      if (answer instanceof RpcBytes) return bytesResponse(answer);
      return answer instanceof RpcString ? textResponse(answer) : Response.json(answer ?? null);
    } catch (error) {
      const { message } = error as Error;
      const isOurs = error instanceof AppError;
      if (!isOurs && !isClientDisconnected(error, request.signal)) this.onUnexpected(error, name);
      const { code, hint } = isOurs ? error : { code: "unexpected", hint: undefined };
      return Response.json({ code, message, hint }, { status: failedStatus });
    }
  }
}

async function getContent(request: Request): Promise<unknown> {
  if (request.headers.get("Content-Type") === bytesType) {
    const meta = decodeURIComponent(request.headers.get(metaHeader) ?? "null");
    return new RpcUpload(JSON.parse(meta), await request.bytes());
  }
  const body = await request.text();
  return body === "" ? null : parseExactJson(body);
}

function textResponse({ chunks, meta, onSent }: RpcString): Response {
  let next = 0;
  const body = getStream(async () => chunks[next++], onSent);
  return new Response(body, {
    headers: { "Content-Type": "application/json", [metaHeader]: encodeURIComponent(JSON.stringify(meta)) },
  });
}

function bytesResponse({ chunks }: RpcBytes): Response {
  const body = getStream(
    async () => (await chunks.next()).value ?? undefined,
    () => void chunks.return(),
  );
  return new Response(body, { headers: { "Content-Type": bytesType } });
}

/** Streams the chunks of `next` until it returns undefined. @param onEnd called once, when fully read or aborted */
function getStream(
  next: () => Promise<Uint8Array | undefined>,
  onEnd: () => void,
): ReadableStream<Uint8Array> {
  let stall: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const over = () => {
    clearTimeout(stall);
    if (!isOver) onEnd();
    isOver = true;
  };
  const watch = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    clearTimeout(stall);
    stall = setTimeout(() => {
      over();
      controller.error(new Error("The client stopped reading the response."));
    }, stallMs);
  };
  return new ReadableStream<Uint8Array>(
    {
      start: watch,
      async pull(controller) {
        // Computing a chunk is limited by the handler; the stall timeout is only for the reader.
        clearTimeout(stall);
        let chunk: Uint8Array | undefined;
        try {
          chunk = await next();
        } catch (error) {
          over();
          throw error;
        }
        if (isOver) return;
        if (chunk === undefined) {
          over();
          controller.close();
          return;
        }
        controller.enqueue(chunk);
        watch(controller);
      },
      cancel: over,
    },
    { highWaterMark: 0 },
  );
}
