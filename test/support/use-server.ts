/** The server of a test file. */

import { afterAll, beforeAll } from "bun:test";
import { ServerProcess } from "./server.ts";

export let server: ServerProcess;

/** Starts `server` for the tests of a file. */
export function useServer(): void {
  beforeAll(async () => {
    server = await ServerProcess.start();
  });
  afterAll(async () => await server[Symbol.asyncDispose]());
}
