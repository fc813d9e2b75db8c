/**
 * Remembers whose statements ran when the engine came down.
 *
 * One whose statements ran then may be innocent, so it first has to run alone; if the engine comes down again, it waits.
 */

import { StatementsBarred } from "../events/port.ts";

const memoryMs = 60_000;

/** Counts by project, and forgets when the front starts again. */
export class StatementGuard {
  /** How many statements of a project run. */
  private readonly running = new Map<number, number>();
  /** When a project's statements last ran while the engine came down. */
  private readonly suspected = new Map<number, number>();
  private readonly barredUntil = new Map<number, number>();

  constructor(private readonly now: () => number = () => performance.now()) {}

  /** Counts what the engine reports. */
  note(projectId: number, change: 1 | -1): void {
    const count = (this.running.get(projectId) ?? 0) + change;
    if (count > 0) this.running.set(projectId, count);
    else this.running.delete(projectId);
  }

  /** Call when the engine has ended without being asked to. */
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

  /** Projects whose statements run alone. */
  suspects(): number[] {
    return [...this.suspected.keys()].filter((projectId) => this.isSuspect(projectId));
  }

  /** @throws {StatementsBarred} */
  require(projectId: number): void {
    const left = (this.barredUntil.get(projectId) ?? 0) - this.now();
    if (left > 0) throw new StatementsBarred(Math.ceil(left / 1_000));
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
