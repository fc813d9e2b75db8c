/** When a failed engine is restarted, and which statement that crashed it is blocked. */

import type { Subprocess } from "bun";
import { StatementBlockedError } from "../events/api/query-port.ts";

const firstBackOffMs = 100;
const backOffMsMax = 5_000;
/** An engine that ran this long resets the delay. */
const healthyAfterMs = 10_000;
/** The event store is rebuilt after this many ambiguous exits in a row. */
const doubtfulEndsMax = 5;
/** Signals of a process that crashes because of corrupt data or a bug. */
const crashSignals: readonly string[] = ["SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE", "SIGTRAP"];

interface Problem {
  message: string;
  hint: string;
}

export class RestartPolicy {
  /** Why the engine exited; reset when the next one has run for a while. */
  failure: Problem | null = null;
  private backOffMs = firstBackOffMs;
  private startedAt = 0;
  private readyAt = Number.POSITIVE_INFINITY;
  /** Consecutive exits that corruption of the event store's file may explain. */
  private doubtfulEnds = 0;
  /** The running engine has reported an error that corruption may explain. */
  private isAmbiguous = false;
  /** The file was already rebuilt for this reason; that is not done twice. */
  private hasDoubted = false;

  started(): void {
    this.startedAt = performance.now();
    this.readyAt = Number.POSITIVE_INFINITY;
    this.isAmbiguous = false;
  }

  /** @param wasRebuilt the event store was rebuilt, which fixes the reported error */
  ready(wasRebuilt: boolean): void {
    this.readyAt = performance.now();
    if (wasRebuilt) this.failure = null;
  }

  /** Resets the counters when the engine has run long enough. */
  check(): void {
    if (performance.now() - this.readyAt <= healthyAfterMs) return;
    this.readyAt = Number.POSITIVE_INFINITY;
    this.failure = null;
    this.doubtfulEnds = 0;
  }

  /** @returns why the event store should be rebuilt; empty if it should not or that was already tried */
  popDoubt(): string {
    if (this.doubtfulEnds < doubtfulEndsMax || this.hasDoubted) return "";
    this.hasDoubted = true;
    return `the engine exited ${this.doubtfulEnds} times soon after its start`;
  }

  /** Records the error that the engine reports before it exits. */
  announced({ message, hint, isAmbiguous }: Problem & { isAmbiguous: boolean }): void {
    this.failure = { message, hint };
    this.isAmbiguous = isAmbiguous;
  }

  /** @param isStatements whether a user's statement was running and may be the cause */
  ended({ signalCode }: Pick<Subprocess, "signalCode">, isStatements: boolean): void {
    const isCrash = signalCode !== null && crashSignals.includes(String(signalCode));
    if ((isCrash || this.isAmbiguous) && !isStatements) this.doubtfulEnds += 1;
    if (!isCrash) return;
    this.failure = {
      message: `The engine process exited (${signalCode}).`,
      hint: "It restarts automatically. If the error persists, see the log and `flagkeep doctor`.",
    };
  }

  /** The engine exits on purpose: the next one starts without delay. */
  restartsAtOnce(): void {
    this.backOffMs = 0;
  }

  /** The supervisor kills the engine: restart after the shortest delay. */
  restartsSoon(): void {
    this.backOffMs = firstBackOffMs;
  }

  /** The delay before the next start: doubles each time; 0 if the exit was on purpose. */
  nextStartInMs(): number {
    const isOnPurpose = this.backOffMs === 0;
    if (!isOnPurpose && performance.now() - this.startedAt > healthyAfterMs) this.backOffMs = firstBackOffMs;
    const waitMs = this.backOffMs;
    this.backOffMs = Math.min(Math.max(firstBackOffMs, waitMs * 2), backOffMsMax);
    return waitMs;
  }
}

/*
 * Records whose statements were running when the engine crashed. A project's statements may have been innocent, so they
 * first have to run alone; if the engine crashes again, they are blocked for a while.
 */

const memoryMs = 60_000;

/** Per project; reset when the server process restarts. */
export class CrashGuard {
  /** Number of running statements per project. */
  private readonly running = new Map<number, number>();
  /** Time of the last crash during a project's statements. */
  private readonly suspected = new Map<number, number>();
  private readonly blockedUntil = new Map<number, number>();

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Records that a statement starts or ends. */
  count(projectId: number, change: 1 | -1): void {
    const count = (this.running.get(projectId) ?? 0) + change;
    if (count > 0) this.running.set(projectId, count);
    else this.running.delete(projectId);
  }

  /** Call when the engine has exited unexpectedly. */
  engineEnded(): void {
    const now = this.now();
    for (const projectId of this.running.keys()) {
      const isAlone = this.running.size === 1;
      if (isAlone && this.isSuspect(projectId)) this.blockedUntil.set(projectId, now + memoryMs);
      this.suspected.set(projectId, now);
    }
    this.running.clear();
  }

  get isBusy(): boolean {
    return this.running.size > 0;
  }

  /** Projects whose statements have to run alone. */
  suspects(): number[] {
    return [...this.suspected.keys()].filter((projectId) => this.isSuspect(projectId));
  }

  /** @throws {StatementBlockedError} */
  assertAllowed(projectId: number): void {
    const left = (this.blockedUntil.get(projectId) ?? 0) - this.now();
    if (left > 0) throw new StatementBlockedError(Math.ceil(left / 1_000));
    this.blockedUntil.delete(projectId);
  }

  private isSuspect(projectId: number): boolean {
    const at = this.suspected.get(projectId);
    if (at === undefined) return false;
    if (this.now() - at < memoryMs) return true;
    this.suspected.delete(projectId);
    return false;
  }
}
