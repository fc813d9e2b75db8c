/**
 * The engine: the child process that owns DuckDB and the identity store.
 *
 * It lives and dies with the front: its commands come over standard input, and when that closes it exits. A fault it
 * cannot mend (DuckDB invalidates itself when the disk is full) ends the process; the front starts it again.
 */

import { existsSync, mkdirSync, readdirSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { EventDatabase } from "../events/database.ts";
import type { EventLoader } from "../events/loader.ts";
import { setNativeFolder } from "../events/native-folder.ts";
import { isDoubtful, isInvalidated, openFailureOf, type StoreUse } from "../events/open-failure.ts";
import { PersonMirror } from "../events/person-mirror.ts";
import { SegmentArchive } from "../journal/archive-writer.ts";
import { loadableBytes, realDisk } from "../journal/disk.ts";
import { batchOf, type JournalBatch, type SegmentBatch } from "../journal/reader.ts";
import type { ClickHouseAddress } from "../lib/clickhouse-address.ts";
import { type AppError, firstLine, OperatorNeeded } from "../lib/errors.ts";
import { ownBytes } from "../lib/memory-budget.ts";
import { putProcessBehind } from "../lib/priority.ts";
import { DataFromNewerVersion } from "../lib/sqlite/migrate.ts";
import { nowMicros } from "../lib/time.ts";
import { paths } from "../paths.ts";
import { NameRegister } from "../people/names.ts";
import { openPeople, type PeopleDb } from "../people/open.ts";
import { requireEventsInside, requireEventsOutside } from "../people/outside-events.ts";
import { PeopleStore } from "../people/store.ts";
import { LeaseLost } from "../postgres/lease.ts";
import { RpcServer } from "../rpc/server.ts";
import { duckdbBackend, type EventBackend } from "./backend.ts";
import { ClickHouseBackend } from "./clickhouse-backend.ts";
import {
  type Command,
  type EngineStart,
  engineSocketName,
  type LogLevel,
  type Report,
  readMessages,
} from "./messages.ts";
import { type BatchKeeper, type Pause, Pipeline } from "./pipeline/pipeline.ts";
import { PropertyWorker } from "./property-worker.ts";
import { queryHandlers } from "./queries.ts";
import { RunningQueries, type StopReason } from "./running-queries.ts";
import { SharedPeople } from "./shared-people.ts";
import { SlowQueries } from "./slow-queries.ts";

const spikeTickMs = 5_000;
/** The copies of persons follow at this pace by themselves; a query that needs them does not wait for it. */
const mirrorIntervalMs = 5_000;
const progressIntervalMs = 2_000;
const aliveIntervalMs = 1_000;
const sharedBatchBytesMax = 8 * 1024 * 1024;

const report = (message: Report) => void process.stdout.write(`${JSON.stringify(message)}\n`);
const log = (level: LogLevel, msg: string, fields: Record<string, unknown> = {}) =>
  report({ type: "log", level, msg, fields });

/** Runs the engine until its front goes or tells it to stop; ends the process. */
export async function runEngine(storeRecovery: StoreRecovery): Promise<never> {
  recovery = storeRecovery;
  // The front is gone; what is not committed is loaded by the next engine.
  process.stdout.on("error", () => process.exit(0));
  let engine: Promise<Engine> | undefined;
  // The front's signals reach the whole process group; the front decides when the engine ends.
  process.on("SIGINT", () => undefined);
  process.on("SIGTERM", () => undefined);
  await readMessages<Command>(Bun.stdin.stream(), (command) => {
    if (command.type === "start") engine = startEngine(command.start).catch(die);
    if (command.type === "segments")
      void engine?.then(({ pipeline }) => pipeline.offer(command.segments.map(batchOf)));
    if (command.type === "stop") void engine?.then((started) => stop(started, command.timeoutMs)).catch(die);
  });
  await (await engine)?.shared?.release();
  process.exit(0);
}

/** How the engine opens the event store, whatever has become of its file; given by whoever starts it. */
export interface StoreRecovery {
  /**
   * Opens the event store, made again when that is needed and loses nothing.
   *
   * @param people opens the store of persons. Called when DuckDB has said that nobody else uses the data.
   * @throws {OperatorNeeded} nothing can be done without a person.
   */
  open(
    start: EngineStart,
    people: () => PeopleStore,
    hooks: RecoveryHooks,
  ): Promise<{ database: EventDatabase; people: PeopleStore; loader: EventLoader }>;
  /** Has the event store of a data directory made again at the next start. */
  markDamaged(dataDir: string, reason: unknown): void;
}

export interface RecoveryHooks {
  onStep: (message: string, fields: Record<string, unknown>) => void;
  onProgress: (done: number, total: number) => void;
  /** Something could not be read or used; the rest goes on. */
  onDamage: (error: Error) => void;
  /** The store cannot be made again in full; it was opened as it is, so that most of it can be read. */
  onIncomplete: (error: OperatorNeeded) => void;
}

type Engine = Awaited<ReturnType<typeof startEngine>>;

let recovery: StoreRecovery;
/** Set at the start; one engine works on one data directory. */
let dataDir: string | undefined;
/** The event store's file is damaged but cannot be made again without losing events. */
let isLimping = false;
/** The events are not in DuckDB. */
let isOutside = false;
/** What DuckDB's complaints are about at this moment. */
let use: StoreUse = "opening";

async function startEngine(start: EngineStart) {
  // Where others wait for it to be dead, it must not be the last to get a processor.
  if (start.shared === null) putProcessBehind();
  setInterval(() => report({ type: "alive" }), aliveIntervalMs);
  dataDir = start.dataDir;
  const place = paths(start.dataDir);
  setNativeFolder(place.native);
  // Emptied, not made anew: a full disk may have no room for a folder.
  if (!existsSync(place.work)) mkdirSync(place.work, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(place.work))
    rmSync(join(place.work, name), { recursive: true, force: true });
  const space = () => realDisk.space(start.dataDir);
  if (start.doubt !== "") recovery.markDamaged(dataDir, start.doubt);
  const opened = start.eventsAt === null ? await openStores(start) : await openOutside(start, start.eventsAt);
  const { people, events, follow } = opened;
  const shared = "shared" in opened ? opened.shared : undefined;
  /** Of several fronts' engines only one loads events. */
  const isLoader = shared === undefined || shared.isLoader;
  use = "reading";
  const archive = new SegmentArchive(
    {
      ...{ ...start.archive, folder: place.archive, quarantineFolder: place.quarantine },
      waitingBytes: () => {
        const { realtime, historical } = pipeline.lag();
        return realtime.bytes + historical.bytes;
      },
    },
    {
      onReleased: (lane, lastSeq) => report({ type: "released", lane, lastSeq }),
      onGivenUp: ({ lane, first, last, reason }) =>
        log("warn", "archived events went although no backup covers them; back up more often", {
          ...{ lane, first, last, reason },
        }),
      onTrouble: (error) => log("warn", "the archive cannot be written", { error: String(error) }),
    },
  );
  const register = new NameRegister(people.db);
  const keepNames = (work: () => void) => {
    try {
      work();
    } catch (error) {
      log("warn", "names of events and properties could not be kept", { error: String(error) });
    }
  };
  let pause: Pause | null = null;
  const pipeline: Pipeline = new Pipeline(
    shared?.around(people) ?? people,
    events,
    shared === undefined ? keptIn(archive) : keptElsewhere,
    {
      batchBytesMax: Math.min(
        start.memory?.batchBytes ?? 64 * 1024 * 1024,
        // Short steps, so that the lease is renewed meanwhile.
        shared === undefined ? Number.POSITIVE_INFINITY : sharedBatchBytesMax,
      ),
      portionBytes: start.memory?.portionBytes ?? 8 * 1024 * 1024,
      checkpointBytes: 128 * 1024 * 1024,
      checkpointIntervalMs: 30_000,
      workFolder: place.quarantine,
      space,
    },
    {
      onApplied: (applied) => {
        report({ type: "applied", applied });
        keepNames(() => register.store());
      },
      onFlagUsage: (usage) => report({ type: "flag_usage", usage }),
      onItems: (items) => keepNames(() => register.look(items)),
      onSpikes: (spikes) => report({ type: "spikes", spikes }),
      onDamage: (error) => log("error", error.message, { code: (error as { code?: string }).code }),
      onFatal: stopLoading,
      onPaused: (now) => {
        if (now === null && pause === null) return;
        if (pause === null) log("warn", "events wait for room on the disk", { ...now });
        else if (now === null) log("info", "there is room on the disk again; events are loaded");
        pause = now;
        report({ type: "paused", pause });
      },
    },
  );
  const hasRoom = async () => loadableBytes((await space()).freeBytes) > 0;
  setInterval(() => {
    if (!isLoader) return;
    // With a backlog the newest events are not known yet, and a spike would be closed too early.
    if (pipeline.lag().realtime.segments > 0 || pause !== null) return;
    const spikes = people.tick(nowMicros());
    if (spikes.length > 0) report({ type: "spikes", spikes });
  }, spikeTickMs);
  setInterval(() => {
    if (!isLoader) return;
    if (shared === undefined) void archive.tidy();
    if (pipeline.lag().realtime.segments === 0) follow().then(() => pipeline.tidy(), die);
  }, mirrorIntervalMs);
  const kept = "outside" in opened ? runOutside(opened.outside) : runDuckdb(start, opened, pipeline, hasRoom);
  const server = new RpcServer(engineSocketName, (error, name) => {
    log("error", "a query failed", { query: name, error: String(error) });
    if (isDamage(error) && !isLimping) die(error);
  });
  const handlers = queryHandlers({
    backend: kept.backend,
    people: people.db,
    queryTimeoutMs: start.queryTimeoutMs,
    change: async (run) => (shared === undefined ? await run() : await shared.change(run)),
    isSuspect: (projectId) => start.suspects.includes(projectId),
    onStatement: (projectId, change) => report({ type: "statement", projectId, change }),
  });
  server.listen(new SlowQueries().timed(handlers));
  report({
    type: "ready",
    cursors: { realtime: pipeline.cursor("realtime"), historical: pipeline.cursor("historical") },
  });
  await shared?.start(
    {
      offer: (batches) => pipeline.offer(batches),
      waitingBytes: (lane) => pipeline.lag()[lane].bytes,
    },
    (lane) => pipeline.cursor(lane),
  );
  return { pipeline, people, server, kept, shared };
}

/** The journal is in segments, and every batch is one. */
const keptIn = (archive: SegmentArchive): BatchKeeper<JournalBatch> => ({
  keep: (batches) => archive.keep(batches as readonly SegmentBatch[]),
  idle: () => archive.idle(),
});

/** The journal is in PostgreSQL, which forgets by itself what is loaded. */
const keptElsewhere: BatchKeeper<JournalBatch> = { keep: () => undefined, idle: async () => undefined };

/** What keeps the events, at work. */
interface KeptEvents {
  backend: EventBackend;
  /** Ends what goes on by itself. */
  rest(): Promise<void>;
  /** The last call. */
  close(): Promise<void>;
}

type OpenedDuckdb = Awaited<ReturnType<typeof openStores>>;

function runDuckdb(
  start: EngineStart,
  { database, people, events: loader, mirror }: OpenedDuckdb,
  pipeline: Pipeline,
  hasRoom: () => Promise<boolean>,
): KeptEvents {
  mirror.hasRoom = hasRoom;
  const queries = new RunningQueries(database, {
    memoryLimitBytes: start.memoryLimitBytes,
    ...(start.memory === null
      ? {}
      : { residentBytesMax: start.memory.ownBytesMax, residentBytes: () => ownBytes() }),
    onStuck: replaceEngine,
    onError: (error) => {
      // A damaged part is found when it is read; making the file again mends that.
      if (isInvalidated(error) || (isDamage(error) && !isLimping)) die(error);
    },
  });
  loader.room = queries;
  const properties = new PropertyWorker(
    database,
    loader,
    {
      columnsMax: start.propertyColumnsMax,
      queryTimeoutMs: start.queryTimeoutMs,
      isBusy: () =>
        queries.isBusy || pipeline.lag().realtime.segments + pipeline.lag().historical.segments > 0,
      hasRoom,
    },
    {
      onChange: (promoted) => report({ type: "properties", promoted }),
      onTrouble: (error) => {
        if (isInvalidated(error) || (isDamage(error) && !isLimping)) die(error);
        log("info", "columns of properties are worked on later", { error: firstLine(error) });
      },
    },
  );
  const backend = duckdbBackend({
    ...{ loader, mirror, queries, people: people.db },
    resultBytesMax: start.resultBytesMax,
    onProperties: (names) => properties.note(names),
  });
  return { backend, rest: () => properties.stop(), close: async () => database.close() };
}

/** Where the server is away the engine works all the same: events wait in the journal. */
function runOutside(outside: ClickHouseBackend): KeptEvents {
  outside.open().catch(die);
  return { backend: outside, rest: async () => undefined, close: () => outside.close() };
}

/** Ends this process for another one: what was acknowledged is in the journal, what was committed in the stores. */
function replaceEngine(reason: StopReason): never {
  const message: Report = { type: "stuck", reason };
  try {
    // Written before the end of the process, unlike what a stream holds.
    writeSync(1, `${JSON.stringify(message)}\n`);
  } finally {
    process.kill(process.pid, "SIGKILL");
  }
  throw new Error(reason);
}

/** Opens the stores of one data directory, and makes the event store again when that is needed and loses nothing. */
async function openStores(start: EngineStart) {
  const place = paths(start.dataDir);
  let reportedAt = Number.NEGATIVE_INFINITY;
  withPeople(place.people, requireEventsInside);
  const openPeopleOnce = once(() => peopleStoreOf(start, openPeople(place.people)));
  const { database, people, loader } = await recovery.open(start, openPeopleOnce, {
    onStep: (message, fields) => log("warn", message, fields),
    onDamage: (error) => log("error", error.message),
    onProgress: (done, total) => {
      report({ type: "rebuilding", done, total });
      if (performance.now() - reportedAt < progressIntervalMs && done < total) return;
      reportedAt = performance.now();
      log("info", "making the event store again", { entries: done, of: total });
    },
    onIncomplete: ({ message, hint }) => {
      report({ type: "trouble", message, hint, isStopped: false });
      isLimping = true;
    },
  });
  const mirror = await PersonMirror.open(database, people.db);
  if (mirror.isCutOff) {
    log("info", "the event store's copies of persons are made again", { persons: await mirror.refill() });
  }
  return { database, people, events: loader, mirror, follow: () => mirror.follow() };
}

/** Looks into the store of persons, when there is one. */
function withPeople(path: string, look: (people: PeopleDb) => void): void {
  if (!existsSync(path)) return;
  const people = openPeople(path, { readonly: true });
  try {
    look(people);
  } finally {
    people.$client.close();
  }
}

function peopleStoreOf({ spikes }: EngineStart, db: PeopleDb): PeopleStore {
  return new PeopleStore(db, {
    ...{ ...spikes, historyMinutes: 60, historyMinutesMin: 2 },
  });
}

/** Opens the store of persons, and what loads events into a server and asks it there. @throws {EventsElsewhere} */
async function openOutside(start: EngineStart, address: ClickHouseAddress) {
  isOutside = true;
  let outside: ClickHouseBackend | undefined;
  const db = openPeople(paths(start.dataDir).people);
  const shared: SharedPeople | undefined =
    start.shared === null
      ? undefined
      : await SharedPeople.open(db, start.shared, {
          onAway: awayTeller("what the fronts share"),
          onTaken: () => outside?.noteLoaded(),
          onFree: beginAnew,
          onFatal: (error) => (error instanceof LeaseLost ? beginAnew() : die(error)),
        });
  const people = peopleStoreOf(start, db);
  if (shared === undefined)
    requireEventsOutside(people.db, people.cursor("realtime") + people.cursor("historical") > 0);
  outside = new ClickHouseBackend(
    address,
    people.db,
    {
      queryTimeoutMs: start.queryTimeoutMs,
      columnsMax: start.propertyColumnsMax,
      isReader: shared?.isLoader === false,
    },
    {
      onAway: awayTeller("the events"),
      onPromoted: (promoted) => report({ type: "properties", promoted }),
      around: shared && ((copies) => shared.aroundCopies(copies)),
    },
  );
  const { events } = outside;
  const follow = () => outside.follow();
  return { people, events, outside, shared, follow };
}

/** The servers that cannot be used at this moment, by what they keep. */
const away = new Map<string, AppError>();

/** Says when a server goes away and when it is back. */
function awayTeller(what: string) {
  return (reason: AppError | null) => {
    if (reason?.message === away.get(what)?.message) return;
    if (reason === null) {
      away.delete(what);
      log("info", `${what} can be reached again`);
    } else {
      away.set(what, reason);
      log("warn", reason.message);
    }
    const [first] = away.values();
    report({ type: "away", reason: first ? { message: first.message, hint: first.hint ?? "" } : null });
  };
}

/** Which of the fronts loads events has changed: the next process is made for what this one is now. */
function beginAnew(): never {
  const message: Report = { type: "takes_over" };
  // Written before the end of the process, unlike what a stream holds.
  writeSync(1, `${JSON.stringify(message)}\n`);
  process.exit(0);
}

function once<Value>(make: () => Value): () => Value {
  let made: { value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

async function stop(engine: Engine, timeoutMs: number): Promise<void> {
  const { pipeline, people, server, kept, shared } = engine;
  await kept.rest();
  if (shared === undefined || shared.isLoader) await pipeline.drain(timeoutMs);
  await shared?.stop((lane) => pipeline.cursor(lane));
  await server.stop();
  people.db.$client.close();
  await shared?.close();
  await kept.close();
  process.exit(0);
}

function isDamage(error: unknown): boolean {
  return !isOutside && openFailureOf(error, use) === "file_broken";
}

/** What is damaged cannot be made again without a person: what is whole can be read until then, and events wait. */
function stopLoading(error: unknown): void {
  if (!isLimping || !isDamage(error)) die(error);
  const message = "A damaged part of the event store hinders loading; new events wait in the journal.";
  const hint = "Stop Flagkeep and run `flagkeep doctor`, which says what can be made again.";
  report({ type: "trouble", message, hint, isStopped: false });
  log("error", message, { error: String(error) });
}

/** What to do about an end of the engine that is no damage. */
function hintOf(error: unknown): string {
  const text = String(error);
  if (/no space left|disk is full|disk quota|SQLITE_FULL|ENOSPC/i.test(text))
    return "Free disk space; it goes on by itself.";
  if (/permission denied|read-only|EACCES|EROFS/i.test(text))
    return "Mend the permissions of the data directory.";
  if (/out of memory|allocate/i.test(text)) return "Give it more with --duckdb-memory-limit.";
  return "It is started again by itself; when this stays, see the log and `flagkeep doctor`.";
}

function die(error: unknown): never {
  if (error instanceof DataFromNewerVersion) {
    report({ type: "refused", message: error.message, hint: error.hint });
    process.exit(1);
  }
  if (error instanceof OperatorNeeded) {
    report({ type: "trouble", message: error.message, hint: error.hint, isStopped: true });
    process.exit(1);
  }
  if (dataDir !== undefined && !isLimping && isDamage(error)) recovery.markDamaged(dataDir, error);
  report({
    type: "failed",
    message: `The event store had to be closed: ${firstLine(error)}`,
    hint: hintOf(error),
    isDoubtful: isDoubtful(error),
  });
  log("error", "the engine cannot go on", {
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
  process.exit(1);
}
