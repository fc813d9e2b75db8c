/**
 * A long time under load: `make soak [SOAK_MINUTES=60]`. Sends events and flag requests at half of what this machine can take,
 * while insights and Overview are looked at, the stream of live events is open and a backup is created every five minutes.
 *
 * `MEMORY=512MiB` is what the server may take: with less of it, its caches are full early, and whatever grows then has no bound.
 * `WORKERS=3` starts HTTP workers. `RATE=2000` sets the events per second on a machine with other work, where a peak of ten
 * seconds says little.
 *
 * Fails when the memory of a process grows by more than 1 MB a minute over the last 40 minutes, when descriptors become more,
 * when the journal does not go back to where it was, or when an acknowledged event is missing. What the event store keeps of its
 * file until it needs the memory is reported apart, and may not pass the store's limit. Reports how long answers took while
 * backups were created.
 */

import { readdirSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readConfig } from "../../src/config/read.ts";
import { flagkeep, ServerProcess, temporaryFolder, until } from "../support/server.ts";
import { peopleLike } from "./people-like.ts";
import { memoryBytes } from "./processes.ts";

const minutes = Number(process.env.SOAK_MINUTES ?? 60);
const backupEveryMs = Math.min(5, minutes / 4) * 60_000;
const sampleEveryMs = Math.max(1_000, minutes * 100);
const peakMs = 10_000;
const batchEvents = 50;
const slopeBytesMax = 1_000_000;
/** At the end of the run; caches fill before. */
const judgedMinutes = 40;
/** A slope over a few minutes says nothing. */
const minutesToJudge = 30;
/** The first part of a short run is not judged either. */
const warmUp = 1 / 6;
/** How often the console would load Overview if its user changed the range now and then. */
const overviewsPerSecond = 0.1;
/** Parts of the time whose lowest memory is compared: steps and backups come and go, what is never given back stays. */
const partsOfTime = 12;
const descriptorsMore = 16;
const curvePoints = 13;

const processNames = ["server", "workers", "engine"] as const;
type ProcessName = (typeof processNames)[number];

interface Sample {
  minute: number;
  /** In bytes. */
  memory: Record<ProcessName, number>;
  /** As the engine reports it: JavaScript's objects, what the event store keeps of its file, and what it needs. */
  parts: [heap: number, cache: number, work: number];
  /** Of files. */
  descriptors: number;
}

const memory = process.env.MEMORY === undefined ? [] : ["--memory", process.env.MEMORY];
const workers = process.env.WORKERS === undefined ? [] : ["--workers", process.env.WORKERS];
await using server = await ServerProcess.start({ args: ["--log-level", "warn", ...memory, ...workers] });
const backups = temporaryFolder();
const next = peopleLike(1);
let acknowledged = 0;
let isBackup = false;
let isOver = false;
/** Milliseconds of answers, apart from and during backups. */
const waits = {
  captures: { apart: [] as number[], during: [] as number[] },
  flags: { apart: [] as number[], during: [] as number[] },
};
const problems: string[] = [];

await makeThings();
const peak = await measurePeak();
const rate = Number(process.env.RATE ?? peak / 2);
console.log(`peak ${Math.round(peak)} events/s; ${minutes} minutes at ${Math.round(rate)} a second`);
const samples: Sample[] = [];
const startRun = performance.now();
const end = startRun + minutes * 60_000;
const stream = openStream();
await Promise.all([
  evenly(() => rate / batchEvents, sendBatch),
  evenly(() => 20, askFlags),
  evenly(() => 0.2, lookAtDashboards),
  evenly(() => overviewsPerSecond, lookAtOverview),
  makeBackups(),
  takeSamples(),
]);
isOver = true;
stream.abort();
await comesToRest();
rmSync(backups, { recursive: true, force: true });
report();
process.exitCode = problems.length === 0 ? 0 : 1;

async function makeThings(): Promise<void> {
  await server.api("/api/projects/1/feature_flags/", { method: "POST", body: { key: "soak" } });
  for (const math of ["total", "dau"]) {
    const query = {
      kind: "TrendsQuery",
      series: [{ event: "$pageview", math }],
      breakdownFilter: { breakdown: "$browser" },
    };
    await server.api("/api/projects/1/insights/", { method: "POST", body: { name: math, query } });
  }
}

async function sendBatch(): Promise<void> {
  const items = Array.from({ length: batchEvents }, next);
  const started = performance.now();
  const { status } = await server.batch(items);
  waits.captures[isBackup ? "during" : "apart"].push(performance.now() - started);
  if (status === 200) acknowledged += items.length;
  else if (status !== 503) problems.push(`a batch was answered with ${status}`);
}

