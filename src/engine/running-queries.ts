/**
 * Runs queries on connections of their own and stops those that take too long, too much memory, or that nobody waits for.
 *
 * DuckDB looks at a stop only between two steps, and one function call can be one step for minutes, or take gigabytes that
 * its limit does not count. What does not stop within a second is ended with the whole engine: the front starts another one,
 * and nothing is lost, because the journal is the truth.
 */

import type { DuckDBConnection } from "@duckdb/node-api";
import type { EventDatabase, StoreMemory } from "../events/duckdb/database.ts";
import { AppError } from "../lib/errors.ts";
import { residentBytes } from "../lib/memory-budget.ts";

/** The query was stopped at the limit of the setting `query-timeout`. */
export class QueryTimedOut extends AppError {
  readonly code = "query_timeout";
  override readonly hint = "Ask for less, for example a shorter time range.";
  constructor() {
    super("The query took too long and was stopped.");
  }
}

/** The query was stopped because it took the memory that everybody needs. */
export class QueryTookMemory extends AppError {
  readonly code = "query_memory";
  override readonly hint = "Ask for less, or give Flagkeep more with --duckdb-memory-limit.";
  constructor() {
    super("The query needs more memory than it may have, and was stopped.");
  }
}

/** Why a query is stopped: too long, too much, or nobody waits for it. */
export type StopReason = "time" | "memory" | "gone";

export interface RunOptions {
  /** Aborted when whoever asked has gone. */
  signal?: AbortSignal;
  /** Left out: no limit. When the query was asked for is when its time begins. */
  endsAt?: number;
  /** Somebody else wrote it: it goes when memory is short. */
  isForeign?: boolean;
}

export interface RunningQueriesSettings {
  memoryLimitBytes: number;
  /** Queries are stopped when the process has more; left out: only what DuckDB's limit allows for counts. */
  residentBytesMax?: number;
  /** A query did not stop: the engine has to be replaced. */
  onStuck: (reason: StopReason) => void;
  /** Told of every error of a query, before whoever asked is. */
  onError?: (error: unknown) => void;
  /** Left out: all that the process has resident. */
  residentBytes?: () => number;
}

const MiB = 1024 * 1024;
const tickMs = 20;
/** How long a query may go on after it was told to stop; the rest of a second is for ending the engine. */
const stopMs = 700;
/** Resident memory above DuckDB's limit: what the process has besides. */
const besidesBytes = 320 * MiB;
/** A query may take so much more than was there when it began. */
const growthBytes = 256 * MiB;
/** Above the limit at which queries are stopped, the engine is ended at once. */
const emergencyBytes = 256 * MiB;
/** A query waits no longer for memory to go back when so much above DuckDB's limit is resident. */
const roomyBytes = 640 * MiB;
/** What DuckDB keeps of its file is measured when resident memory comes so close to the limit. */
const measureAheadBytes = 64 * MiB;
/** While events are loaded, queries may not take more of DuckDB's memory. */
const loadingShare = 0.75;
const loadAttempts = 3;
/** So long after a query its memory goes back to the system, and the next one waits for it. */
const settleMs = 2_000;

interface Running {
  connection: DuckDBConnection;
  options: RunOptions;
  stop?: { reason: StopReason; at: number };
}

/**
 * One in an engine: its limits of memory, in bytes, are those of the whole process. A query that does not stop is told to
 * `onStuck`, which has to end the process.
 */
export class RunningQueries {
  private readonly running = new Set<Running>();
  private timer: ReturnType<typeof setInterval> | undefined;
  private softBytes = 0;
  private loading = 0;
  private isMeasuring = false;
  /** When a foreign query was the last to end. */
  private lastEnd = Number.NEGATIVE_INFINITY;
  /** What the process had when a foreign query began last, alone. */
  private residentBefore = 0;
  /** DuckDB's memory at that time, and when it was measured last. */
  private memoryBefore: StoreMemory = { cached: 0, used: 0, computing: 0 };
  private memory = this.memoryBefore;

  constructor(
    private readonly database: EventDatabase,
    private readonly settings: RunningQueriesSettings,
  ) {}

  /**
   * Runs a query.
   *
   * @throws {QueryTimedOut} @throws {QueryTookMemory} @throws the signal's reason.
   */
  async run<Result>(
    query: (connection: DuckDBConnection) => Promise<Result>,
    options: RunOptions = {},
  ): Promise<Result> {
    options.signal?.throwIfAborted();
    if (options.endsAt !== undefined && performance.now() >= options.endsAt) throw new QueryTimedOut();
    if (options.isForeign) await this.settled();
    const before = options.isForeign && !this.hasForeign ? await this.database.memory() : undefined;
    const running: Running = { connection: await this.database.connect(), options };
    if (before !== undefined && !this.hasForeign) this.memoryBefore = this.memory = before;
    this.add(running);
    try {
      const result = await query(running.connection);
      // Rows that are streamed just end when they are stopped.
      if (running.stop !== undefined) throw this.reasonOf(running);
      return result;
    } catch (error) {
      const reason = this.reasonOf(running);
      if (reason === undefined) this.settings.onError?.(error);
      if (reason === undefined && options.isForeign && isOutOfMemory(error)) throw new QueryTookMemory();
      throw reason ?? error;
    } finally {
      this.running.delete(running);
      running.connection.closeSync();
      if (options.isForeign) this.lastEnd = performance.now();
    }
  }

