/** A server with events like people's in its store. */

import { type ServerProcess, until } from "../support/server.ts";
import { startClient } from "./client.ts";

const batchSize = 100;

/** Sends a number of events, a multiple of 100, and resolves when all are stored. */
export async function fill(server: ServerProcess, events: number): Promise<void> {
  const { url, token } = server;
  const client = await startClient({
    url,
    token,
    kind: "batch",
    size: batchSize,
    connections: 8,
    seed: 1,
    seconds: 600,
    requests: events / batchSize,
  });
  await client.run();
  const stored = async () => (await server.query("SELECT count(*)::DOUBLE AS n FROM events"))[0]!.n;
  await until(async () => (await stored()) === events, "all events are stored", 600_000);
}
