/**
 * Runs queries on separate connections and cancels those over a limit or without a waiting client. DuckDB checks for
 * interrupts only between steps, and one call can take minutes, or gigabytes outside its limit: if a query does not
 * stop within a second, the engine is killed and replaced. The journal keeps acknowledged events.
 */

import type { DuckDBConnection } from "@duckdb/node-api";
import type { EventDatabase, StoreMemory } from "../events/duckdb/database.ts";
import { duckDbMessage, findShortage, isOutOfMemory, type Shortage } from "../events/duckdb/open-error.ts";
import { AppError } from "../lib/errors.ts";
import { residentBytes } from "../lib/memory-budget.ts";

const MiB = 1024 * 1024;

/** The query was cancelled at the limit of the setting `query-timeout`. */
export class QueryTimeoutError extends AppError {
  readonly code = "query_timeout";
  override readonly hint = "Narrow the date range or raise --query-timeout.";
  constructor() {
    super("Query exceeded the time limit and was cancelled.");
  }
}

/** The query was cancelled because it exceeded the memory that all queries share, or that of temporary files. */
export class QueryMemoryExceededError extends AppError {
  readonly code = "query_memory";
  /**
   * @param limitBytes omitted if the limit is not Flagkeep's
   * @param cause what used the most memory
   */
  constructor(limitBytes?: number, cause?: MemoryCause) {
    super(
      limitBytes === undefined
        ? "Query exceeded the memory limit and was cancelled. Narrow the date range."
        : `Query exceeded the memory limit (${toMiB(limitBytes)}) and was cancelled${describeCause(cause)} Narrow the date range or raise --duckdb-memory-limit.`,
    );
  }
}

/** The query was cancelled because its temporary files reached their limit. */
class QuerySpillExceededError extends AppError {
  readonly code = "query_memory";
  constructor(limitBytes: number, cause?: MemoryCause) {
    super(
      `Query exceeded the limit of temporary files (${toMiB(limitBytes)}) and was cancelled${describeCause(cause)} Narrow the date range or raise --duckdb-spill-limit.`,
    );
  }
}

/** The query was cancelled because the disk of its temporary files is full. */
class QueryDiskFullError extends AppError {
  readonly code = "query_memory";
  override readonly hint = "Free disk space in the data directory.";
  constructor() {
    super("The disk is full: the query's temporary files could not be written. Narrow the date range.");
  }
}

/** The part of a query that used the most memory. */
export interface MemoryCause {
  part: string;
  bytes: number;
}

const toMiB = (bytes: number) => `${Math.round(bytes / MiB)} MiB`;

function describeCause(cause: MemoryCause | undefined): string {
  return cause === undefined ? "." : `: most of it is ${cause.part} (${toMiB(cause.bytes)}).`;
}

/** Why a query is cancelled: time limit, memory limit, or client disconnect. */
export type CancelReason = "time" | "memory" | "gone";

export interface RunOptions {
  /** Aborted when the client disconnects. */
  signal?: AbortSignal;
  /** Deadline by `performance.now()`, counted from when the query was received; default: none. */
  endsAt?: number;
  /** Written by a user: cancelled first when memory is short. */
  isForeign?: boolean;
}

export interface RunningQueriesOptions {
  memoryLimitBytes: number;
  /** Limit of DuckDB's temporary files, for the error message; default: as above. */
  spillLimitBytes?: number;
  /** Queries are cancelled above this memory of the process; default: only DuckDB's limit applies. */
  residentBytesMax?: number;
  /** A query did not stop: the engine has to be replaced. */
  onStuck: (reason: CancelReason) => void;
  /** Receives every error of a query, before the caller does. */
  onError?: (error: unknown) => void;
  /** Memory of the process; default: its resident memory. */
  residentBytes?: () => number;
  /** Memory of JavaScript objects, which statements do not use; default: that of this process. */
  heapBytes?: () => number;
  /** Memory outside of both that loading may take, such as the page cache of SQLite; default: none. */
  loadingBytesMax?: number;
}

const tickMs = 20;
/** How long a query may run after it was cancelled; the rest of a second is for killing the engine. */
const stopMs = 700;
/** Resident memory of the process in addition to DuckDB's limit. */
const overheadBytes = 320 * MiB;
/** Memory a query may always use in addition to what was resident at its start. */
const growthBytes = 256 * MiB;
/** The engine is killed immediately this far above the limit at which queries are cancelled. */
const emergencyBytes = 256 * MiB;
/** A query does not wait for memory if resident memory plus `growthBytes` is below DuckDB's limit plus this. */
const defaultBytes = 640 * MiB;
/** DuckDB's memory is measured when resident memory comes this close to the limit. */
const measureAheadBytes = 64 * MiB;
/** How often the memory of statements is measured, to name what is too large. */
const measureEveryMs = 50;
/** DuckDB's tags of working memory, as users know them. */
const memoryParts: Readonly<Record<string, string>> = {
  HASH_TABLE: "hash tables of GROUP BY, DISTINCT and joins",
  ORDER_BY: "sorted rows of ORDER BY and window functions",
  WINDOW: "rows of window functions",
  COLUMN_DATA: "intermediate rows",
  ALLOCATOR: "lists, strings and values collected by aggregates",
};
const loadAttempts = 3;
/** How long after a query its memory is released to the system; the next query waits for it. */
const settleMs = 2_000;

