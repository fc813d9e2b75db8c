/**
 * Answers the questions of other processes of this appliance: typed names, JSON, HTTP over a Unix socket in the data
 * directory.
 *
 * The folder is its owner's alone (0700), and so is the socket (0600): who can open it may do everything anyway.
 */

import { chmodSync, rmSync } from "node:fs";
import type { Server } from "bun";
import { forCaller, isCallerGone } from "../lib/caller.ts";
import { AppError } from "../lib/errors.ts";
import { parseExactJson } from "../lib/exact-json.ts";

/** A request of any bytes. */
export class RpcUpload {
  constructor(
    /** JSON that goes with them, in a header: short. */
    readonly meta: unknown,
    readonly bytes: Uint8Array,
  ) {}
}

/**
 * By name, which is the path of the request. Takes the JSON of the request's body, null when there is none, or an `RpcUpload`
 * where that was sent; works for the caller (`forCaller`), who may go away.
 */
export type RpcHandlers = Record<string, (request: never) => unknown>;

/** An answer that is JSON text already; it is sent as fast as it is read, and not held twice. */
export class RpcText {
  constructor(
    readonly chunks: readonly Uint8Array[],
    /** JSON that goes with it, in a header: short. */
    readonly meta: unknown = null,
    /** Called once, when the text was read or given up. */
    readonly onSent: () => void = () => undefined,
  ) {}

  /** The whole text, for whoever asked in this process. */
  text(): string {
    const text = Buffer.concat(this.chunks).toString();
    this.onSent();
    return text;
  }
}

/** An answer of any bytes that is made while it is read. */
export class RpcBytes {
  /** @param chunks asked for one after the other; ended early when nobody reads on. */
  constructor(readonly chunks: AsyncGenerator<Uint8Array, void>) {}
}

/** Status of an answer that says what went wrong: `{code, message, hint}`. */
export const failedStatus = 422;
export const metaHeader = "x-meta";
/** Content type of an `RpcUpload`. */
export const bytesType = "application/octet-stream";

/** Whoever reads nothing for so long is given up. */
const stallMs = 30_000;

export class RpcServer {
  private server: Server<unknown> | undefined;

  /**
   * @param socketName   relative: a path may not be longer than 108 bytes.
   * @param onUnexpected told of errors that are none of ours.
   */
  constructor(
    private readonly socketName: string,
    private readonly onUnexpected: (error: unknown, name: string) => void = () => undefined,
  ) {}

  /**
   * Listens in the working directory, which is the data directory. A socket that a crash has left is replaced: whoever
   * calls this holds the directory's lock.
   */
  listen(handlers: RpcHandlers): void {
    rmSync(this.socketName, { force: true });
    this.server = Bun.serve({
      unix: this.socketName,
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      // Else errors are printed with the sources around them.
      development: false,
      fetch: (request) => this.answer(handlers, request),
      // Answers that fail behind their first bytes: the other side sees that they broke off.
      error: () => new Response(null, { status: 500 }),
    });
    chmodSync(this.socketName, 0o600);
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
      const sent = (await contentOf(request)) as never;
      const answer = await forCaller(request.signal, () => handler(sent));
      if (answer instanceof RpcBytes) return bytesResponse(answer);
      return answer instanceof RpcText ? textResponse(answer) : Response.json(answer ?? null);
    } catch (error) {
      const { message } = error as Error;
      const isOurs = error instanceof AppError;
      if (!isOurs && !isCallerGone(error, request.signal)) this.onUnexpected(error, name);
      const { code, hint } = isOurs ? error : { code: "unexpected", hint: undefined };
      return Response.json({ code, message, hint }, { status: failedStatus });
    }
  }
}

async function contentOf(request: Request): Promise<unknown> {
  if (request.headers.get("Content-Type") === bytesType) {
    const meta = decodeURIComponent(request.headers.get(metaHeader) ?? "null");
    return new RpcUpload(JSON.parse(meta), await request.bytes());
  }
  const body = await request.text();
  return body === "" ? null : parseExactJson(body);
}

function textResponse({ chunks, meta, onSent }: RpcText): Response {
  let next = 0;
  const body = streamOf(async () => chunks[next++], onSent);
  return new Response(body, {
    headers: { "Content-Type": "application/json", [metaHeader]: encodeURIComponent(JSON.stringify(meta)) },
  });
}

function bytesResponse({ chunks }: RpcBytes): Response {
  const body = streamOf(
    async () => (await chunks.next()).value ?? undefined,
    () => void chunks.return(),
  );
  return new Response(body, { headers: { "Content-Type": bytesType } });
}

/** What `next` gives, until it gives nothing. @param onOver called once: it was read to its end, or is given up. */
function streamOf(
  next: () => Promise<Uint8Array | undefined>,
  onOver: () => void,
): ReadableStream<Uint8Array> {
  let stall: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const over = () => {
    clearTimeout(stall);
    if (!isOver) onOver();
    isOver = true;
  };
  const watch = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    clearTimeout(stall);
    stall = setTimeout(() => {
      over();
      controller.error(new Error("Nobody reads the answer."));
    }, stallMs);
  };
  return new ReadableStream<Uint8Array>(
    {
      start: watch,
      async pull(controller) {
        // Whoever makes it has limits of its own.
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
