/**
 * `make bench`: what the compiled executable does on this machine, each figure beside its ceiling in the same round.
 *
 * Figures, not tests: machines differ and are noisy, so the ratios count. Prints medians over the rounds and writes
 * everything to `dist/bench.json`. `ROUNDS=3 SECONDS=5 ONLY=batch make bench`.
 */

import { writeFileSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { executable, flagkeep, ServerProcess, temporaryFolder } from "../support/server.ts";
import { type CeilingRole, duckdbInserts, startCeiling } from "./ceilings.ts";
import { type ClientPlan, type ClientResult, startClient } from "./client.ts";
import { createFlags, createPersons, personCount } from "./flags-data.ts";
import { peopleLike } from "./people-like.ts";
import { cpuSeconds, memoryBytes } from "./processes.ts";

const rounds = Number(process.env.ROUNDS ?? 3);
const seconds = Number(process.env.SECONDS ?? 5);
const only = process.env.ONLY;
const mib = 1024 * 1024;

interface Figures {
  [name: string]: number;
}

interface Scenario {
  name: string;
  /** What the first figure is divided by. */
  ceiling: string;
  /** One round; figures by name, `ratio` among them. */
  round(): Promise<Figures>;
}

/** More requests than the fastest server could answer. */
const enough = (perSecond: number) => Math.ceil(perSecond * (seconds + 1));

async function load(
  plan: Omit<ClientPlan, "seconds" | "token" | "seed"> & Partial<ClientPlan>,
): Promise<ClientResult> {
  const client = await startClient({ seconds, token: "phc_bench", seed: 1, ...plan });
  return await client.run();
}

const perSecond = ({ requests, failures, seconds }: ClientResult) => (requests - failures) / seconds;

async function getCeiling(
  role: CeilingRole,
  plan: Omit<ClientPlan, "url" | "seconds" | "token" | "seed">,
  bytes = 0,
) {
  const server = await startCeiling(role, bytes);
  try {
    return await load({ ...plan, url: server.url });
  } finally {
    await server.stop();
  }
}

const single = { kind: "single", connections: 32, requests: enough(20_000) } as const;
const batch = { kind: "batch", connections: 16, requests: enough(1_500), size: 100 } as const;

const scenarios: Scenario[] = [
  {
    name: "single events",
    ceiling: "naive durable server",
    async round() {
      await using server = await ServerProcess.start();
      const { url, token } = server;
      const ours = await load({ ...single, url, token });
      const bare = await getCeiling("bare", single);
      const parse = await getCeiling("parse", single);
      const durable = await getCeiling("durable", single);
      return {
        "per s": perSecond(ours),
        "p50 ms": ours.p50,
        "p99 ms": ours.p99,
        ratio: perSecond(ours) / perSecond(durable),
        "p99 ratio": ours.p99 / durable.p99,
        "bare Bun per s": perSecond(bare),
        "with parse per s": perSecond(parse),
        "durable per s": perSecond(durable),
        failures: ours.failures,
      };
    },
  },
  {
    name: "batches of 100, gzip",
    ceiling: "gunzip and parse",
    async round() {
      await using server = await ServerProcess.start();
      const { url, token } = server;
      const before = performance.now();
      const ours = await load({ ...batch, url, token });
      const sending = performance.now() - ours.seconds * 1_000;
      const memory = getMemory(server.process.pid, await server.enginePids());
      await untilReadable(server);
      const readable =
        ((ours.requests - ours.failures) * batch.size) / ((performance.now() - sending) / 1_000);
      const parse = await getCeiling("parse", batch);
      const durable = await getCeiling("durable", batch);
      const duckdb = await duckdbInserts(50_000);
      const events = perSecond(ours) * batch.size;
      return {
        "events per s": events,
        "p50 ms": ours.p50,
        "p99 ms": ours.p99,
        ratio: perSecond(ours) / perSecond(parse),
        "÷ durable": perSecond(ours) / perSecond(durable),
        "readable per s": readable,
        "readable ÷ DuckDB": readable / duckdb,
        "DuckDB per s": duckdb,
        "parse events per s": perSecond(parse) * batch.size,
        "front MB": memory.server,
        "engine MB": memory.engine,
        failures: ours.failures,
        "whole s": (performance.now() - before) / 1_000,
      };
    },
  },
  {
    name: "import of a file",
    ceiling: "DuckDB reads and inserts, one thread",
    async round() {
      const events = 100_000;
      await using server = await ServerProcess.start();
      const path = `${temporaryFolder()}/events.ndjson`;
      const next = peopleLike(3);
      writeFileSync(path, Array.from({ length: events }, () => `${JSON.stringify(next())}\n`).join(""));
      const started = performance.now();
      const { code, stderr } = await flagkeep(["import", path, "--data-dir", server.dataDir, "--json"]);
      if (code !== 0) throw new Error(`import: ${stderr}`);
      const accepted = performance.now() - started;
      await untilReadable(server);
      const readable = performance.now() - started;
      const duckdb = await duckdbInserts(50_000);
      return {
        "accepted per s": (events / accepted) * 1_000,
        "readable per s": (events / readable) * 1_000,
        ratio: ((events / readable) * 1_000) / duckdb,
        "DuckDB per s": duckdb,
      };
    },
  },
  {
    name: "flags, 100 of them",
    ceiling: "an answer of the same size",
    async round() {
      await using server = await ServerProcess.start();
      const { url, token, initialized } = server;
      await createFlags(server);
      await createPersons(server);
      const asked = { kind: "flags", connections: 32, requests: enough(20_000), url, token } as const;
      const known = await load({ ...asked, size: personCount, seed: 0 });
      const unknown = await load({ ...asked, size: 1_000_000_007, seed: 2 });
      const one = await server.post("/flags/?v=2", { token, distinct_id: "x" });
      const empty = await getCeiling("bytes", { ...asked, size: 1 }, (await one.text()).length);
      const ofrep = await load({
        url,
        kind: "request",
        connections: 32,
        requests: enough(20_000),
        path: "/ofrep/v1/evaluate/flags",
        headers: { Authorization: `Bearer ${token}` },
        body: { context: { targetingKey: "x" } },
      });
      const local = `/api/projects/${initialized.project.id}/feature_flags/local_evaluation/?send_cohorts`;
      const secret = { Authorization: `Bearer ${initialized.project.secret_api_key}` };
      const etag = (await fetch(url + local, { headers: secret })).headers.get("etag") ?? "";
      const unchanged = await load({
        url,
        kind: "request",
        connections: 32,
        requests: enough(60_000),
        path: local,
        alsoGood: [304],
        headers: { ...secret, "If-None-Match": etag },
      });
      const quiet = await load({ ...asked, size: personCount, seed: 0, rate: 2_000 });
      const ingestion = startClient({
        url,
        token,
        kind: "batch",
        connections: 8,
        requests: enough(100),
        size: 100,
        rate: 100,
        seconds: seconds + 1,
        seed: 5,
      }).then((client) => client.run());
      await Bun.sleep(500);
      const engineSeconds = async () =>
        (await server.enginePids()).reduce((sum, pid) => sum + cpuSeconds(pid), 0);
      const engineBefore = await engineSeconds();
      const beside = await load({ ...asked, size: personCount, seed: 0, rate: 2_000 });
      const engineBusy = ((await engineSeconds()) - engineBefore) / beside.seconds;
      await ingestion;
      return {
        "known ids per s": perSecond(known),
        "new ids per s": perSecond(unknown),
        ratio: perSecond(known) / perSecond(empty),
        "new ids ratio": perSecond(unknown) / perSecond(empty),
        "empty answer per s": perSecond(empty),
        "304 per s": perSecond(unchanged),
        "304 ratio": perSecond(unchanged) / perSecond(empty),
        "OFREP per s": perSecond(ofrep),
        "OFREP ÷ flags": perSecond(ofrep) / perSecond(known),
        "p99 ms at 2,000/s": quiet.p99,
        "p99 ms beside 10,000 events/s": beside.p99,
        "p99 ratio": beside.p99 / quiet.p99,
        "engine µs per event": (engineBusy * 1e6) / 10_000,
        failures: known.failures + unknown.failures + ofrep.failures + unchanged.failures + beside.failures,
      };
    },
  },
  {
    name: "start and rest",
    ceiling: "none",
    async round() {
      const startedMs = performance.now();
      await using server = await ServerProcess.start();
      await server.post("/flags/?v=2", { token: server.token, distinct_id: "x" });
      const started = performance.now() - startedMs;
      await server.query("SELECT 1");
      await Bun.sleep(3_000);
      const memory = getMemory(server.process.pid, await server.enginePids(), "Pss");
      return {
        "start ms, with init": started,
        "idle PSS MB": memory.server + memory.engine,
        "front MB": memory.server,
        "engine MB": memory.engine,
        "executable MB": Bun.file(executable).size / mib,
      };
    },
  },
];

const results: { scenario: string; ceiling: string; rounds: Figures[]; median: Figures }[] = [];
console.log(
  `${availableParallelism()} cores (${cpus()[0]?.model}); client on the same machine; medians of ${rounds} rounds\n`,
);
for (const { name, ceiling, round } of scenarios) {
  if (only !== undefined && !name.includes(only)) continue;
  const all: Figures[] = [];
  for (let number = 0; number < rounds; number++) all.push(await round());
  const median = Object.fromEntries(
    Object.keys(all[0]!).map((key) => [key, getMedian(all.map((one) => one[key]!))]),
  );
  results.push({ scenario: name, ceiling, rounds: all, median });
  console.log(`${name} (ratio to: ${ceiling})`);
  for (const [key, value] of Object.entries(median)) console.log(`  ${key.padEnd(32)} ${shown(value)}`);
}
const { stdout } = Bun.spawnSync([executable, "version", "--json"]);
const about = {
  cores: availableParallelism(),
  cpu: cpus()[0]?.model,
  seconds,
  versions: JSON.parse(stdout.toString()),
};
writeFileSync("dist/bench.json", `${JSON.stringify({ about, results }, null, 2)}\n`);
console.log("\ndist/bench.json has every round.");

function getMedian(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return (sorted[Math.floor((sorted.length - 1) / 2)]! + sorted[Math.ceil((sorted.length - 1) / 2)]!) / 2;
}

function shown(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(2);
}

/** Sends a marker and waits until it can be read: everything before it is readable then. */
async function untilReadable(server: ServerProcess): Promise<void> {
  const uuid = Bun.randomUUIDv7();
  await server.batch(
    [{ event: "marker", distinct_id: "marker", uuid, timestamp: new Date().toISOString() }],
    {
      historical_migration: true,
    },
  );
  while ((await server.events(`uuid=${uuid}`)).length === 0) await Bun.sleep(50);
}

/** In megabytes. */
function getMemory(server: number, engines: readonly number[], kind: "Rss" | "Pss" = "Rss") {
  const getMiB = (pid: number) => memoryBytes(pid, kind) / mib;
  return { server: getMiB(server), engine: engines.reduce((sum, pid) => sum + getMiB(pid), 0) };
}
