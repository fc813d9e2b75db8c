/**
 * Statements that read much and keep little are answered within a small memory limit, right after the events came.
 *
 * With 3 million such events, the same statement was rejected once.
 */

import { expect, test } from "bun:test";
import { until } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

const batches = 20;
const perBatch = 6_000;
const count = batches * perBatch;
const plans = 5;

useServer({ args: ["--duckdb-memory-limit", "128MiB"] });

async function ask(query: string): Promise<{ status: number; body: { rows: Record<string, unknown>[] } }> {
  const response = await server.api("/api/projects/1/query/", { method: "POST", body: { query } });
  return { status: response.status, body: (await response.json()) as { rows: Record<string, unknown>[] } };
}

test("groups by a property of many large events", async () => {
  const filling = "x".repeat(700);
  for (let batch = 0; batch < batches; batch++)
    await server.batch(
      Array.from({ length: perBatch }, (_, index) => ({
        event: "$pageview",
        distinct_id: `user-${index % 1_000}`,
        timestamp: new Date(Date.UTC(2026, 9, 1 + (batch % 10), 12)).toISOString(),
        properties: { plan: `plan-${index % plans}`, filling, number: batch * perBatch + index },
      })),
    );
  const day = "date_trunc('day', timestamp)";
  // At once, while events are being loaded, and again when all are.
  const early = await ask(
    `SELECT ${day}, properties->>'plan', count(*) FROM events WHERE event = '$pageview' GROUP BY 1, 2`,
  );
  expect(early.status).toBe(200);
  await until(async () => {
    const [row] = await server.query("SELECT count(*) AS n FROM events");
    return Number(row!.n) === count;
  }, "all events are stored");
  const all = await ask(
    `SELECT ${day} AS day, properties->>'plan' AS plan, count(*) AS n FROM events WHERE event = '$pageview' GROUP BY 1, 2`,
  );
  expect(all.status).toBe(200);
  expect(all.body.rows).toHaveLength(10 * plans);
  expect(all.body.rows.reduce((sum, { n }) => sum + Number(n), 0)).toBe(count);
  // Every value another group.
  const wide = await ask(
    `SELECT count(*) AS n FROM (SELECT properties->>'number' AS number FROM events GROUP BY 1)`,
  );
  expect(wide.status).toBe(200);
}, 120_000);
