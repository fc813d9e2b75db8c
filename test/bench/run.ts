/** `make bench`: what the compiled executable does on this machine, as a table. Figures, not tests. */

import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { gzipSync } from "node:zlib";
import { TestAppliance } from "../support/appliance.ts";
import { benchBatch, benchEvent, withFreshUuids } from "./events.ts";
import { type LoadResult, postBytes, runLoad } from "./load.ts";

const seconds = Number(process.env.FLAGKEEP_BENCH_SECONDS ?? 5);
const connections = 16;

interface Scenario {
  name: string;
  eventsPerRequest: number;
  requests: (url: string, token: string) => () => Uint8Array;
}

const scenarios: Scenario[] = [
  {
    name: "single events",
    eventsPerRequest: 1,
    requests: (url, token) => {
      const bodies = Array.from({ length: 64 }, (_, number) => {
        const body = Buffer.from(JSON.stringify({ api_key: token, ...benchEvent(number) }));
        return withFreshUuids(postBytes(url, "/capture/", body));
      });
      return taking(bodies);
    },
  },
  {
    name: "batches of 100",
    eventsPerRequest: 100,
    requests: (url, token) =>
      taking(
        Array.from({ length: 16 }, (_, number) =>
          withFreshUuids(postBytes(url, "/batch/", benchBatch(token, 100, number * 100))),
        ),
      ),
  },
  {
    name: "batches of 100, gzip",
    eventsPerRequest: 100,
    requests: (url, token) => {
      // Compressed bytes cannot be changed, so the server makes these uuids.
      const bodies = Array.from({ length: 64 }, (_, number) => {
        const plain = Buffer.from(benchBatch(token, 100, number * 100))
          .toString()
          .replace(/"uuid":"[^"]+",/g, "");
        const bytes = postBytes(url, "/batch/", gzipSync(plain, { level: 6 }), {
          "Content-Encoding": "gzip",
        });
        return () => bytes;
      });
      return taking(bodies);
    },
  },
];

console.log(
  `${availableParallelism()} cores, ${connections} connections, ${seconds} s each, client on the same machine\n`,
);
const rows: string[][] = [
  ["scenario", "acked events/s", "p50 ms", "p99 ms", "failed", "readable events/s", "front MB", "engine MB"],
];
for (const scenario of scenarios) {
  await using appliance = await TestAppliance.start();
  const next = scenario.requests(appliance.url, appliance.token);
  await runLoad({ url: appliance.url, connections, seconds: 1, next });
  const started = performance.now();
  const result = await runLoad({ url: appliance.url, connections, seconds, next });
  const memory = await memoryOf(appliance);
  await waitUntilReadable(appliance);
  const readableSeconds = (performance.now() - started) / 1_000;
  rows.push(rowOf(scenario, result, readableSeconds, memory));
}
printTable(rows);

function rowOf(
  scenario: Scenario,
  result: LoadResult,
  readableSeconds: number,
  memory: { front: number; engine: number },
) {
  const events = (result.requests - result.failures) * scenario.eventsPerRequest;
  return [
    scenario.name,
    String(Math.round(events / result.seconds)),
    result.p50.toFixed(2),
    result.p99.toFixed(2),
    String(result.failures),
    String(Math.round(events / readableSeconds)),
    String(memory.front),
    String(memory.engine),
  ];
}

/** Sends a marker and waits until it can be read: everything before it is readable then. */
async function waitUntilReadable(appliance: TestAppliance): Promise<void> {
  const uuid = Bun.randomUUIDv7();
  await appliance.capture({ event: "marker", distinct_id: "marker", uuid });
  while ((await appliance.events(`uuid=${uuid}`)).length === 0) await Bun.sleep(50);
}

async function memoryOf(appliance: TestAppliance): Promise<{ front: number; engine: number }> {
  const [engine = 0] = await appliance.enginePids();
  return { front: residentMegabytes(appliance.process.pid), engine: residentMegabytes(engine) };
}

function residentMegabytes(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kilobytes) / 1_024);
}

function taking(makers: (() => Uint8Array)[]): () => Uint8Array {
  let count = 0;
  return () => makers[count++ % makers.length]!();
}

function printTable(table: string[][]): void {
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  for (const row of table) console.log(row.map((cell, column) => cell.padEnd(widths[column]!)).join("  "));
}
