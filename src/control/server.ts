/**
 * The control socket: what commands ask a running appliance, as HTTP over a socket in the data directory.
 *
 * The folder is its owner's alone (0700), and so is the socket (0600): who can open it may do everything anyway.
 */

import { chmodSync, rmSync } from "node:fs";
import type { Server } from "bun";
import { AppError } from "../errors.ts";

/** The socket's name in the data directory. Relative: a path may not be longer than 108 bytes. */
export const controlSocketName = "control.sock";

/** By name, which is the path of the request. Takes the JSON of the request's body, null when there is none. */
export type ControlRoutes = Record<string, (request: unknown) => unknown>;

/** Status of an answer that says what went wrong: `{code, message, hint}`. */
export const failedStatus = 422;

export class ControlServer {
  private server: Server<unknown> | undefined;

  /**
   * Listens in the working directory, which is the data directory. A socket that a crash has left is replaced: whoever
   * calls this holds the directory's lock.
   */
  listen(routes: ControlRoutes): void {
    rmSync(controlSocketName, { force: true });
    this.server = Bun.serve({
      unix: controlSocketName,
      fetch: (request) => answer(routes, request),
    });
    chmodSync(controlSocketName, 0o600);
  }

  /** Stops listening and removes the socket. */
  async stop(): Promise<void> {
    if (this.server === undefined) return;
    await this.server.stop(true);
    this.server = undefined;
    rmSync(controlSocketName, { force: true });
  }
}

async function answer(routes: ControlRoutes, request: Request): Promise<Response> {
  const name = new URL(request.url).pathname.slice(1);
  const route = Object.hasOwn(routes, name) ? routes[name] : undefined;
  if (route === undefined) return new Response(null, { status: 404 });
  try {
    const body = await request.text();
    return Response.json((await route(body === "" ? null : JSON.parse(body))) ?? null);
  } catch (error) {
    const { message } = error as Error;
    const [code, hint] = error instanceof AppError ? [error.code, error.hint] : ["unexpected", undefined];
    return Response.json({ code, message, hint }, { status: failedStatus });
  }
}
