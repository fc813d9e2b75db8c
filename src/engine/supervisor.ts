/** The front's side of the engine: starts it, feeds it sealed segments, starts it again when it dies. */

import { unlinkSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { type Static, Type } from "@sinclair/typebox";
import type { Subprocess } from "bun";
import type { PendingBytes } from "../journal/disk.ts";
import type { Lane, SealedSegment } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";
import { ownBytes, residentBytes } from "../lib/memory-budget.ts";
import { Count, exactly, orNull } from "../lib/schema.ts";
import { lapse } from "../lib/time.ts";
import type { Log } from "../log.ts";
import type { EngineState as EngineAsked } from "./client.ts";
import { EngineEnds } from "./engine-ends.ts";
import {
  type Command,
  type EngineStart,
  engineSocketName,
  type MemoryUse,
  type Report,
  readMessages,
} from "./messages.ts";
import type { Pause } from "./pipeline/pipeline.ts";
import type { StopReason } from "./running-queries.ts";
import { StatementGuard } from "./statement-guard.ts";

/** As `status` shows it. */
export const EngineState = exactly({
  up: Type.Boolean(),
  restarts: Count,
  /** Set while the event store is made again: journal entries applied so far, and all there are. */
  rebuilding: orNull(exactly({ done: Count, total: Count })),
  /** What a person has to do something about. */
  trouble: orNull(exactly({ message: Type.String(), hint: Type.String() })),
  /** Properties of events that are asked for and have a column of their own; `filled` 1: queries use it. */
  properties: Type.Array(exactly({ name: Type.String(), filled: Type.Number({ minimum: 0, maximum: 1 }) })),
});
export type EngineState = Static<typeof EngineState>;

export interface SupervisorHooks {
  /** The engine must not open the stores; it is not started again. */
  onRefused?: (reason: EngineRefused) => void;
  onReport?: (report: Report) => void;
}

/** The engine cannot work on these data. */
export class EngineRefused extends AppError {
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
const recentMs = 2_000;
/** An engine that says nothing for so long hangs. */
const silenceMs = 15_000;
/** The same while it opens its stores, which may have to be brought up to date. */
const startSilenceMs = 600_000;
/** Two looks further apart than this: the whole machine was asleep. */
const sleptMs = 5_000;
/** What the engine may take beside DuckDB's memory while somebody's statement runs; it watches itself more closely. */
const besidesBytesMax = 1_000 * 1024 * 1024;
/** The same above what it had before, DuckDB's file cache and the statement each as large as the limit. */
const grownBytesMax = 512 * 1024 * 1024;
/** Above what it keeps within by itself. */
const ownSlack = 1.35;
/** Threads for calls into DuckDB and the file system beside one per processor: as many as can be busy with queries. */
const queryThreads = 8;
/** What the engine's collector of JavaScript's garbage takes for the machine's memory, where there is more: it lets the heap grow by that. */
const heapBytesDefault = 1024 * 1024 * 1024;
/** What the engine frees it soon needs again; given back to the system at once, its pages would be made anew each time. */
const purgeDelayMs = 1_000;

/**
 * Keeps one engine running from `run` to `stop`. One that dies, hangs or takes too much memory is replaced, after a pause that
 * grows each time, and gets again what was not stored. Nobody is thrown its ends: `state` tells of them, and where a person has
 * to help first, no other one is started.
 */
export class EngineSupervisor implements EngineAsked {
  private readonly statements = new StatementGuard();
  private readonly watch = setInterval(() => this.look(), watchMs);
  /** What the engine had resident when it began to run statements. */
  private idleBytes = 0;
  private lookedAt = performance.now();
  private heardAt = performance.now();
  private stuck: { reason: StopReason; at: number } | undefined;
  private child: Child | undefined;
  private isReady = false;
  private rebuilding: EngineState["rebuilding"] = null;
  private properties: EngineState["properties"] = [];
  private trouble: EngineState["trouble"] = null;
  private readonly ends = new EngineEnds();
  /** The server that keeps the events cannot be used. */
  private away: EngineState["trouble"] = null;
  /** Loading waits for room on the disk. */
  private pause: Pause | null = null;
  private memory: MemoryUse | null = null;
  /** Until a person has done something there is no use in starting the engine. */
  private isBlocked = false;
  private stopping = false;
  private restarts = 0;
  private exited: Promise<void> = Promise.resolve();
  private whenReady = Promise.withResolvers<void>();
  private restartTimer: ReturnType<typeof setTimeout> | undefined;
  /** Sealed segments that the journal may not forget yet, oldest first. */
  private pending: SealedSegment[] = [];
  /** Per lane, the last sequence number that the engine has loaded. */
  private loaded: Record<Lane, number> = { realtime: 0, historical: 0 };

  /**
   * @param command how to start this executable in the engine's role.
   */
  constructor(
    private readonly command: readonly string[],
    private readonly start: Omit<EngineStart, "suspects" | "doubt">,
    private readonly log: Log,
    private readonly hooks: SupervisorHooks = {},
  ) {
    this.watch.unref();
  }

  /** Starts the engine; it becomes ready by itself. */
  run(): void {
    if (this.stopping) return;
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
        // Else a few long queries would leave no thread for loading.
        UV_THREADPOOL_SIZE: String(availableParallelism() + queryThreads),
        BUN_JSC_forceRAMSize: String(this.start.memory?.heapBytes ?? heapBytesDefault),
        MIMALLOC_PURGE_DELAY: String(purgeDelayMs),
      },
    });
    this.child = child;
    this.heardAt = performance.now();
    this.trouble = null;
    this.send({
      type: "start",
      start: { ...this.start, suspects: this.statements.suspects(), doubt: this.ends.takeDoubt() },
    });
    this.exited = this.follow(child);
  }

  /** Whether queries can be answered now. */
  get ready(): boolean {
    return this.isReady;
  }

  get restartCount(): number {
    return this.restarts;
  }

  get state(): EngineState {
    const { isReady: up, restarts, rebuilding, properties } = this;
    const trouble = this.trouble ?? this.ends.failure ?? this.away ?? troubleOf(this.pause);
    return { up, restarts, rebuilding, trouble, properties };
  }

  /** What the running engine had in memory a few seconds ago; null: it has just started. */
  get memoryUse(): MemoryUse | null {
    return this.memory;
  }

  /** Bytes of sealed segments that are not loaded, and of those that are but are still in the event store's log. */
  debt(): PendingBytes {
    const debt = { unloaded: 0, unwritten: 0 };
    for (const { lane, last, bytes } of this.pending) {
      debt[last > this.loaded[lane] ? "unloaded" : "unwritten"] += bytes;
    }
    return debt;
  }

  /** Sealed entries that wait to be loaded, per lane. */
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
    await Promise.race([this.whenReady.promise, lapse(ms)]);
    return this.isReady;
  }

  /** Why the engine ended just now, when a query was the reason that was asked before. */
  whyStuck(askedAt: number): StopReason | undefined {
    const { stuck } = this;
    const isReason = stuck !== undefined && askedAt < stuck.at && performance.now() - stuck.at < recentMs;
    return isReason ? stuck.reason : undefined;
  }

  async waitUntilEnded(ms: number): Promise<void> {
    if (this.isReady) await Promise.race([this.exited, lapse(ms)]);
  }

  requireStatements(projectId: number): void {
    this.statements.require(projectId);
  }

  /** Hands sealed segments to the engine, now or when it is back. */
  offer(segments: readonly SealedSegment[]): void {
    this.pending.push(...segments);
    if (this.isReady) this.send({ type: "segments", segments: [...segments] });
  }

  /** Lets the engine apply what it has, for a while, and ends it. */
  async stop(timeoutMs: number): Promise<void> {
    this.stopping = true;
    clearInterval(this.watch);
    clearTimeout(this.restartTimer);
    const child = this.child;
    if (child === undefined) return;
    // What it has done is done, and the next start goes on from there.
    if (this.rebuilding !== null) child.kill("SIGKILL");
    // An engine that is just starting gets its segments first.
    await Promise.race([this.whenReady.promise, this.exited, lapse(timeoutMs)]);
    this.send({ type: "stop", timeoutMs });
    // The time for the last batch and the checkpoint is added to what loading may take.
    const killer = setTimeout(() => child.kill("SIGKILL"), timeoutMs + 1_500);
    await this.exited;
    clearTimeout(killer);
  }

  /** Ends the engine at once. */
  kill(): void {
    this.stopping = true;
    this.child?.kill("SIGKILL");
  }

  /** Ends an engine that hangs, or that takes more memory than it could stop by itself. */
  private look(): void {
    const now = performance.now();
    const hasSlept = now - this.lookedAt > sleptMs;
    this.lookedAt = now;
    if (hasSlept) this.heardAt = now;
    if (this.child === undefined || this.stopping) return;
    this.ends.look();
    const silence = now - this.heardAt;
    if (silence > (this.isReady ? silenceMs : startSilenceMs)) {
      this.replace("it says nothing any more", { silentMs: Math.round(silence) });
    } else if (this.statements.isBusy) {
      const { memory, memoryLimitBytes } = this.start;
      const { pid } = this.child;
      const bytes = memory === null ? residentBytes(pid) : ownBytes(pid);
      const usual = memoryLimitBytes + besidesBytesMax;
      const grown = this.idleBytes + 2 * memoryLimitBytes + grownBytesMax;
      if (bytes > (memory === null ? Math.max(usual, grown) : memory.ownBytesMax * ownSlack))
        this.replace("a query took all memory", { bytes });
    }
  }

  private replace(reason: string, facts: Record<string, number>): void {
    this.log.error({ reason, ...facts }, "the engine is replaced");
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
      // The engine is going down; what it missed is sent again to the next one.
      this.log.debug({ error: String(error) }, "the engine did not take a command");
    }
  }

  private async follow(child: Child): Promise<void> {
    await readMessages<Report>(child.stdout, (report) => this.onReport(report)).catch((error) => {
      this.log.error({ error: String(error) }, "the engine's reports cannot be read");
      child.kill("SIGKILL");
    });
    const code = await child.exited;
    // A statement of a user may be the reason.
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
    if (restartInMs === 0) this.log.info("the engine begins anew, to load events");
    else
      this.log.warn({ code, signal: child.signalCode, restartInMs }, "the engine ended; it is started again");
    this.restarts += 1;
    this.restartTimer = setTimeout(() => this.run(), restartInMs);
  }

  private onReport(report: Report): void {
    this.heardAt = performance.now();
    if (report.type === "stuck") {
      this.log.warn({ reason: report.reason }, "a query did not stop; the engine is replaced");
      this.stuck = { reason: report.reason, at: this.heardAt };
      this.ends.restartsSoon();
    } else if (report.type === "takes_over") {
      this.ends.restartsAtOnce();
    } else if (report.type === "statement") {
      if (!this.statements.isBusy && this.child !== undefined) this.idleBytes = residentBytes(this.child.pid);
      this.statements.note(report.projectId, report.change);
    } else if (report.type === "ready") {
      this.isReady = true;
      this.ends.ready(this.rebuilding !== null);
      this.rebuilding = null;
      this.loaded = report.cursors;
      if (this.pending.length > 0) this.send({ type: "segments", segments: this.pending });
      this.whenReady.resolve();
    } else if (report.type === "refused") {
      this.stopping = true;
      this.hooks.onRefused?.(new EngineRefused(report.message, report.hint));
    } else if (report.type === "rebuilding") {
      this.rebuilding = { done: report.done, total: report.total };
    } else if (report.type === "trouble") {
      const { message, hint, isStopped } = report;
      this.trouble = { message, hint };
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
    this.hooks.onReport?.(report);
  }
}

function troubleOf(pause: Pause | null): EngineState["trouble"] {
  if (pause === null) return null;
  const mib = (bytes: number) => `${Math.floor(bytes / 1024 ** 2)} MiB`;
  return {
    message: `Events wait for room on the disk: ${mib(pause.freeBytes)} are free, ${mib(pause.neededBytes)} are needed to load them.`,
    hint: "Free disk space; it goes on by itself.",
  };
}

function removeIfThere(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}
