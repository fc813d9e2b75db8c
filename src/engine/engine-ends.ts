/**
 * What the ends of the engine, one after the other, say: how long to wait before the next start, what people are told, and
 * whether the event store's file is to be doubted.
 */

import type { Subprocess } from "bun";

const firstBackOffMs = 100;
const backOffMsMax = 5_000;
/** An engine that lived this long gets its restarts without delay again. */
const healthyAfterMs = 10_000;
/** After so many ends that the event store's file may be the reason of, it is made again. */
const doubtfulEndsMax = 5;
/** What ends a process that works on broken data, or by a fault of its own. */
const crashSignals: readonly string[] = ["SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE", "SIGTRAP"];

interface Trouble {
  message: string;
  hint: string;
}

export class EngineEnds {
  /** Why the engine ended; forgotten when the next one has lived for a while. */
  failure: Trouble | null = null;
  private backOffMs = firstBackOffMs;
  private startedAt = 0;
  private readyAt = Number.POSITIVE_INFINITY;
  /** Ends one after another that the event store's file may be the reason of. */
  private doubtfulEnds = 0;
  /** The engine that runs has said that it ends because of what may be the file. */
  private isDoubtful = false;
  /** The file was made again because of them; it is not done twice. */
  private hasDoubted = false;

  started(): void {
    this.startedAt = performance.now();
    this.readyAt = Number.POSITIVE_INFINITY;
    this.isDoubtful = false;
  }

  /** @param wasRebuilt the event store was made again: what the engine ended for is mended. */
  ready(wasRebuilt: boolean): void {
    this.readyAt = performance.now();
    if (wasRebuilt) this.failure = null;
  }

  /** Looks whether the engine has lived long enough for its ends to be forgotten. */
  look(): void {
    if (performance.now() - this.readyAt <= healthyAfterMs) return;
    this.readyAt = Number.POSITIVE_INFINITY;
    this.failure = null;
    this.doubtfulEnds = 0;
  }

  /** @returns why the event store should be made again, when that was not tried yet; else nothing. */
  takeDoubt(): string {
    if (this.doubtfulEnds < doubtfulEndsMax || this.hasDoubted) return "";
    this.hasDoubted = true;
    return `the engine ended ${this.doubtfulEnds} times soon after it was started`;
  }

  /** The engine has said why it ends. */
  announced({ message, hint, isDoubtful }: Trouble & { isDoubtful: boolean }): void {
    this.failure = { message, hint };
    this.isDoubtful = isDoubtful;
  }

  /** @param isStatements a statement of a user may be the reason. */
  ended({ signalCode }: Pick<Subprocess, "signalCode">, isStatements: boolean): void {
    const isCrash = signalCode !== null && crashSignals.includes(String(signalCode));
    if ((isCrash || this.isDoubtful) && !isStatements) this.doubtfulEnds += 1;
    if (!isCrash) return;
    this.failure = {
      message: `The process that holds the event store ended (${signalCode}).`,
      hint: "It is started again by itself; when this stays, see the log and `flagkeep doctor`.",
    };
  }

  /** It ends on purpose, and the next one begins without delay. */
  restartsAtOnce(): void {
    this.backOffMs = 0;
  }

  /** It is ended for what it does: that is no reason to wait long. */
  restartsSoon(): void {
    this.backOffMs = firstBackOffMs;
  }

  /** How long to wait before the next start; longer each time, 0 when the end was on purpose. */
  nextStartInMs(): number {
    const isOnPurpose = this.backOffMs === 0;
    if (!isOnPurpose && performance.now() - this.startedAt > healthyAfterMs) this.backOffMs = firstBackOffMs;
    const waitMs = this.backOffMs;
    this.backOffMs = Math.min(Math.max(firstBackOffMs, waitMs * 2), backOffMsMax);
    return waitMs;
  }
}