interface Running {
  connection: DuckDBConnection;
  options: RunOptions;
  stop?: { reason: CancelReason; at: number };
  /** What used the most memory so far. */
  cause?: MemoryCause;
}

/**
 * One per engine, because its memory limits apply to the whole process. A query that does not stop is reported to
 * `onStuck`, which has to end the process.
 */
export class RunningQueries {
  private readonly running = new Set<Running>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private softBytes = 0;
  private loading = 0;
  /** Whether events were loaded since the first running statement started. */
  private hasLoaded = false;
  private isMeasuring = false;
  private measuredAt = 0;
  /** End of the last user query. */
  private lastEnd = Number.NEGATIVE_INFINITY;
  /** Resident memory when a user query last started without others. */
  private residentBefore = 0;
  /** DuckDB's memory at that time, and at the last measurement. */
  private memoryBefore: StoreMemory = { cached: 0, used: 0, computing: 0, parts: {} };
  private memory = this.memoryBefore;
  private heapBefore = 0;

  constructor(
    private readonly database: EventDatabase,
    private readonly options: RunningQueriesOptions,
  ) {}

  /**
   * Runs a query.
   * @throws {QueryTimeoutError} @throws {QueryMemoryExceededError} @throws the abort reason of the signal
   */
  async run<Result>(
    query: (connection: DuckDBConnection) => Promise<Result>,
    options: RunOptions = {},
  ): Promise<Result> {
    options.signal?.throwIfAborted();
    if (options.endsAt !== undefined && performance.now() >= options.endsAt) throw new QueryTimeoutError();
    if (options.isForeign) await this.settled();
    const before = options.isForeign && !this.hasForeign ? await this.findMemory() : undefined;
    const running: Running = { connection: await this.database.connect(), options };
    if (before !== undefined && !this.hasForeign) this.memoryBefore = this.memory = before;
    this.add(running);
    try {
      const result = await query(running.connection);
      // A cancelled stream ends without an error.
      if (running.stop !== undefined) throw this.getCancelReason(running);
      return result;
    } catch (error) {
      const reason = this.getCancelReason(running);
      if (reason === undefined) this.options.onError?.(error);
      const shortage = reason === undefined ? findShortage(error) : undefined;
      if (shortage !== undefined) throw this.shortageError(shortage, error, running.cause);
      throw reason ?? error;
    } finally {
      this.running.delete(running);
      running.connection.closeSync();
      if (options.isForeign) this.lastEnd = performance.now();
    }
  }

