/** Supervises the engine: starts it, feeds it sealed segments, and restarts it when it exits. */

import { unlinkSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import type { Subprocess } from "bun";
import type { PendingBytes } from "../journal/disk.ts";
import type { Lane, SealedSegment } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";
import { privateBytes, residentBytes } from "../lib/memory-budget.ts";
import { NonNegativeInt, nullable, strictObject } from "../lib/schema.ts";
import { sleep } from "../lib/time.ts";
import type { Log } from "../log.ts";
import type { EngineState as EngineAsked } from "./client.ts";
import {
  type Command,
  type EngineStart,
  engineSocketName,
  type MemoryUse,
  type Report,
  readMessages,
} from "./messages.ts";
import type { Pause } from "./pipeline/pipeline.ts";
import { CrashGuard, RestartPolicy } from "./restart-policy.ts";
import type { CancelReason } from "./running-queries.ts";

/** As in `status`. */
export const EngineState = strictObject({
  up: Type.Boolean(),
  restarts: NonNegativeInt,
  /** Set while the event store is rebuilt: journal entries applied so far, and in total. */
  rebuilding: nullable(strictObject({ done: NonNegativeInt, total: NonNegativeInt })),
  /** A problem that requires an operator. */
  trouble: nullable(strictObject({ message: Type.String(), hint: Type.String() })),
  /** Materialized properties; queries use a column when `filled` is 1. */
  properties: Type.Array(
    strictObject({ name: Type.String(), filled: Type.Number({ minimum: 0, maximum: 1 }) }),
  ),
});
export type EngineState = Static<typeof EngineState>;

export interface SupervisorCallbacks {
  /** The engine must not open the stores and is not restarted. */
  onRejected?: (reason: EngineDataRejectedError) => void;
  onReport?: (report: Report) => void;
}

/** The engine cannot use this data. */
export class EngineDataRejectedError extends AppError {
  readonly code = "engine_refused";
  constructor(
    message: string,
    override readonly hint: string,
  ) {
    super(message);
  }
}

type Child = Subprocess<"pipe", "pipe", "inherit">;

const watchMs = 250;
const recentMs = 10_000;
/** An engine without reports for this long hangs. */
const silenceMs = 15_000;
/** Limit while the engine opens its stores, which may have to be migrated. */
const startSilenceMs = 600_000;
/** If two checks are further apart, the machine was suspended. */
const sleptMs = 5_000;
/** Maximum memory in addition to DuckDB's limit during a user's statement; the engine itself enforces tighter limits. */
const overheadBytesMax = 1_000 * 1024 * 1024;
/**
 * Maximum growth during a user's statement, in addition to DuckDB's file cache and the statement, each as large as the limit.
 */
const grownBytesMax = 512 * 1024 * 1024;
/** Factor above the limit that the engine itself enforces. */
const memorySlack = 1.35;
/** Thread-pool threads in addition to one per processor: as many as queries can block. */
const queryThreads = 8;
/** Memory size assumed by the engine's garbage collector, which scales heap growth with it. */
const heapBytesDefault = 1024 * 1024 * 1024;
/** Delay of returning freed memory to the system: it is soon reused, and page faults are expensive. */
const purgeDelayMs = 1_000;

/**
 * Keeps one engine running from `run` to `stop`. An engine that exits, hangs or exceeds its memory is replaced after a
 * growing delay and receives unstored segments again. Exits are not thrown but reported by `state`; if an operator has
 * to act first, the engine is not restarted.
 */
export class EngineSupervisor implements EngineAsked {
  private readonly statements = new CrashGuard();
  private readonly watch = setInterval(() => this.check(), watchMs);
  /** Memory of the engine when it started to run statements. */
  private idleBytes = 0;
  private checkedAt = performance.now();
  private lastHeardAt = performance.now();
  private stuck: { reason: CancelReason; at: number } | undefined;
  private child: Child | undefined;
  private isReady = false;
  private rebuilding: EngineState["rebuilding"] = null;
  private properties: EngineState["properties"] = [];
  private problem: EngineState["trouble"] = null;
  private readonly ends = new RestartPolicy();
  /** The event store's server is unavailable. */
  private away: EngineState["trouble"] = null;
  /** Loading is paused because disk space is short. */
  private pause: Pause | null = null;
  private memory: MemoryUse | null = null;
  /** Starting the engine does not help until an operator has acted. */
  private isBlocked = false;
  private stopping = false;
  private restarts = 0;
  private exited: Promise<void> = Promise.resolve();
  private whenReady = Promise.withResolvers<void>();
  private restartTimer: ReturnType<typeof setTimeout> | undefined;
  /** Sealed segments that the journal must retain, oldest first. */
  private pending: SealedSegment[] = [];
  /** Per lane, the last loaded sequence number. */
  private loaded: Record<Lane, number> = { realtime: 0, historical: 0 };

  /** @param command that starts this executable as the engine */
  constructor(
    private readonly command: readonly string[],
    private readonly start: Omit<EngineStart, "suspects" | "doubt">,
    private readonly log: Log,
    private readonly callbacks: SupervisorCallbacks = {},
  ) {
    this.watch.unref();
  }

  /** Starts the engine, which becomes ready later. */
  run(): void {
    if (this.stopping || this.isBlocked) return;
    this.restartTimer = undefined;
    this.ends.started();
    removeIfThere(join(this.start.dataDir, engineSocketName));
    const child = Bun.spawn([...this.command], {
      cwd: this.start.dataDir,
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
      env: {
        ...process.env,
        // Otherwise a few long queries would leave no thread for loading.
        UV_THREADPOOL_SIZE: String(availableParallelism() + queryThreads),
        BUN_JSC_forceRAMSize: String(this.start.memory?.heapBytes ?? heapBytesDefault),
        MIMALLOC_PURGE_DELAY: String(purgeDelayMs),
      },
    });
    this.child = child;
    this.lastHeardAt = performance.now();
    this.problem = null;
    this.send({
      type: "start",
      start: { ...this.start, suspects: this.statements.suspects(), doubt: this.ends.popDoubt() },
    });
    this.exited = this.follow(child);
  }

  /** Prevents the start of an engine until an operator has acted. Call it before `run`. */
  block(problem: NonNullable<EngineState["trouble"]>): void {
    this.problem = problem;
    this.isBlocked = true;
  }

  /** Whether queries can be processed. */
  get ready(): boolean {
    return this.isReady;
  }

  get memoryLimitBytes(): number {
    return this.start.memoryLimitBytes;
  }

  get restartCount(): number {
    return this.restarts;
  }

  get state(): EngineState {
    const { isReady: up, restarts, rebuilding, properties } = this;
    const problem = this.problem ?? this.ends.failure ?? this.away ?? getProblem(this.pause);
    return { up, restarts, rebuilding, trouble: problem, properties };
  }

  /** Memory of the running engine a few seconds ago; null if it has just started. */
  get memoryUse(): MemoryUse | null {
    return this.memory;
  }

  /** Bytes of sealed segments that are not loaded, or loaded but still in the event store's log. */
  debt(): PendingBytes {
    const debt = { unloaded: 0, unwritten: 0 };
    for (const { lane, last, bytes } of this.pending) {
      debt[last > this.loaded[lane] ? "unloaded" : "unwritten"] += bytes;
    }
    return debt;
  }

  /** Sealed entries that are not loaded, per lane. */
  lag(): { entries: Record<Lane, number>; bytes: Record<Lane, number> } {
    const lag = { entries: { realtime: 0, historical: 0 }, bytes: { realtime: 0, historical: 0 } };
    for (const { lane, first, last, bytes } of this.pending) {
      if (last <= this.loaded[lane]) continue;
      lag.entries[lane] += last - first + 1;
      lag.bytes[lane] += bytes;
    }
    return lag;
  }

  async waitUntilReady(ms: number): Promise<boolean> {
    if (this.isReady) return true;
    if (this.stopping || this.isBlocked || this.rebuilding !== null) return false;
    await Promise.race([this.whenReady.promise, sleep(ms)]);
    return this.isReady;
  }

  /** Why the engine was just replaced, if the reason is a query and happened after `askedAt`. */
  getStuckReason(requestedAt: number): CancelReason | undefined {
    const { stuck } = this;
    const isReason = stuck !== undefined && requestedAt < stuck.at && performance.now() - stuck.at < recentMs;
    return isReason ? stuck.reason : undefined;
  }

  async waitUntilEnded(ms: number): Promise<void> {
    if (this.isReady) await Promise.race([this.exited, sleep(ms)]);
  }

  assertStatementsAllowed(projectId: number): void {
    this.statements.assertAllowed(projectId);
  }

  /** Hands sealed segments to the engine, now or when it is ready. */
  offer(segments: readonly SealedSegment[]): void {
    this.pending.push(...segments);
    if (this.isReady) this.send({ type: "segments", segments: [...segments] });
  }

  /** Lets the engine apply pending segments until the timeout, then ends it. */
  async stop(timeoutMs: number): Promise<void> {
    this.stopping = true;
    clearInterval(this.watch);
    clearTimeout(this.restartTimer);
    const child = this.child;
    if (child === undefined) return;
    // Progress of a rebuild is durable; the next start continues it.
    if (this.rebuilding !== null) child.kill("SIGKILL");
    // An engine that is starting receives its segments first.
    await Promise.race([this.whenReady.promise, this.exited, sleep(timeoutMs)]);
    this.send({ type: "stop", timeoutMs });
    // The last batch and the checkpoint take time in addition to loading.
    const killer = setTimeout(() => child.kill("SIGKILL"), timeoutMs + 1_500);
    await this.exited;
    clearTimeout(killer);
  }

  /** Kills the engine immediately. */
  kill(): void {
    this.stopping = true;
    this.child?.kill("SIGKILL");
  }

  /** Replaces an engine that hangs or exceeds the memory that it should enforce itself. */
  private check(): void {
    const now = performance.now();
    const hasSlept = now - this.checkedAt > sleptMs;
    this.checkedAt = now;
    if (hasSlept) this.lastHeardAt = now;
    if (this.child === undefined || this.stopping) return;
    this.ends.check();
    const silence = now - this.lastHeardAt;
    if (silence > (this.isReady ? silenceMs : startSilenceMs)) {
      this.replace("no heartbeat", { silentMs: Math.round(silence) });
    } else if (this.statements.isBusy) {
      const { memory, memoryLimitBytes } = this.start;
      const { pid } = this.child;
      const bytes = memory === null ? residentBytes(pid) : privateBytes(pid);
      const limit = memoryLimitBytes + overheadBytesMax;
      const grown = this.idleBytes + 2 * memoryLimitBytes + grownBytesMax;
      if (bytes > (memory === null ? Math.max(limit, grown) : memory.privateBytesMax * memorySlack))
        this.replace("a query exceeded the memory limit", { bytes });
    }
  }

  private replace(reason: string, facts: Record<string, number>): void {
    this.log.error({ reason, ...facts }, "restarting the engine");
    this.isReady = false;
    if (this.statements.isBusy) this.stuck = { reason: "memory", at: performance.now() };
    this.ends.restartsSoon();
    this.child?.kill("SIGKILL");
  }

  private send(command: Command): void {
    const child = this.child;
    if (child === undefined) return;
    try {
      child.stdin.write(`${JSON.stringify(command)}\n`);
      child.stdin.flush();
    } catch (error) {
      // The engine is exiting; the next one receives everything unstored again.
      this.log.debug({ error: String(error) }, "failed to send a command to the engine");
    }
  }

  private async follow(child: Child): Promise<void> {
    await readMessages<Report>(child.stdout, (report) => this.onReport(report)).catch((error) => {
      this.log.error({ error: String(error) }, "failed to read the engine's reports");
      child.kill("SIGKILL");
    });
    const code = await child.exited;
    // A user's statement may be the cause.
    this.ends.ended(child, this.statements.isBusy);
    this.statements.engineEnded();
    this.isReady = false;
    this.pause = null;
    this.memory = null;
    this.away = null;
    this.whenReady = Promise.withResolvers<void>();
    this.child = undefined;
    this.rebuilding = null;
    if (this.stopping || this.isBlocked) return;
    const restartInMs = this.ends.nextStartInMs();
    if (restartInMs > 0)
      this.log.warn({ code, signal: child.signalCode, restartInMs }, "the engine exited; restarting it");
    this.restarts += 1;
    this.restartTimer = setTimeout(() => this.run(), restartInMs);
  }

  private onReport(report: Report): void {
    this.lastHeardAt = performance.now();
    if (report.type === "stuck") {
      this.log.warn({ reason: report.reason }, "restarting the engine: a query did not stop");
      this.stuck = { reason: report.reason, at: this.lastHeardAt };
      this.ends.restartsSoon();
    } else if (report.type === "changes_role") {
      this.log.info(`restarting the engine: ${report.reason}`);
      this.ends.restartsAtOnce();
    } else if (report.type === "statement") {
      if (!this.statements.isBusy && this.child !== undefined) this.idleBytes = residentBytes(this.child.pid);
      this.statements.count(report.projectId, report.change);
    } else if (report.type === "ready") {
      this.isReady = true;
      this.ends.ready(this.rebuilding !== null);
      this.rebuilding = null;
      this.loaded = report.cursors;
      if (this.pending.length > 0) this.send({ type: "segments", segments: this.pending });
      this.whenReady.resolve();
    } else if (report.type === "refused") {
      this.stopping = true;
      this.callbacks.onRejected?.(new EngineDataRejectedError(report.message, report.hint));
    } else if (report.type === "rebuilding") {
      this.rebuilding = { done: report.done, total: report.total };
    } else if (report.type === "trouble") {
      const { message, hint, isStopped } = report;
      this.problem = { message, hint };
      this.isBlocked = isStopped;
      this.log.error({ hint }, message);
    } else if (report.type === "failed") {
      this.ends.announced(report);
    } else if (report.type === "paused") {
      this.pause = report.pause;
    } else if (report.type === "memory") {
      this.memory = report.memory;
    } else if (report.type === "properties") {
      this.properties = report.promoted;
    } else if (report.type === "away") {
      this.away = report.reason;
    } else if (report.type === "released") {
      this.pending = this.pending.filter(({ lane, last }) => lane !== report.lane || last > report.lastSeq);
    } else if (report.type === "applied") {
      this.loaded[report.applied.lane] = report.applied.lastSeq;
    } else if (report.type === "log") {
      this.log[report.level](report.fields, report.msg);
    }
    this.callbacks.onReport?.(report);
  }
}

function getProblem(pause: Pause | null): EngineState["trouble"] {
  if (pause === null) return null;
  const mib = (bytes: number) => `${Math.floor(bytes / 1024 ** 2)} MiB`;
  return {
    message: `Loading is paused: ${mib(pause.freeBytes)} of disk space are free, ${mib(pause.neededBytes)} are required.`,
    hint: "Free disk space; loading resumes automatically.",
  };
}

function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
