/** A server, and commands that run in its data directory or over HTTP. */

import { beforeAll, expect } from "bun:test";
import { flagkeep } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

/** Starts a server with one event for the tests of a file. */
export function useServerWithEvent(): void {
  useServer();
  beforeAll(async () => {
    await server.batch([{ event: "seen", distinct_id: "kim", properties: { plan: "pro" } }]);
    await server.eventsWhenStored(1);
  });
}

export const remote = () => ["--url", server.url, "--key", server.initialized.personal_api_key];
export const local = () => ["--data-dir", server.dataDir];

export async function json(args: string[], where: string[]): Promise<unknown> {
  const { stdout, stderr, code } = await flagkeep([...args, ...where, "--json"]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return JSON.parse(stdout);
}

export async function api(path: string): Promise<unknown> {
  return await (await server.api(path)).json();
}
