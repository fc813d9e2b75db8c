/**
 * The engine: the child process that owns DuckDB and the identity store.
 *
 * It lives and dies with the front: its commands come over standard input, and when that closes it exits. A fault it
 * can not mend (DuckDB invalidates itself when the disk is full) ends the process; the front starts it again.
 */

import { mkdirSync, rmSync } from "node:fs";
import { setPriority } from "node:os";
import { join } from "node:path";
import { openEventDatabase } from "../events/database.ts";
import { EventLoader } from "../events/loader.ts";
import { setNativeFolder } from "../events/native-folder.ts";
import { PersonMirror } from "../events/person-mirror.ts";
import { SegmentArchive } from "../journal/archive-writer.ts";
import { paths } from "../paths.ts";
import { openPeople } from "../people/open.ts";
import { PeopleStore } from "../people/store.ts";
import { Pipeline } from "../pipeline/pipeline.ts";
import { DataFromNewerVersion } from "../sqlite/migrate.ts";
import { nowMicros } from "../time.ts";
import { type Command, type EngineStart, type LogLevel, type Report, readMessages } from "./messages.ts";
import { serveQueries } from "./queries.ts";

/** Captures and flag answers go before loading when the processors are busy. */
const enginePriority = 5;

const spikeTickMs = 5_000;
/** The copies of persons follow at this pace by themselves; a query that needs them does not wait for it. */
const mirrorIntervalMs = 5_000;

const report = (message: Report) => void process.stdout.write(`${JSON.stringify(message)}\n`);
const log = (level: LogLevel, msg: string, fields: Record<string, unknown> = {}) =>
  report({ type: "log", level, msg, fields });

/** Runs the engine until its front goes or tells it to stop; ends the process. */
export async function runEngine(): Promise<never> {
  // The front is gone; what is not committed is loaded by the next engine.
  process.stdout.on("error", () => process.exit(0));
  let engine: Promise<Engine> | undefined;
  // The front's signals reach the whole process group; the front decides when the engine ends.
  process.on("SIGINT", () => undefined);
  process.on("SIGTERM", () => undefined);
  await readMessages<Command>(Bun.stdin.stream(), (command) => {
    if (command.type === "start") engine = startEngine(command.start).catch(die);
    if (command.type === "segments") void engine?.then(({ pipeline }) => pipeline.offer(command.segments));
    if (command.type === "stop") void engine?.then((started) => stop(started, command.timeoutMs)).catch(die);
  });
  process.exit(0);
}

type Engine = Awaited<ReturnType<typeof startEngine>>;

async function startEngine(start: EngineStart) {
  lowerPriority();
  const place = paths(start.dataDir);
  setNativeFolder(place.native);
  rmSync(place.work, { recursive: true, force: true });
  mkdirSync(place.work, { recursive: true, mode: 0o700 });
  // First DuckDB: its lock on the file is free only once an engine before this one is really gone.
  const database = await openEventDatabase(place.events, {
    memoryLimitBytes: start.memoryLimitBytes,
    threads: start.threads,
    temporaryFolder: join(place.work, "duckdb"),
  });
  const people = new PeopleStore(openPeople(place.people), {
    ...start.spikes,
    historyMinutes: 60,
    historyMinutesMin: 2,
  });
  const loader = await EventLoader.open(database);
  const archive = new SegmentArchive(
    { ...start.archive, folder: place.archive, quarantineFolder: place.quarantine },
    {
      onReleased: (lane, lastSeq) => report({ type: "released", lane, lastSeq }),
      onGivenUp: ({ lane, first, last, reason }) =>
        log("warn", "archived events went although no backup covers them; back up more often", {
          ...{ lane, first, last, reason },
        }),
      onTrouble: (error) => log("warn", "the archive can not be written", { error: String(error) }),
    },
  );
  const pipeline: Pipeline = new Pipeline(
    people,
    loader,
    archive,
    {
      batchBytesMax: 32 * 1024 * 1024,
      checkpointBytes: 128 * 1024 * 1024,
      checkpointIntervalMs: 30_000,
      workFolder: place.quarantine,
    },
    {
      onApplied: (applied) => report({ type: "applied", applied }),
      onFlagUsage: (usage) => report({ type: "flag_usage", usage }),
      onSpikes: (spikes) => report({ type: "spikes", spikes }),
      onDamage: (error) => log("error", error.message, { code: (error as { code?: string }).code }),
      onFatal: die,
    },
  );
  setInterval(() => {
    // With a backlog the newest events are not known yet, and a spike would be closed too early.
    if (pipeline.lag().realtime.segments > 0) return;
    const spikes = people.tick(nowMicros());
    if (spikes.length > 0) report({ type: "spikes", spikes });
  }, spikeTickMs);
  const mirror = await PersonMirror.open(database, people.db, place.work);
  setInterval(() => {
    void archive.tidy();
    if (pipeline.lag().realtime.segments === 0) mirror.follow().then(() => pipeline.tidy(), die);
  }, mirrorIntervalMs);
  serveQueries({
    ...{ database, loader, people: people.db, mirror, workFolder: place.work },
    ...{ queryTimeoutMs: start.queryTimeoutMs, log },
  });
  report({
    type: "ready",
    cursors: { realtime: pipeline.cursor("realtime"), historical: pipeline.cursor("historical") },
  });
  return { pipeline, people, database };
}

async function stop({ pipeline, people, database }: Engine, timeoutMs: number): Promise<void> {
  await pipeline.drain(timeoutMs);
  people.db.$client.close();
  database.close();
  process.exit(0);
}

function die(error: unknown): never {
  if (error instanceof DataFromNewerVersion) {
    report({ type: "refused", message: error.message, hint: error.hint });
    process.exit(1);
  }
  log("error", "the engine can not go on", {
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
  process.exit(1);
}

function lowerPriority(): void {
  try {
    setPriority(enginePriority);
  } catch {
    // Not allowed here; the engine works at the same priority then.
  }
}