async function askFlags(): Promise<void> {
  const started = performance.now();
  const { status } = await server.post("/flags/?v=2", { api_key: server.token, distinct_id: "user-1" });
  waits.flags[isBackup ? "during" : "apart"].push(performance.now() - started);
  if (status !== 200) problems.push(`flags were answered with ${status}`);
}

async function lookAtDashboards(): Promise<void> {
  const refresh = Math.random() < 0.2 ? "?refresh=true" : "";
  const { status } = await server.api(
    `/api/projects/1/insights/${1 + (Math.random() < 0.5 ? 1 : 0)}/${refresh}`,
  );
  if (status !== 200 && status !== 503) problems.push(`an insight was answered with ${status}`);
}

/** The queries of the console's page Overview, together, as the page sends them. */
async function lookAtOverview(): Promise<void> {
  const dateRange = { date_from: ["0d", "-7d", "-30d"][Math.floor(Math.random() * 3)] };
  const view = { dateRange, compareFilter: { compare: true }, properties: [] };
  const queries = [
    { kind: "WebOverviewQuery", ...view },
    { kind: "WebTrendsQuery", interval: "day", ...view },
    ...["Page", "InitialReferringDomain", "Browser"].map((breakdownBy) => ({
      kind: "WebStatsTableQuery",
      breakdownBy,
      includeBounceRate: true,
      limit: 10,
      ...view,
    })),
    { kind: "WebOnlineQuery" },
  ];
  const statuses = await Promise.all(
    queries.map(async (query) => {
      const response = await server.api("/api/projects/1/query/", { method: "POST", body: { query } });
      await response.arrayBuffer();
      return response.status;
    }),
  );
  const failed = statuses.find((status) => status !== 200 && status !== 503);
  if (failed !== undefined) problems.push(`a query of Overview was answered with ${failed}`);
}

/** How many events of eight clients a second are taken and can be read. */
async function measurePeak(): Promise<number> {
  const start = performance.now();
  const before = acknowledged;
  const until = start + peakMs;
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      while (performance.now() < until) await sendBatch();
    }),
  );
  await allStored();
  waits.captures.apart.length = 0;
  return (acknowledged - before) / ((performance.now() - start) / 1_000);
}

/** Does something so many times a second; what is late is not made up for. */
async function evenly(perSecond: () => number, work: () => Promise<void>): Promise<void> {
  const running = new Set<Promise<void>>();
  for (let due = performance.now(); due < end; ) {
    due = Math.max(due + 1_000 / perSecond(), performance.now() - 1_000);
    await Bun.sleep(Math.max(0, due - performance.now()));
    if (running.size > 64) await Promise.race(running);
    const one = work()
      .catch((error: Error) => void problems.push(error.message))
      .finally(() => running.delete(one));
    running.add(one);
  }
  await Promise.all(running);
}

async function makeBackups(): Promise<void> {
  for (let due = startRun + backupEveryMs; due < end; due += backupEveryMs) {
    await Bun.sleep(Math.max(0, due - performance.now()));
    isBackup = true;
    const { code, stderr } = await flagkeep(["backup", "create", backups, "--data-dir", server.dataDir]);
    isBackup = false;
    if (code !== 0) problems.push(`a backup failed: ${stderr}`);
    await flagkeep(["backup", "prune", backups, "--keep-last", "1", "--data-dir", server.dataDir]);
  }
}

function openStream(): AbortController {
  const stop = new AbortController();
  void (async () => {
    while (!isOver) {
      const headers = { authorization: `Bearer ${server.initialized.personal_api_key}` };
      const answer = await fetch(`${server.url}/api/projects/1/events/stream/`, {
        headers,
        signal: stop.signal,
      });
      for await (const _ of answer.body!);
    }
  })().catch(() => undefined);
  return stop;
}

async function takeSamples(): Promise<void> {
  while (performance.now() < end) {
    const pids: Record<ProcessName, number[]> = {
      server: [server.process.pid],
      workers: await server.workerPids(),
      engine: await server.enginePids(),
    };
    const getMemory = (name: ProcessName) =>
      pids[name].reduce((sum, pid) => sum + memoryBytes(pid, "Pss"), 0);
    samples.push({
      minute: (performance.now() - startRun) / 60_000,
      memory: { server: getMemory("server"), workers: getMemory("workers"), engine: getMemory("engine") },
      parts: await getParts(),
      descriptors: Object.values(pids)
        .flat()
        .reduce((sum, pid) => sum + getFiles(pid), 0),
    });
    await Bun.sleep(Math.min(sampleEveryMs, Math.max(0, end - performance.now())));
  }
}

/** All zero until the engine has reported them. */
async function getParts(): Promise<Sample["parts"]> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const getMemoryOf = (part: string) =>
    Number(new RegExp(`^flagkeep_engine_memory_bytes\\{part="${part}"\\} (.+)$`, "m").exec(text)?.[1] ?? 0);
  return [getMemoryOf("heap"), getMemoryOf("store_cache"), getMemoryOf("store_work")];
}