  /**
   * Runs work that must not fail because queries use the memory: cancels user queries and retries.
   * @param work has no side effects if it throws
   */
  async loadWithinBudget<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      this.loading += 1;
      this.hasLoaded = true;
      try {
        return await work();
      } catch (error) {
        if (attempt === loadAttempts || !isOutOfMemory(error)) throw error;
        await this.stopForeign();
      } finally {
        this.loading -= 1;
      }
    }
  }

  /** Whether a query is running. */
  get isBusy(): boolean {
    return this.running.size > 0;
  }

  private get hasForeign(): boolean {
    return [...this.running].some(({ options }) => options.isForeign);
  }

  private add(running: Running): void {
    if (running.options.isForeign && !this.hasForeign) this.startWatch();
    this.running.add(running);
    this.timer ??= setInterval(() => this.tick(), tickMs);
  }

  /**
   * Waits for memory that a previous query is still releasing, so that it is not attributed to the next one. Memory
   * used without any query, such as the store's cache, is not waited for.
   */
  private async settled(): Promise<void> {
    const until = this.lastEnd + settleMs;
    const smallLimit = this.options.memoryLimitBytes + defaultBytes - growthBytes;
    const highest = Math.max(smallLimit, this.residentBefore);
    while (this.residentBytes() > highest && performance.now() < until) await Bun.sleep(tickMs);
  }

  private startWatch(): void {
    const limit = this.options.memoryLimitBytes + overheadBytes;
    let resident = this.residentBytes();
    const { memoryLimitBytes, residentBytesMax = Number.POSITIVE_INFINITY } = this.options;
    if (resident + growthBytes > Math.min(limit, residentBytesMax)) {
      // Most of it is garbage of earlier work.
      Bun.gc(true);
      resident = this.residentBytes();
    }
    this.residentBefore = resident;
    // Memory used before, such as by loading, is not attributed to statements (contract, third round C7).
    const allowed = Math.max(limit, resident + Math.max(growthBytes, memoryLimitBytes));
    this.softBytes = Math.min(allowed, residentBytesMax);
    this.heapBefore = this.heapBytes();
    this.hasLoaded = this.loading > 0;
    this.measuredAt = performance.now();
  }

  /**
   * Resident memory above which statements are cancelled. What caches and loading have taken since the first of them
   * started is not attributed to statements.
   */
  private get limitBytes(): number {
    const { residentBytesMax = Number.POSITIVE_INFINITY, loadingBytesMax = 0 } = this.options;
    const { memory, memoryBefore: before } = this;
    const cached = Math.max(0, memory.cached - before.cached);
    const stored = Math.max(0, memory.used - memory.computing - (before.used - before.computing));
    const loading = this.hasLoaded ? loadingBytesMax + Math.max(0, this.heapBytes() - this.heapBefore) : 0;
    return Math.min(this.softBytes + cached + stored + loading, residentBytesMax);
  }

  private tick(): void {
    if (this.running.size === 0) {
      clearInterval(this.timer);
      this.timer = undefined;
      return;
    }
    const now = performance.now();
    this.watchMemory();
    for (const running of this.running) {
      const { signal, endsAt } = running.options;
      if (signal?.aborted) this.stop(running, "gone", now);
      else if (endsAt !== undefined && now > endsAt) this.stop(running, "time", now);
      if (running.stop === undefined) continue;
      // On every tick: between two statements of a query an interrupt has no effect.
      running.connection.interrupt();
      if (now - running.stop.at > stopMs) this.options.onStuck(running.stop.reason);
    }
  }

  private watchMemory(): void {
    const foreign = [...this.running].filter(({ options }) => options.isForeign);
    if (foreign.length === 0) return;
    const resident = this.residentBytes();
    const now = performance.now();
    const limit = this.limitBytes;
    if (resident > limit) for (const running of foreign) this.stop(running, "memory", now);
    const { residentBytesMax = Number.POSITIVE_INFINITY } = this.options;
    if (resident > limit + Math.min(emergencyBytes, residentBytesMax / 4)) this.options.onStuck("memory");
    const isClose = resident > limit - measureAheadBytes;
    if (isClose || now - this.measuredAt > measureEveryMs) void this.measure();
  }

  private async measure(): Promise<void> {
    if (this.isMeasuring) return;
    this.isMeasuring = true;
    const memory = await this.findMemory();
    this.isMeasuring = false;
    this.measuredAt = performance.now();
    if (memory === undefined) return;
    this.memory = memory;
    const cause = this.largestPart();
    for (const running of this.running) if (cause.bytes > (running.cause?.bytes ?? 0)) running.cause = cause;
  }

  /** DuckDB's memory. The measurement needs some itself: if it fails, the caller keeps the previous figures. */
  private async findMemory(): Promise<StoreMemory | undefined> {
    return await this.database.memory().catch(() => undefined);
  }

  private largestPart(): MemoryCause {
    const { memory, memoryBefore: before } = this;
    const parts = Object.entries(memory.parts).map(([tag, bytes]) => {
      const part = memoryParts[tag] ?? "other working memory of the event store";
      return { part, bytes: bytes - (before.parts[tag] ?? 0) };
    });
    const grown = this.residentBytes() - this.residentBefore;
    const unmanaged = grown - (memory.cached - before.cached) - (memory.used - before.used);
    parts.push({ part: "long values and results of functions", bytes: unmanaged });
    return parts.reduce((largest, part) => (part.bytes > largest.bytes ? part : largest));
  }

  private async stopForeign(): Promise<void> {
    const now = performance.now();
    for (const running of this.running) if (running.options.isForeign) this.stop(running, "memory", now);
    while (this.hasForeign) await Bun.sleep(tickMs);
  }

  private stop(running: Running, reason: CancelReason, at: number): void {
    running.stop ??= { reason, at };
  }

  private getCancelReason({ stop, options, cause }: Running): unknown {
    if (stop?.reason === "time") return new QueryTimeoutError();
    if (stop?.reason === "memory") return new QueryMemoryExceededError(this.options.memoryLimitBytes, cause);
    return stop?.reason === "gone" ? options.signal!.reason : undefined;
  }

  private shortageError(shortage: Shortage, error: unknown, measured: MemoryCause | undefined): AppError {
    if (shortage === "disk") return new QueryDiskFullError();
    const cause = measured ?? getAllocation(error);
    const { memoryLimitBytes, spillLimitBytes } = this.options;
    return spillLimitBytes !== undefined && shortage === "temporary files"
      ? new QuerySpillExceededError(spillLimitBytes, cause)
      : new QueryMemoryExceededError(memoryLimitBytes, cause);
  }

  private heapBytes(): number {
    return this.options.heapBytes?.() ?? process.memoryUsage().heapUsed;
  }

  private residentBytes(): number {
    return this.options.residentBytes?.() ?? residentBytes();
  }
}

/** What DuckDB failed to allocate, for queries that fail before the first measurement. */
function getAllocation(error: unknown): MemoryCause | undefined {
  const [, size, unit] =
    /failed to allocate data of size ([\d.]+) ([KMG])iB/.exec(duckDbMessage(error)) ?? [];
  if (size === undefined) return undefined;
  const bytes = Number(size) * 1024 ** ("KMG".indexOf(unit!) + 1);
  return { part: "one allocation for a string, a list or an aggregate", bytes };
}
