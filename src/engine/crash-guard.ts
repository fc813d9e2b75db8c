/**
 * Records whose statements were running when the engine crashed. A project's statements may have been innocent, so they
 * first have to run alone; if the engine crashes again, they are blocked for a while.
 */

import { StatementBlockedError } from "../events/query-port.ts";

const memoryMs = 60_000;

/** Per project; reset when the server process restarts. */
export class CrashGuard {
  /** Number of running statements per project. */
  private readonly running = new Map<number, number>();
  /** Time of the last crash during a project's statements. */
  private readonly suspected = new Map<number, number>();
  private readonly barredUntil = new Map<number, number>();

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
      if (isAlone && this.isSuspect(projectId)) this.barredUntil.set(projectId, now + memoryMs);
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
    const left = (this.barredUntil.get(projectId) ?? 0) - this.now();
    if (left > 0) throw new StatementBlockedError(Math.ceil(left / 1_000));
    this.barredUntil.delete(projectId);
  }

  private isSuspect(projectId: number): boolean {
    const at = this.suspected.get(projectId);
    if (at === undefined) return false;
    if (this.now() - at < memoryMs) return true;
    this.suspected.delete(projectId);
    return false;
  }
}
