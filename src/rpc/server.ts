/**
 * Answers the questions of other processes of this appliance: typed names, JSON, HTTP over a Unix socket in the data
 * directory.
 *
 * The folder is its owner's alone (0700), and so is the socket (0600): who can open it may do everything anyway.
 */

import { chmodSync, rmSync } from "node:fs";
import type { Server } from "bun";
import { forCaller } from "../lib/caller.ts";
import { AppError } from "../lib/errors.ts";

/**
 * By name, which is the path of the request. Takes the JSON of the request's body, null when there is none; works for the
 * caller (`forCaller`), who may go away.
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

/** Status of an answer that says what went wrong: `{code, message, hint}`. */
export const failedStatus = 422;
export const metaHeader = "x-meta";

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
      fetch: (request) => this.answer(handlers, request),
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
      const body = await request.text();
      const parsed = (body === "" ? null : JSON.parse(body)) as never;
      const answer = await forCaller(request.signal, () => handler(parsed));
      return answer instanceof RpcText ? textResponse(answer) : Response.json(answer ?? null);
    } catch (error) {
      const { message } = error as Error;
      const isOurs = error instanceof AppError;
      if (!isOurs) this.onUnexpected(error, name);
      const { code, hint } = isOurs ? error : { code: "unexpected", hint: undefined };
      return Response.json({ code, message, hint }, { status: failedStatus });
    }
  }
}

function textResponse({ chunks, meta, onSent }: RpcText): Response {
  let next = 0;
  let stall: ReturnType<typeof setTimeout> | undefined;
  let isOver = false;
  const over = () => {
    clearTimeout(stall);
    if (!isOver) onSent();
    isOver = true;
  };
  const watch = (controller: ReadableStreamDefaultController<Uint8Array>) => {
    clearTimeout(stall);
    stall = setTimeout(() => {
      over();
      controller.error(new Error("Nobody reads the answer."));
    }, stallMs);
  };
  const body = new ReadableStream<Uint8Array>(
    {
      start: watch,
      pull(controller) {
        const chunk = chunks[next];
        if (chunk === undefined) {
          over();
          controller.close();
          return;
        }
        next += 1;
        controller.enqueue(chunk);
        watch(controller);
      },
      cancel: over,
    },
    { highWaterMark: 0 },
  );
  return new Response(body, {
    headers: { "Content-Type": "application/json", [metaHeader]: encodeURIComponent(JSON.stringify(meta)) },
  });
}
