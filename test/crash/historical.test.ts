/** A historical load that is interrupted by crashes and taken up again by its client: in order, and nothing twice. */

import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { initializedDirectory, ServerProcess, until } from "../support/server.ts";

const eventCount = Number(process.env.FLAGKEEP_TEST_HISTORICAL_EVENTS ?? 60_000);
const requestCount = 60;
const kills = 3;
const killed = new Set<number>();

test(`${eventCount} events in ${requestCount} requests, killed ${kills} times`, async () => {
  const directory = await initializedDirectory();
  const perRequest = eventCount / requestCount;
  const sent: string[] = [];
  let server = await ServerProcess.start({ directory });
  for (let request = 0; request < requestCount; request++) {
    const batch = Array.from({ length: perRequest }, (_, index) => ({
      event: "old",
      uuid: Bun.randomUUIDv7(),
      timestamp: new Date(1.6e12 + (request * perRequest + index) * 1_000).toISOString(),
      properties: { distinct_id: `user-${index % 500}`, $set: { last: request } },
    }));
    sent.push(...batch.map(({ uuid }) => uuid));
    const isKillDue = request % Math.floor(requestCount / kills) === 7;
    // The client sends again what was not acknowledged, with the same uuids.
    for (let acknowledged = false; !acknowledged; ) {
      const answer = server.batch(batch, { historical_migration: true }).catch(() => undefined);
      if (isKillDue && server.process.exitCode === null && !killed.has(request)) {
        killed.add(request);
        await Bun.sleep(Math.random() * 60);
        await server.kill();
      }
      acknowledged = (await answer)?.status === 200;
      if (server.process.exitCode !== null || server.process.signalCode !== null) {
        server = await ServerProcess.start({ directory });
      }
    }
  }
  expect(killed.size).toBe(kills);
  const stored = await until(
    async () => {
      const events = await server.events("order=seq&historical=true");
      return events.length >= eventCount && events.map(({ uuid }) => uuid);
    },
    "the load is stored",
    180_000,
  );
  expect(stored.length).toBe(sent.length);
  expect(Bun.hash(stored.join())).toBe(Bun.hash(sent.join()));
  const usage = await server.api("/api/projects/1/usage/");
  expect(usage.status).toBe(200);
  expect(((await usage.json()) as { totals: Record<string, number> }).totals).toMatchObject({
    historical: eventCount,
    billable: 0,
  });
  await server[Symbol.asyncDispose]();
  rmSync(directory.dataDir, { recursive: true, force: true });
}, 600_000);
