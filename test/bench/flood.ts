/**
 * `make bench-flood`: how long another project waits while one project floods.
 *
 * One project sends batches of 100 (gzip) as fast as they are taken. Another asks for flags and sends single events at a
 * steady, low rate; both are measured alone and beside the flood. All run on one machine, so the clients take part of it.
 */

import { ServerProcess } from "../support/server.ts";
import { type ClientPlan, startClient } from "./client.ts";
import { cpuSeconds } from "./processes.ts";

const rounds = Number(process.env.ROUNDS ?? 3);
const seconds = Number(process.env.SECONDS ?? 5);
const rate = Number(process.env.RATE ?? 200);
/** So that the flood is there before the measurement, and after it. */
const margin = 1;
const batchSize = 100;

/** A client of the project that must not suffer. */
const steady = (url: string, token: string, seed: number) =>
  ({ url, token, seed, connections: 64, seconds, rate, requests: rate * (seconds + 1) }) as const;

async function neighbors(url: string, token: string, seed: number) {
  const [flags, singles] = await Promise.all(
    (["flags", "single"] as const).map((kind) =>
      startClient({ ...steady(url, token, seed), kind, size: 1_000 } satisfies ClientPlan),
    ),
  );
  return () => Promise.all([flags!.run(), singles!.run()]);
}

for (let round = 1; round <= rounds; round++) {
  await using server = await ServerProcess.start();
  const { url } = server;
  const response = await server.api("/api/organizations/@current/projects/", {
    method: "POST",
    body: { name: "Neighbor" },
  });
  const { api_token: other } = (await response.json()) as { api_token: string };
  const flood = await startClient({
    url,
    token: server.token,
    kind: "batch",
    size: batchSize,
    connections: 16,
    seed: round,
    seconds: seconds + 2 * margin,
    requests: 1_300 * (seconds + 2 * margin),
  });
  const alone = await (await neighbors(url, other, 1_000 + round))();
  const run = await neighbors(url, other, 2_000 + round);
  const flooding = flood.run();
  await Bun.sleep(margin * 1_000);
  const before = cpuSeconds(server.process.pid);
  const beside = await run();
  const busy = (cpuSeconds(server.process.pid) - before) / seconds;
  const { requests, failures, ranOut, seconds: durationMs } = await flooding;
  const [flags, singles] = beside;
  console.log(
    `round ${round}: flood ${Math.round(((requests - failures) * batchSize) / durationMs).toLocaleString("en")} events/s` +
      `${ranOut ? " (ran out)" : ""}, front ${busy.toFixed(2)} processors`,
  );
  console.log(`  flags    ${shown(flags!)}   alone ${shown(alone[0]!)}`);
  console.log(`  captures ${shown(singles!)}   alone ${shown(alone[1]!)}`);
}

function shown({ p50, p99, max, failures }: { p50: number; p99: number; max: number; failures: number }) {
  const ms = (value: number) => value.toFixed(1).padStart(6);
  return `p50 ${ms(p50)}  p99 ${ms(p99)}  max ${ms(max)} ms${failures > 0 ? `  ${failures} failed` : ""}`;
}