  /**
   * Does what must not fail because a query has taken the memory: then the others' queries are stopped, and it is done
   * again.
   *
   * @param work leaves nothing behind when it throws.
   */
  async loadInRoom<Result>(work: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      this.loading += 1;
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

  /** Whether somebody waits for an answer. */
  get isBusy(): boolean {
    return this.running.size > 0;
  }

  private get hasForeign(): boolean {
    return [...this.running].some(({ options }) => options.isForeign);
  }

  private add(running: Running): void {
    if (running.options.isForeign && !this.hasForeign) this.beginWatch();
    this.running.add(running);
    this.timer ??= setInterval(() => this.tick(), tickMs);
  }

  /**
   * Without this the query would be stopped for what another one has taken and already given back. What the process has
   * without any query, such as the store's cache and what loads events, is not waited for.
   */
  private async settled(): Promise<void> {
    const until = this.lastEnd + settleMs;
    const roomy = this.settings.memoryLimitBytes + roomyBytes - growthBytes;
    const highest = Math.max(roomy, this.residentBefore);
    while (this.residentBytes() > highest && performance.now() < until) await Bun.sleep(tickMs);
  }

  private beginWatch(): void {
    const usual = this.settings.memoryLimitBytes + besidesBytes;
    let resident = this.residentBytes();
    const { memoryLimitBytes, residentBytesMax = Number.POSITIVE_INFINITY } = this.settings;
    if (resident + growthBytes > Math.min(usual, residentBytesMax)) {
      // Most of it is what was read and is not needed any more.
      Bun.gc(true);
      resident = this.residentBytes();
    }
    this.residentBefore = resident;
    // Only what statements take themselves counts, not what loading has left behind (contract, third round C7).
    const allowed = Math.max(usual, resident + Math.max(growthBytes, memoryLimitBytes));
    this.softBytes = Math.min(allowed, residentBytesMax);
  }

  /** Resident memory above which statements are stopped: parts of the file that DuckDB has cached since are not theirs. */
  private get limitBytes(): number {
    const { residentBytesMax = Number.POSITIVE_INFINITY } = this.settings;
    const cached = Math.max(0, this.memory.cached - this.memoryBefore.cached);
    return Math.min(this.softBytes + cached, residentBytesMax);
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
      // Again and again: between two statements of a query there is nothing to be stopped.
      running.connection.interrupt();
      if (now - running.stop.at > stopMs) this.settings.onStuck(running.stop.reason);
    }
  }

  private watchMemory(): void {
    const foreign = [...this.running].filter(({ options }) => options.isForeign);
    if (foreign.length === 0) return;
    const resident = this.residentBytes();
    const now = performance.now();
    const limit = this.limitBytes;
    if (resident > limit) for (const running of foreign) this.stop(running, "memory", now);
    const { residentBytesMax = Number.POSITIVE_INFINITY } = this.settings;
    if (resident > limit + Math.min(emergencyBytes, residentBytesMax / 4)) this.settings.onStuck("memory");
    const isClose = resident > limit - measureAheadBytes;
    if ((this.loading > 0 || isClose) && !this.isMeasuring) void this.measure();
  }

  /** What stays when it cannot be measured: the limits of the last time. */
  private async measure(): Promise<void> {
    this.isMeasuring = true;
    try {
      this.memory = await this.database.memory();
      const taken = this.memory.computing - this.memoryBefore.computing;
      if (this.loading === 0 || taken <= loadingShare * this.settings.memoryLimitBytes) return;
      const now = performance.now();
      for (const running of this.running) if (running.options.isForeign) this.stop(running, "memory", now);
    } finally {
      this.isMeasuring = false;
    }
  }

  private async stopForeign(): Promise<void> {
    const now = performance.now();
    for (const running of this.running) if (running.options.isForeign) this.stop(running, "memory", now);
    while (this.hasForeign) await Bun.sleep(tickMs);
  }

  private stop(running: Running, reason: StopReason, at: number): void {
    running.stop ??= { reason, at };
  }

  private reasonOf({ stop, options }: Running): unknown {
    if (stop?.reason === "time") return new QueryTimedOut();
    if (stop?.reason === "memory") return new QueryTookMemory();
    return stop?.reason === "gone" ? options.signal!.reason : undefined;
  }

  private residentBytes(): number {
    return this.settings.residentBytes?.() ?? residentBytes();
  }
}

/** DuckDB's own limit was reached. */
function isOutOfMemory(error: unknown): boolean {
  const { cause = error } = error instanceof Error ? error : {};
  return /^Error: Out of Memory/.test(String(cause));
}
