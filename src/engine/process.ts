/**
 * The engine: the child process that owns DuckDB and the identity store.
 *
 * It lives and dies with the front: its commands come over standard input, and when that closes it exits. A fault it
 * cannot mend (DuckDB invalidates itself when the disk is full) ends the process; the front starts it again.
 */

import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { StoreMemory } from "../events/duckdb/database.ts";
import { giveBackLinkerTables } from "../events/duckdb/linker-tables.ts";
import { setNativeFolder } from "../events/duckdb/native-folder.ts";
import { isInvalidated } from "../events/duckdb/open-failure.ts";
import { SegmentArchive } from "../journal/archive-writer.ts";
import { loadableBytes, systemDisk } from "../journal/disk.ts";
import { batchOf, type JournalBatch, type SegmentBatch } from "../journal/reader.ts";
import { Chores } from "../lib/chores.ts";
import type { ClickHouseAddress } from "../lib/clickhouse-address.ts";
import { firstLine } from "../lib/errors.ts";
import { ownBytes, roomyPortionBytes, roomyStepBytes, type StepBytes } from "../lib/memory-budget.ts";
import { putProcessBehind } from "../lib/priority.ts";
import { nowMicros } from "../lib/time.ts";
import { takeEngineLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { NameRegister } from "../people/names.ts";
import { closePeople } from "../people/open.ts";
import { RpcServer } from "../rpc/server.ts";
import { duckdbBackend, type EventBackend } from "./backend.ts";
import type { ClickHouseBackend } from "./clickhouse-backend.ts";
import { Faults } from "./faults.ts";
import { type Command, type EngineStart, engineSocketName, readMessages } from "./messages.ts";
import { type BatchKeeper, type Pause, Pipeline } from "./pipeline/pipeline.ts";
import { PropertyWorker } from "./property-worker.ts";
import { queryHandlers } from "./queries.ts";
import { log, report, reportLast } from "./report.ts";
import { RunningQueries, type StopReason } from "./running-queries.ts";
import { SlowQueries } from "./slow-queries.ts";
import { openStores, type StoreRecovery } from "./stores.ts";

const spikeTickMs = 5_000;
/** The copies of persons follow at this pace by themselves; a query that needs them does not wait for it. */
const mirrorIntervalMs = 5_000;
const aliveIntervalMs = 1_000;
const memoryIntervalMs = 10_000;
/** So long after the event store was opened, what starts call has been called. */
const settledMs = 2_000;
/** Short steps, so that the lease is renewed meanwhile. */
const sharedStepBytes: StepBytes = { held: 8 * 1024 * 1024, staged: 8 * 1024 * 1024 };

/** Runs the engine until its front goes or tells it to stop; ends the process. */
export async function runEngine(recovery: StoreRecovery): Promise<never> {
  // The front is gone; what is not committed is loaded by the next engine.
  process.stdout.on("error", () => process.exit(0));
  let engine: Promise<Engine> | undefined;
  let die: Faults["die"] | undefined;
  // The front's signals reach the whole process group; the front decides when the engine ends.
  process.on("SIGINT", () => undefined);
  process.on("SIGTERM", () => undefined);
  let isShared = false;
  await readMessages<Command>(Bun.stdin.stream(), (command) => {
    if (command.type === "start") {
      isShared = command.start.shared !== null;
      const faults = new Faults(command.start, recovery.markDamaged);
      die = faults.die;
      engine = startEngine(command.start, recovery, faults).catch(die);
    }
    if (command.type === "segments")
      void engine?.then(({ pipeline }) => pipeline.offer(command.segments.map(batchOf)));
    if (command.type === "stop") void engine?.then((started) => stop(started, command.timeoutMs)).catch(die);
  });
  // One that is only starting goes as well, before it does anything to the stores.
  if (isShared) await (await engine)?.shared?.release();
  process.exit(0);
}

type Engine = Awaited<ReturnType<typeof startEngine>>;

async function startEngine(start: EngineStart, recovery: StoreRecovery, faults: Faults) {
  // Where others wait for it to be dead, it must not be the last to get a processor.
  if (start.shared === null) putProcessBehind();
  setInterval(() => report({ type: "alive" }), aliveIntervalMs);
  const place = paths(start.dataDir);
  // The engine of a front that was killed is not always gone yet: what follows would move files that it has open.
  if (!existsSync(place.engine)) mkdirSync(place.engine, { recursive: true, mode: 0o700 });
  await takeEngineLock(place.engine, start.dataDir, () =>
    log("info", "waiting for the engine before this one to end"),
  );
  setNativeFolder(place.native);
  // Emptied, not made anew: a full disk may have no room for a folder.
  if (!existsSync(place.work)) mkdirSync(place.work, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(place.work))
    rmSync(join(place.work, name), { recursive: true, force: true });
  const space = () => systemDisk.space(start.dataDir);
  if (start.doubt !== "") recovery.markDamaged(start.dataDir, start.doubt);
  const opened =
    start.eventsAt === null
      ? await openStores(start, recovery, faults)
      : await openOutside(start, start.eventsAt, faults);
  const { people, events, follow } = opened;
  const shared = "shared" in opened ? opened.shared : undefined;
  /** Of several fronts' engines only one loads events. */
  const isLoader = shared === undefined || shared.isLoader;
  faults.use = "reading";
  let loadedAt = performance.now();
  const archive = new SegmentArchive(
    {
      ...{ ...start.archive, folder: place.archive, quarantineFolder: place.quarantine },
      waitingBytes: () => {
        const { realtime, historical } = pipeline.lag();
        return realtime.bytes + historical.bytes;
      },
      lastLoadedAt: () => loadedAt,
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
      stepBytes: shared === undefined ? (start.memory?.stepBytes ?? roomyStepBytes) : sharedStepBytes,
      portionBytes: start.memory?.portionBytes ?? roomyPortionBytes,
      bulkPauseMs: 300,
      checkpointBytes: 128 * 1024 * 1024,
      checkpointIntervalMs: 30_000,
      workFolder: place.quarantine,
      space,
    },
    {
      onApplied: (applied) => {
        loadedAt = performance.now();
        report({ type: "applied", applied });
        keepNames(() => register.store());
      },
      onFlagUsage: (usage) => report({ type: "flag_usage", usage }),
      onItems: (items) => keepNames(() => register.look(items)),
      onSpikes: (spikes) => report({ type: "spikes", spikes }),
      onDamage: (error) => log("error", error.message, { code: (error as { code?: string }).code }),
      onFatal: faults.stopLoading,
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
  const chores = new Chores(faults.die);
  chores.every(spikeTickMs, async () => {
    if (!isLoader) return;
    // With a backlog the newest events are not known yet, and a spike would be closed too early.
    if (pipeline.lag().realtime.segments > 0 || pause !== null) return;
    const spikes = people.tick(nowMicros());
    if (spikes.length > 0) report({ type: "spikes", spikes });
  });
  chores.every(mirrorIntervalMs, async () => {
    if (!isLoader) return;
    if (shared === undefined) void archive.tidy();
    if (pipeline.lag().realtime.segments > 0) return;
    await follow();
    pipeline.tidy();
  });
  const kept =
    "outside" in opened
      ? runOutside(opened.outside, faults)
      : runDuckdb(start, opened, { pipeline, hasRoom, faults });
  const server = new RpcServer(engineSocketName, (error, name) => {
    log("error", "a query failed", { query: name, error: String(error) });
    if (faults.isMendable(error)) faults.die(error);
  });
  const handlers = queryHandlers({
    backend: kept.backend,
    people: people.db,
    queryTimeoutMs: start.queryTimeoutMs,
    change: async (run) => (shared === undefined ? await run() : await shared.change(run)),
    isSuspect: (projectId) => start.suspects.includes(projectId),
    hurry: () => pipeline.hurry(),
    onStatement: (projectId, change) => report({ type: "statement", projectId, change }),
  });
  server.listen(new SlowQueries().timed(handlers));
  const tellMemory = async () => {
    const { cached: store_cache, used: store_work } = await kept.memory();
    // Memory outside of the heap that objects of the heap hold is counted in it.
    const { heapUsed } = process.memoryUsage();
    report({
      type: "memory",
      memory: { own: ownBytes(), heap: heapUsed, store_cache, store_work },
    });
  };
  chores.every(memoryIntervalMs, () => tellMemory().catch(() => undefined));
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
  return { pipeline, people, server, kept, shared, chores };
}

/** Loaded where events are in a server: elsewhere the clients of ClickHouse and PostgreSQL would be in memory for nothing. */
async function openOutside(start: EngineStart, address: ClickHouseAddress, faults: Faults) {
  const outside = await import("./outside-stores.ts");
  return await outside.openOutside(start, address, faults);
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
  /** What keeping the events takes of this process's memory. */
  memory(): Promise<StoreMemory>;
  /** Ends what goes on by itself. */
  rest(): Promise<void>;
  /** The last call. */
  close(): Promise<void>;
}

type OpenedDuckdb = Awaited<ReturnType<typeof openStores>>;

function runDuckdb(
  start: EngineStart,
  { database, people, events: loader, mirror }: OpenedDuckdb,
  { pipeline, hasRoom, faults }: { pipeline: Pipeline; hasRoom: () => Promise<boolean>; faults: Faults },
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
      if (isInvalidated(error) || faults.isMendable(error)) faults.die(error);
    },
  });
  loader.room = queries;
  setTimeout(giveBackLinkerTables, settledMs).unref();
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
        if (isInvalidated(error) || faults.isMendable(error)) faults.die(error);
        log("info", "columns of properties are worked on later", { error: firstLine(error) });
      },
    },
  );
  const backend = duckdbBackend({
    ...{ loader, mirror, queries, people: people.db },
    resultBytesMax: start.resultBytesMax,
    onProperties: (names) => properties.note(names),
  });
  return {
    backend,
    memory: () => database.memory(),
    rest: () => properties.stop(),
    close: async () => database.close(),
  };
}

/** Where the server is away the engine works all the same: events wait in the journal. */
function runOutside(outside: ClickHouseBackend, faults: Faults): KeptEvents {
  outside.open().catch(faults.die);
  return {
    backend: outside,
    memory: async () => ({ cached: 0, used: 0, computing: 0 }),
    rest: async () => undefined,
    close: () => outside.close(),
  };
}

/** Ends this process for another one: what was acknowledged is in the journal, what was committed in the stores. */
function replaceEngine(reason: StopReason): never {
  try {
    reportLast({ type: "stuck", reason });
  } finally {
    process.kill(process.pid, "SIGKILL");
  }
  throw new Error(reason);
}

async function stop(engine: Engine, timeoutMs: number): Promise<void> {
  const { pipeline, people, server, kept, shared, chores } = engine;
  await kept.rest();
  if (shared === undefined || shared.isLoader) await pipeline.drain(timeoutMs);
  await shared?.stop((lane) => pipeline.cursor(lane));
  await server.stop();
  chores.stop();
  closePeople(people.db);
  await shared?.close();
  await kept.close();
  process.exit(0);
}
