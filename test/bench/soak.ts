/**
 * A long time under load: `make soak [MINUTES=60]`. Sends events and flag requests at half of what this machine can take, while
 * dashboards are looked at, the stream of live events is open and a backup is created every five minutes.
 *
 * `MEMORY=512MiB` is what the server may take: with less of it, its caches are full early, and whatever grows then has no bound.
 *
 * `RATE=2000` sends so many events a second, on a machine with other work, where a peak of ten seconds says little.
 *
 * Fails when memory grows by more than 1 MB a minute after the first sixth, when descriptors become more, when the journal does
 * not go back to where it was, or when an acknowledged event is missing. What the event store keeps of its file until it needs
 * the memory is told apart, and may not pass the store's limit. Tells how long answers took while backups were created.
 */

import { readdirSync, readlinkSync, rmSync } from "node:fs";
import { join } from "node:path";
import { readConfig } from "../../src/config/read.ts";
import { flagkeep, ServerProcess, temporaryFolder, until } from "../support/server.ts";
import { peopleLike } from "./people-like.ts";
import { memoryBytes } from "./processes.ts";

const minutes = Number(process.env.MINUTES ?? 60);
const backupEveryMs = Math.min(5, minutes / 4) * 60_000;
const sampleEveryMs = Math.max(1_000, minutes * 100);
const peakMs = 10_000;
const batchEvents = 50;
const slopeBytesMax = 1_000_000;
/** A slope over a few minutes says nothing. */
const minutesToJudge = 30;
/** Parts of the time whose lowest memory is compared: steps and backups come and go, what is never given back stays. */
const partsOfTime = 12;
const descriptorsMore = 16;
const curvePoints = 13;

interface Sample {
  minute: number;
  /** Of the front and the engine, in bytes. */
  memory: [server: number, engine: number];
  /** As the engine tells it: JavaScript's objects, what the event store keeps of its file, and what it needs. */
  parts: [heap: number, cache: number, work: number];
  /** Of files. */
  descriptors: number;
}

const memory = process.env.MEMORY === undefined ? [] : ["--memory", process.env.MEMORY];
await using server = await ServerProcess.start({ args: ["--log-level", "warn", ...memory] });
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
    const engines = await server.enginePids();
    const pids = [server.process.pid, ...engines];
    const getMemory = (pid: number) => memoryBytes(pid, "Pss");
    samples.push({
      minute: (performance.now() - startRun) / 60_000,
      memory: [getMemory(server.process.pid), engines.reduce((sum, pid) => sum + getMemory(pid), 0)],
      parts: await getParts(),
      descriptors: pids.reduce((sum, pid) => sum + getFiles(pid), 0),
    });
    await Bun.sleep(Math.min(sampleEveryMs, Math.max(0, end - performance.now())));
  }
}

/** All zero before the engine has told any. */
async function getParts(): Promise<Sample["parts"]> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  const of = (part: string) =>
    Number(new RegExp(`^flagkeep_engine_memory_bytes\\{part="${part}"\\} (.+)$`, "m").exec(text)?.[1] ?? 0);
  return [of("heap"), of("store_cache"), of("store_work")];
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
  const late = samples.filter(({ minute }) => minute >= minutes / 6);
  const all = ({ memory: [server, engine] }: Sample) => server + engine;
  const slope = getSlope(late, (sample) => all(sample) - sample.parts[1]);
  const first = late[0]!;
  const last = late.at(-1)!;
  const millions = (bytes: number) => (bytes / 1_000_000).toFixed(1);
  for (let part = 0; part < curvePoints; part++) {
    const { minute, memory, parts } = samples[Math.floor((part / (curvePoints - 1)) * (samples.length - 1))]!;
    console.log(
      `minute ${minute.toFixed(1)}: server ${millions(memory[0])} MB, engine ${millions(memory[1])} MB; of that ` +
        `objects ${millions(parts[0])}, the store's cache ${millions(parts[1])}, its work ${millions(parts[2])}`,
    );
  }
  const lowest = Array.from({ length: partsOfTime }, (_, part) =>
    late.filter(({ minute }) => Math.floor((minute / minutes) * partsOfTime) === part),
  ).flatMap((ofPart) => ofPart.toSorted((one, other) => all(one) - all(other)).slice(0, 1));
  console.log(
    `${acknowledged} events; memory grows by ${millions(getSlope(late, all))} MB a minute, ` +
      `without the store's cache by ${millions(slope)}, its lows by ${millions(getSlope(lowest, all))}; ` +
      `descriptors ${first.descriptors} to ${last.descriptors}`,
  );
  for (const [name, { apart, during }] of Object.entries(waits)) {
    const without = p99(apart);
    const within = p99(during);
    console.log(
      `${name}: p99 ${without.toFixed(1)} ms, while backups were made ${within.toFixed(1)} ms (${(within / without).toFixed(2)} times)`,
    );
  }
  if (minutes >= minutesToJudge && slope > slopeBytesMax) problems.push("memory grows");
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
function getSlope(list: readonly Sample[], of: (sample: Sample) => number): number {
  const mean = (of: (sample: Sample) => number) => list.reduce((sum, one) => sum + of(one), 0) / list.length;
  const minute = mean((one) => one.minute);
  const memory = mean(of);
  const spread = list.reduce((sum, one) => sum + (one.minute - minute) ** 2, 0);
  return list.reduce((sum, one) => sum + (one.minute - minute) * (of(one) - memory), 0) / spread;
}

function p99(list: number[]): number {
  return list.toSorted((one, other) => one - other)[Math.floor(list.length * 0.99)] ?? Number.NaN;
}
