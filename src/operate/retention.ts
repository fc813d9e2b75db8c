/**
 * Deletes events past their retention, by project settings and `--events-retention`: at the start, hourly, and soon
 * after a project's setting changed.
 *
 * Late events with old timestamps, from an import or a rebuild, are deleted by the next run. Deletion is permanent, so
 * a clock that jumped ahead is distrusted for a day.
 */

import { readFileSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import type { RetentionCutoff } from "../events/duckdb/event-expiry.ts";
import { replaceFile } from "../journal/disk.ts";
import { DateTime, NonNegativeInt, nullable, strictObject } from "../lib/schema.ts";
import type { EventsRetention } from "../lib/setting-types.ts";
import { dayMs } from "../lib/time.ts";
import type { Log } from "../log.ts";
import { paths } from "../paths.ts";

/** As `status --json` prints it. */
export const RetentionState = strictObject({
  /** Days for projects without a setting; null: forever. */
  days: nullable(NonNegativeInt),
  projects: Type.Array(strictObject({ project_id: Type.Integer(), days: nullable(NonNegativeInt) })),
  /** Null until the first run is done. */
  last_run_at: nullable(DateTime),
  /** Since the start. */
  events_removed: NonNegativeInt,
});
export type RetentionState = Static<typeof RetentionState>;

const everyMs = 3_600_000;
/** Interval for detecting changed project settings. */
const noticeMs = 10_000;
/** Retry interval; the engine may be starting, or rebuilding its store. */
const againMs = 30_000;
/** How long a run waits until everything is loaded; under a permanent load it continues without. */
const waitMs = 500;
const waitsMax = 240;
/** A clock ahead by more than this has jumped: the machine was off, or the clock is wrong. */
const jumpMs = dayMs;
/** Grace period for an operator or NTP to correct the clock. */
const disbeliefMs = dayMs;

export interface RetentionDeps {
  dataDir: string;
  rules: EventsRetention;
  /** Including archived ones. Days: 0 forever, null the default rules. */
  projects: () => { readonly id: number; readonly eventsRetentionDays: number | null }[];
  /** Deletes events in the engine. @returns the number of deleted events */
  remove: (cutoffs: RetentionCutoff[]) => Promise<number>;
  /** Whether everything acknowledged is loaded: waiting entries may be old too. */
  isCaughtUp: () => Promise<boolean>;
  log: Pick<Log, "info" | "warn">;
  now?: () => number;
  /** Monotonic clock in milliseconds. */
  elapsed?: () => number;
}

export class Retention {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStopped = false;
  private lastRunAt: Date | null = null;
  private removed = 0;
  /** The last trusted wall clock time and the monotonic time then; before the first run, that of an earlier start. */
  private believed: { at: number; elapsed: number } | undefined;
  /** Monotonic time since which the clock is distrusted. */
  private doubtedFrom: number | undefined;

  constructor(private readonly deps: RetentionDeps) {}

  /** Null when events are kept forever. */
  state(): RetentionState | null {
    const { days, byProject } = this.deps.rules;
    const own = new Map(byProject);
    for (const { id, eventsRetentionDays } of this.deps.projects()) {
      if (eventsRetentionDays !== null) own.set(id, eventsRetentionDays || null);
    }
    if (days === null && [...own.values()].every((item) => item === null)) return null;
    return {
      days,
      projects: [...own].map(([project_id, one]) => ({ project_id, days: one })),
      last_run_at: this.lastRunAt?.toISOString() ?? null,
      events_removed: this.removed,
    };
  }

  start(): void {
    void this.check();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  /** Per project, the timestamp before which events are deleted: a start of a day, UTC. */
  cutoffs(): RetentionCutoff[] {
    const { rules, projects, now = Date.now } = this.deps;
    return projects().flatMap(({ id, eventsRetentionDays }) => {
      const ruled = rules.byProject.has(id) ? rules.byProject.get(id)! : rules.days;
      const days = eventsRetentionDays === null ? ruled : eventsRetentionDays || null;
      if (days === null) return [];
      const before = Math.floor((now() - days * dayMs) / dayMs) * dayMs;
      return [{ projectId: id, beforeMicros: before * 1_000 }];
    });
  }

  /** Schedules the next run; changed project settings trigger it earlier. */
  private next(afterMs: number): void {
    if (this.isStopped) return;
    const dueAt = performance.now() + afterMs;
    const checked = JSON.stringify(this.deps.projects());
    const notice = () => {
      const isDue = performance.now() >= dueAt || JSON.stringify(this.deps.projects()) !== checked;
      if (isDue) void this.check();
      else this.wait(Math.min(noticeMs, dueAt - performance.now()), notice);
    };
    this.wait(Math.min(noticeMs, afterMs), notice);
  }

  private wait(ms: number, then: () => void): void {
    this.timer = setTimeout(then, Math.max(1, ms));
    this.timer.unref();
  }

  /** Whether the clock is trusted to decide what is old. The last trusted time persists across starts. */
  private isClockBelieved(): boolean {
    const { dataDir, log, now = Date.now, elapsed = () => performance.now() } = this.deps;
    const at = now();
    const passed = elapsed();
    this.believed ??= { at: readLastLook(dataDir) ?? at, elapsed: passed };
    const aheadMs = at - this.believed.at - (passed - this.believed.elapsed);
    if (aheadMs > jumpMs) {
      if (this.doubtedFrom === undefined) {
        this.doubtedFrom = passed;
        const days = Math.round(aheadMs / dayMs);
        log.warn(
          { days },
          "the clock jumped ahead by days: unless it is corrected, events older than the retention are deleted in a day",
        );
      }
      if (passed - this.doubtedFrom < disbeliefMs) return false;
    }
    this.doubtedFrom = undefined;
    this.believed = { at, elapsed: passed };
    return true;
  }

  /** Deletes expired events if the clock is trusted, and schedules the next run. */
  async check(): Promise<void> {
    if (this.state() === null) return this.next(everyMs);
    let nextMs = everyMs;
    try {
      for (let waits = 0; waits < waitsMax && !this.isStopped; waits++) {
        if (await this.deps.isCaughtUp()) break;
        await Bun.sleep(waitMs);
      }
      if (this.isStopped) return;
      if (!this.isClockBelieved()) return this.next(everyMs);
      const removed = await this.deps.remove(this.cutoffs());
      this.lastRunAt = new Date();
      this.removed += removed;
      // On a write error the previous time stays; at worst, a later start distrusts its clock needlessly.
      await recordLook(this.deps.dataDir, this.believed!.at).catch(() => undefined);
      if (removed > 0) this.deps.log.info({ events: removed }, "deleted events older than the retention");
    } catch (error) {
      nextMs = againMs;
      if (!this.isStopped)
        this.deps.log.warn({ error: String(error) }, "failed to delete old events; retrying later");
    }
    this.next(nextMs);
  }
}

const LastLook = strictObject({ at: DateTime });

/** Time of the last run, milliseconds since 1970; undefined before the first. */
function readLastLook(dataDir: string): number | undefined {
  try {
    const { at } = JSON.parse(readFileSync(paths(dataDir).lastRetention, "utf8")) as Static<typeof LastLook>;
    return Date.parse(at) || undefined;
  } catch {
    return undefined;
  }
}

async function recordLook(dataDir: string, at: number): Promise<void> {
  const look: Static<typeof LastLook> = { at: new Date(at).toISOString() };
  await replaceFile(paths(dataDir).lastRetention, `${JSON.stringify(look)}\n`);
}