/** Open files; how many connections there are is for the clients to say. */
function getFiles(pid: number): number {
  const place = `/proc/${pid}/fd`;
  const isFile = (name: string) => {
    try {
      return readlinkSync(join(place, name)).startsWith("/");
    } catch {
      // Closed meanwhile.
      return false;
    }
  };
  return readdirSync(place).filter(isFile).length;
}

async function allStored(): Promise<void> {
  // With little memory a statement may be stopped while a backlog is loaded.
  const count = async () => (await server.query("SELECT count(*)::DOUBLE AS n FROM events"))[0]!.n;
  await until(
    async () => (await count().catch(() => undefined)) === acknowledged,
    "every acknowledged event is stored",
    600_000,
  ).catch((error: Error) => problems.push(error.message));
}

async function comesToRest(): Promise<void> {
  await allStored();
  const waiting = () =>
    ["realtime", "historical"].flatMap((lane) =>
      readdirSync(join(server.dataDir, "journal", lane)).filter((name) => name.endsWith(".ndjson")),
    ).length;
  await until(() => waiting() <= 2, "the journal is empty again", 120_000).catch((error: Error) =>
    problems.push(error.message),
  );
}

function report(): void {
  const from = Math.max(minutes * warmUp, minutes - judgedMinutes);
  const late = samples.filter(({ minute }) => minute >= from);
  const first = late[0]!;
  const last = late.at(-1)!;
  const millions = (bytes: number) => (bytes / 1_000_000).toFixed(1);
  for (let part = 0; part < curvePoints; part++) {
    const { minute, memory, parts } = samples[Math.floor((part / (curvePoints - 1)) * (samples.length - 1))]!;
    const processes = processNames.map((name) => `${name} ${millions(memory[name])}`).join(", ");
    console.log(
      `minute ${minute.toFixed(1)}, MB: ${processes}; of the engine objects ${millions(parts[0])}, ` +
        `the store's cache ${millions(parts[1])}, its work ${millions(parts[2])}`,
    );
  }
  console.log(
    `${acknowledged} events; descriptors ${first.descriptors} to ${last.descriptors}; MB a minute since minute ${from.toFixed(1)}:`,
  );
  for (const name of processNames) {
    const getBytes = ({ memory, parts: [, cache] }: Sample) => memory[name] - (name === "engine" ? cache : 0);
    const lows = Array.from({ length: partsOfTime }, (_, part) =>
      late.filter(({ minute }) => Math.floor(((minute - from) / (minutes - from)) * partsOfTime) === part),
    ).flatMap((ofPart) => ofPart.toSorted((one, other) => getBytes(one) - getBytes(other)).slice(0, 1));
    const slope = getSlope(late, getBytes);
    const whole =
      name === "engine"
        ? `, with the store's cache ${millions(getSlope(late, (one) => one.memory.engine))}`
        : "";
    console.log(`  ${name} ${millions(slope)}, its lows ${millions(getSlope(lows, getBytes))}${whole}`);
    if (minutes >= minutesToJudge && slope > slopeBytesMax) problems.push(`memory of ${name} grows`);
  }
  for (const [name, { apart, during }] of Object.entries(waits)) {
    const without = p99(apart);
    const within = p99(during);
    console.log(
      `${name}: p99 ${without.toFixed(1)} ms, while backups were made ${within.toFixed(1)} ms (${(within / without).toFixed(2)} times)`,
    );
  }
  const { "duckdb-memory-limit": limit } = readConfig(
    process.env.MEMORY === undefined ? {} : { memory: process.env.MEMORY },
    {},
  );
  if (samples.some(({ parts: [, cache] }) => cache > limit))
    problems.push("the store's cache passes its limit");
  if (last.descriptors > first.descriptors + descriptorsMore) problems.push("descriptors become more");
  for (const problem of new Set(problems)) console.log(`FAILED: ${problem}`);
}

/** Bytes a minute, by least squares. */
function getSlope(list: readonly Sample[], getValue: (sample: Sample) => number): number {
  const mean = (getValue: (sample: Sample) => number) =>
    list.reduce((sum, one) => sum + getValue(one), 0) / list.length;
  const minute = mean((one) => one.minute);
  const memory = mean(getValue);
  const spread = list.reduce((sum, one) => sum + (one.minute - minute) ** 2, 0);
  return list.reduce((sum, one) => sum + (one.minute - minute) * (getValue(one) - memory), 0) / spread;
}

function p99(list: number[]): number {
  return list.toSorted((one, other) => one - other)[Math.floor(list.length * 0.99)] ?? Number.NaN;
}
