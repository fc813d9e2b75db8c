/** The server of a test file. */

import { afterAll, beforeAll } from "bun:test";
import { ServerProcess } from "./server.ts";

export let server: ServerProcess;

/** Starts `server` for the tests of a file or of a `describe`. */
export function useServer(options: Parameters<typeof ServerProcess.start>[0] = {}): void {
  beforeAll(async () => {
    server = await ServerProcess.start(options);
  });
  afterAll(async () => await server?.[Symbol.asyncDispose]());
}

/** Stops `server` and starts it again in its directory. */
export async function restartServer(args: readonly string[] = []): Promise<void> {
  const { directory } = server;
  await server.stop();
  server = await ServerProcess.start({ directory, args });
}
