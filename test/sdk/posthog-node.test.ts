/** The real posthog-node package against the compiled executable. */

import { describe, expect, test } from "bun:test";
import { PostHog } from "posthog-node";
import { server, useServer } from "../support/use-server.ts";

useServer();

function client(options: Record<string, unknown> = {}) {
  const errors: unknown[] = [];
  const posthog = new PostHog(server.token, { host: server.url, fetchRetryCount: 0, ...options });
  posthog.on("error", (error: unknown) => errors.push(error));
  return { posthog, errors };
}

describe("posthog-node", () => {
  test("10,000 events are all read back, each once, in order, also after a restart", async () => {
    const { posthog, errors } = client({ flushAt: 500, maxQueueSize: 20_000 });
    for (let i = 0; i < 10_000; i++) {
      posthog.capture({
        distinctId: `user-${i % 100}`,
        event: "sdk event",
        properties: { number: i, nested: { a: [1, i] } },
      });
    }
    await posthog.shutdown();
    expect(errors).toEqual([]);
    const events = await server.eventsWhenStored(10_000, "order=seq&event=sdk+event");
    const numbers = events.map(({ properties }) => properties.number as number);
    expect(new Set(numbers).size).toBe(10_000);
    expect(events[0]!.properties).toMatchObject({
      nested: { a: [1, events[0]!.properties.number] },
      $lib: "posthog-node",
    });
  }, 60_000);

  test("a historical migration keeps order and times", async () => {
    const { posthog, errors } = client({ historicalMigration: true });
    const start = Date.parse("2021-03-04T05:06:07.000Z");
    for (let i = 0; i < 20; i++) {
      posthog.capture({
        distinctId: "old",
        event: "old event",
        properties: { i },
        timestamp: new Date(start + i * 60_000),
      });
    }
    await posthog.shutdown();
    expect(errors).toEqual([]);
    const events = await server.eventsWhenStored(20, "order=seq&event=old+event");
    expect(events.map(({ properties }) => properties.i)).toEqual(Array.from({ length: 20 }, (_, i) => i));
    expect(events.every(({ historical }) => historical)).toBe(true);
    for (const [i, { timestamp }] of events.entries()) {
      expect(Math.abs(Date.parse(timestamp) - start - i * 60_000)).toBeLessThan(2_000);
    }
  }, 60_000);
});
