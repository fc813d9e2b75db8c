/**
 * The engine: the child process that owns DuckDB and the person store. Commands arrive on standard input; when it
 * closes, the engine exits. An error that it cannot recover from (DuckDB becomes unusable when the disk is full) ends
 * the process, and the server process starts another one.
 */

import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { StoreMemory } from "../events/duckdb/database.ts";
import { releaseLinkerTables, setNativeFolder } from "../events/duckdb/native-folder.ts";
import { isInvalidated } from "../events/duckdb/open-error.ts";
import { SegmentArchive } from "../journal/archive-writer.ts";
import { loadableBytes, systemDisk } from "../journal/disk.ts";
import { getBatch, type JournalBatch, type SegmentBatch } from "../journal/reader.ts";
import { PeriodicTasks } from "../lib/concurrency.ts";
import { firstLine } from "../lib/errors.ts";
import {
  defaultBatchBytes,
  defaultStepBytes,
  personCacheBytesMax,
  privateBytes,
  type StepBytes,
} from "../lib/memory-budget.ts";
import { lowerProcessPriority } from "../lib/operating-system.ts";
import type { ClickHouseAddress } from "../lib/store-urls.ts";
import { nowMicros } from "../lib/time.ts";
import { acquireEngineLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { DefinitionRecorder } from "../persons/event-definitions.ts";
import { closePersons } from "../persons/open.ts";
import { sqlitePersonWriter } from "../persons/person-writer.ts";
import { SqlitePersonReader } from "../persons/sqlite-person-reader.ts";
import { RpcServer } from "../rpc/server.ts";
import { duckdbBackend, type EventBackend } from "./backend.ts";
import type { ClickHouseBackend } from "./clickhouse-backend.ts";
import { ColumnMaterializer } from "./column-materializer.ts";
import { FatalErrorHandler } from "./fatal-errors.ts";
import { type Command, type EngineStart, engineSocketName, readMessages } from "./messages.ts";
import { pinnedProperties } from "./pinned-properties.ts";
import { type BatchStore, type Pause, Pipeline } from "./pipeline/pipeline.ts";
import { queryHandlers } from "./queries.ts";
import { log, report, reportSync } from "./report.ts";
import { type CancelReason, RunningQueries } from "./running-queries.ts";
import { SlowQueries } from "./slow-queries.ts";
import { openStores, type StoreRecovery } from "./stores.ts";

const spikeTickMs = 5_000;
/** Interval at which the replicas of persons are updated; queries that need them update them first. */
const mirrorIntervalMs = 5_000;
const aliveIntervalMs = 1_000;
const memoryIntervalMs = 10_000;
/** Delay after opening the event store until all startup code has run. */
const settledMs = 2_000;
/** Short steps, so that the lease is renewed between them. */
const clusterStepBytes: StepBytes = { held: 8 * 1024 * 1024, staged: 8 * 1024 * 1024 };

/** Runs the engine until its server process exits or sends `stop`; ends the process. */
export async function runEngine(recovery: StoreRecovery): Promise<never> {
  // The server process has exited; the next engine loads what is not committed.
  process.stdout.on("error", () => process.exit(0));
  let engine: Promise<Engine> | undefined;
  let die: FatalErrorHandler["die"] | undefined;
  // Signals reach the whole process group; the server process decides when the engine exits.
  process.on("SIGINT", () => undefined);
  process.on("SIGTERM", () => undefined);
  let isShared = false;
  await readMessages<Command>(Bun.stdin.stream(), (command) => {
    if (command.type === "start") {
      isShared = command.start.cluster !== null;
      const fatalErrors = new FatalErrorHandler(command.start, recovery.markCorrupt);
      die = fatalErrors.die;
      engine = startEngine(command.start, recovery, fatalErrors).catch(die);
    }
    if (command.type === "segments")
      void engine?.then(({ pipeline }) => pipeline.offer(command.segments.map(getBatch)));
    if (command.type === "stop") void engine?.then((started) => stop(started, command.timeoutMs)).catch(die);
  });
  // An engine that is still starting exits as well, before it changes the stores.
  if (isShared) await (await engine)?.shared?.release();
  process.exit(0);
}

type Engine = Awaited<ReturnType<typeof startEngine>>;

async function startEngine(start: EngineStart, recovery: StoreRecovery, fatalErrors: FatalErrorHandler) {
  // Not in a cluster: other nodes presume an engine dead that is too slow to renew its lease.
  if (start.cluster === null) lowerProcessPriority();
  setInterval(() => report({ type: "alive" }), aliveIntervalMs);
  const dataPaths = paths(start.dataDir);
  // Wait for the engine of a killed server process: the following steps would move files that it has open.
  if (!existsSync(dataPaths.engine)) mkdirSync(dataPaths.engine, { recursive: true, mode: 0o700 });
  await acquireEngineLock(dataPaths.engine, start.dataDir, () =>
    log("info", "waiting for the previous engine to exit"),
  );
  setNativeFolder(dataPaths.native);
  // Emptied, not recreated: a full disk may not have space for a folder.
  if (!existsSync(dataPaths.work)) mkdirSync(dataPaths.work, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(dataPaths.work))
    rmSync(join(dataPaths.work, name), { recursive: true, force: true });
  const space = () => systemDisk.space(start.dataDir);
  if (start.doubt !== "") recovery.markCorrupt(start.dataDir, start.doubt);
  const opened =
    start.eventsAt === null
      ? await openStores(start, recovery, fatalErrors)
      : await openExternalStore(start, start.eventsAt, fatalErrors);
  const { people, events, follow } = opened;
  const shared = "shared" in opened ? opened.shared : undefined;
  /** In a cluster, one engine loads events or all do, and one replicates persons. */
  const isLoader = shared === undefined || shared.isLoader;
  const isCoordinator = shared === undefined || shared.isCoordinator;
  fatalErrors.use = "reading";
  let loadedAt = performance.now();
  const archive = new SegmentArchive(
    {
      ...start.archive,
      folder: dataPaths.archive,
      quarantineFolder: dataPaths.quarantine,
      waitingBytes: () => {
        const { realtime, historical } = pipeline.lag();
        return realtime.bytes + historical.bytes;
      },
      lastLoadedAt: () => loadedAt,
      // As many CPUs as queries may use, which is one less than there are.
      hasThread: start.threads > 1 && start.memory === null,
    },
    {
      onReleased: (lane, lastSeq) => report({ type: "released", lane, lastSeq }),
      onGivenUp: ({ lane, first, last, reason }) =>
        log("warn", "pruned archived events that no backup covers; create backups more often", {
          lane,
          first,
          last,
          reason,
        }),
      onError: (error) => log("warn", "failed to write the archive", { error: String(error) }),
    },
  );
  const register = new DefinitionRecorder(people.db);
  let areNamesComplete = true;
  const storeNames = (work: () => void) => {
    try {
      work();
    } catch (error) {
      areNamesComplete = false;
      fatalErrors.reportCorrupt(error);
      log("warn", "failed to store event and property definitions", { error: String(error) });
    }
  };
  let pause: Pause | null = null;
  const pipeline: Pipeline = new Pipeline(
    shared?.around(people) ?? people,
    events,
    shared === undefined ? storedIn(archive) : storedElsewhere,
    {
      stepBytes: shared === undefined ? (start.memory?.stepBytes ?? defaultStepBytes) : clusterStepBytes,
      portionBytes: start.memory?.portionBytes ?? defaultBatchBytes,
      bulkPauseMs: 300,
      checkpointBytes: 128 * 1024 * 1024,
      checkpointIntervalMs: 30_000,
      workFolder: dataPaths.quarantine,
      space,
    },
    {
      onApplied: (applied) => {
        loadedAt = performance.now();
        report({ type: "applied", applied });
        storeNames(() => register.store());
      },
      onFlagUsage: (usage) => report({ type: "flag_usage", usage }),
      onItems: (items) => storeNames(() => register.collect(items)),
      onSpikes: (spikes) => report({ type: "spikes", spikes }),
      onCorruption: (error) => log("error", error.message, { code: (error as { code?: string }).code }),
      onFatal: fatalErrors.stopLoading,
      onPaused: (now) => {
        if (now === null && pause === null) return;
        if (pause === null) log("warn", "loading paused: not enough disk space", { ...now });
        else if (now === null) log("info", "loading resumed: enough disk space");
        pause = now;
        report({ type: "paused", pause });
      },
    },
  );
  const hasSpace = async () => loadableBytes((await space()).freeBytes) > 0;
  const chores = new PeriodicTasks(fatalErrors.dieUnlessCorrupt);
  chores.every(spikeTickMs, async () => {
    if (!isLoader) return;
    // With a backlog the newest events are unknown, and a spike would be closed too early.
    if (pipeline.lag().realtime.segments > 0 || pause !== null) return;
    if (isCoordinator) await shared?.rows?.sweep(nowMicros());
    const tick = () => people.tick(nowMicros());
    const spikes = shared === undefined ? tick() : ((await shared.changeIfAvailable(tick)) ?? []);
    if (spikes.length > 0) report({ type: "spikes", spikes });
  });
  chores.every(mirrorIntervalMs, async () => {
    if (!isLoader) return;
    if (shared === undefined) void archive.tidy();
    if (pipeline.lag().realtime.segments > 0) return;
    if (isCoordinator) await follow();
    pipeline.tidy();
  });
  const eventStore =
    "outside" in opened
      ? runExternal(opened.outside, fatalErrors)
      : runDuckdb(start, opened, { pipeline, hasSpace, fatalErrors });
  const server = new RpcServer(engineSocketName, (error, name) => {
    log("error", "query failed", { query: name, error: String(error) });
    fatalErrors.reportCorrupt(error);
    if (fatalErrors.isRepairable(error)) fatalErrors.die(error);
  });
  const handlers = queryHandlers({
    backend: eventStore.backend,
    persons: shared?.rows?.reader ?? new SqlitePersonReader(people.db),
    personWriter:
      shared?.rows?.writer ??
      sqlitePersonWriter(people.db, async (run) => (shared === undefined ? run() : await shared.change(run))),
    queryTimeoutMs: start.queryTimeoutMs,
    isSuspect: (projectId) => start.suspects.includes(projectId),
    hurry: () => pipeline.hurry(),
    // In a cluster, another process records the names.
    absentProperties: (projectId, names) =>
      shared === undefined && areNamesComplete ? register.absentProperties(projectId, names) : [],
    onStatement: (projectId, change) => report({ type: "statement", projectId, change }),
  });
  server.listen(new SlowQueries().timed(handlers));
  const reportMemory = async () => {
    const { cached: store_cache, used: store_work } = await eventStore.memory();
    // `heapUsed` includes external memory held by heap objects.
    const { heapUsed } = process.memoryUsage();
    report({
      type: "memory",
      memory: { own: privateBytes(), heap: heapUsed, store_cache, store_work },
    });
  };
  chores.every(memoryIntervalMs, () => reportMemory().catch(() => undefined));
  report({
    type: "ready",
    cursors: { realtime: pipeline.cursor("realtime"), historical: pipeline.cursor("historical") },
  });
  await shared?.start(
    {
      offer: (batches) => pipeline.offer(batches),
      waitingBytes: (lane) => pipeline.lag()[lane].bytes,
      isIdle: () => pipeline.isIdle,
      discard: () => pipeline.discard(),
      settle: () => pipeline.settle(),
      reload: () => storeNames(() => register.reload()),
    },
    (lane) => pipeline.cursor(lane),
  );
  return { pipeline, people, server, eventStore, shared, chores };
}

/** Imported on demand: the clients of ClickHouse and PostgreSQL would use memory for nothing. */
async function openExternalStore(
  start: EngineStart,
  address: ClickHouseAddress,
  fatalErrors: FatalErrorHandler,
) {
  const outside = await import("./external-store.ts");
  return await outside.openExternalStore(start, address, fatalErrors);
}

/** With a journal in segments, every batch is a segment. */
const storedIn = (archive: SegmentArchive): BatchStore<JournalBatch> => ({
  keep: (batches) => archive.keep(batches as readonly SegmentBatch[]),
  idle: () => archive.idle(),
});

/** With a journal in PostgreSQL, its reader deletes loaded blocks. */
const storedElsewhere: BatchStore<JournalBatch> = { keep: () => undefined, idle: async () => undefined };

/** A running event backend. */
interface EventStoreUse {
  backend: EventBackend;
  /** Memory of this process used by the event store. */
  memory(): Promise<StoreMemory>;
  /** Stops background work. */
  rest(): Promise<void>;
  close(): Promise<void>;
}

type OpenedDuckdb = Awaited<ReturnType<typeof openStores>>;

function runDuckdb(
  start: EngineStart,
  { database, people, events: loader, mirror }: OpenedDuckdb,
  {
    pipeline,
    hasSpace,
    fatalErrors,
  }: { pipeline: Pipeline; hasSpace: () => Promise<boolean>; fatalErrors: FatalErrorHandler },
): EventStoreUse {
  mirror.hasSpace = hasSpace;
  const queries = new RunningQueries(database, {
    memoryLimitBytes: start.memoryLimitBytes,
    spillLimitBytes: start.spillLimitBytes,
    loadingBytesMax: start.memory?.personCacheBytes ?? personCacheBytesMax.writer,
    ...(start.memory === null
      ? {}
      : { residentBytesMax: start.memory.privateBytesMax, residentBytes: () => privateBytes() }),
    onStuck: replaceEngine,
    onError: (error) => {
      // Corruption is found when it is read; rebuilding the file fixes it.
      if (isInvalidated(error) || fatalErrors.isRepairable(error)) fatalErrors.die(error);
    },
  });
  loader.budget = queries;
  setTimeout(releaseLinkerTables, settledMs).unref();
  const properties = new ColumnMaterializer(
    database,
    loader,
    {
      columnsMax: start.propertyColumnsMax,
      pinned: () => pinnedProperties(people.db),
      queryTimeoutMs: start.queryTimeoutMs,
      isBusy: () =>
        queries.isBusy || pipeline.lag().realtime.segments + pipeline.lag().historical.segments > 0,
      hasSpace,
    },
    {
      onChange: (promoted) => report({ type: "properties", promoted }),
      onError: (error) => {
        if (isInvalidated(error) || fatalErrors.isRepairable(error)) fatalErrors.die(error);
        log("info", "failed to materialize property columns; retrying later", { error: firstLine(error) });
      },
    },
  );
  const backend = duckdbBackend({
    loader,
    mirror,
    queries,
    people: people.db,
    resultBytesMax: start.resultBytesMax,
    onProperties: (names) => properties.recordUse(names),
  });
  return {
    backend,
    memory: () => database.memory(),
    rest: () => properties.stop(),
    close: async () => database.close(),
  };
}

/** Loading waits while the ClickHouse server is unavailable: events stay in the journal. */
function runExternal(outside: ClickHouseBackend, fatalErrors: FatalErrorHandler): EventStoreUse {
  outside.open().catch(fatalErrors.die);
  return {
    backend: outside,
    memory: async () => ({ cached: 0, used: 0, computing: 0, parts: {} }),
    rest: async () => undefined,
    close: () => outside.close(),
  };
}

/** Kills this process, to be replaced: acknowledged events are in the journal, committed ones in the stores. */
function replaceEngine(reason: CancelReason): never {
  try {
    reportSync({ type: "stuck", reason });
  } finally {
    process.kill(process.pid, "SIGKILL");
  }
  throw new Error(reason);
}

async function stop(engine: Engine, timeoutMs: number): Promise<void> {
  const { pipeline, people, server, eventStore, shared, chores } = engine;
  const end = performance.now() + timeoutMs;
  await eventStore.rest();
  await shared?.rest(timeoutMs);
  if (shared === undefined || shared.isLoader) await pipeline.drain(Math.max(0, end - performance.now()));
  await shared?.stop((lane) => pipeline.cursor(lane), end);
  await server.stop();
  chores.stop();
  closePersons(people.db);
  await shared?.close();
  await eventStore.close();
  process.exit(0);
}
