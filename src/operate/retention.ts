/**
 * How long events are kept, by the projects' records and the setting `--events-retention`: looked after at the start,
 * then every hour, and soon after a project's record changed.
 *
 * It holds however events come: what is loaded later and older, by an import or when the event store is made again, goes
 * at the next look. What goes does not come back, so a clock that has jumped ahead is not believed for a day.
 */

import { readFileSync } from "node:fs";
import { type Static, Type } from "@sinclair/typebox";
import type { RetentionCutoff } from "../events/duckdb/old-events.ts";
import { replaceFile } from "../journal/disk.ts";
import { Count, exactly, Instant, orNull } from "../lib/schema.ts";
import type { EventsRetention } from "../lib/setting-kinds.ts";
import { dayMs } from "../lib/time.ts";
import type { Log } from "../log.ts";
import { paths } from "../paths.ts";

/** As `status --json` prints it. */
export const RetentionState = exactly({
  /** Days for projects without a rule of their own; null: for ever. */
  days: orNull(Count),
  projects: Type.Array(exactly({ project_id: Type.Integer(), days: orNull(Count) })),
  /** Null until the first look is done. */
  last_run_at: orNull(Instant),
  /** Since the start. */
  events_removed: Count,
});
export type RetentionState = Static<typeof RetentionState>;

const everyMs = 3_600_000;
/** How long a change of a project's record may stay without effect. */
const noticeMs = 10_000;
/** The engine may be starting, or making its store again. */
const againMs = 30_000;
/** So long a look waits for events that are being loaded; under a load that never ends it goes on without. */
const [waitMs, waitsMax] = [500, 240];
/** A clock that is so much further than it should be has jumped: the machine was off, or it is wrong. */
const jumpMs = dayMs;
/** So long somebody, or the network's time, has to put it right. */
const disbeliefMs = dayMs;

export interface RetentionDeps {
  dataDir: string;
  rules: EventsRetention;
  /** Archived ones too; days: 0 for ever, null as the rules say. */
  projects: () => { readonly id: number; readonly eventsRetentionDays: number | null }[];
  /** Asks the engine. @returns how many events went. */
  remove: (cutoffs: RetentionCutoff[]) => Promise<number>;
  /** Whether everything acknowledged is loaded: what waits may be old too. */
  isCaughtUp: () => Promise<boolean>;
  log: Pick<Log, "info" | "warn">;
  now?: () => number;
  /** Milliseconds that have passed since some moment, whatever the clock says. */
  elapsed?: () => number;
}

export class Retention {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStopped = false;
  private lastRunAt: Date | null = null;
  private removed = 0;
  /** The last moment of the clock that was believed, and when that was; before the first look that of an earlier start. */
  private believed: { at: number; elapsed: number } | undefined;
  /** Since when the clock is not believed. */
  private doubtedFrom: number | undefined;

  constructor(private readonly deps: RetentionDeps) {}

  /** Null when events are kept for ever. */
  state(): RetentionState | null {
    const { days, byProject } = this.deps.rules;
    const own = new Map(byProject);
    for (const { id, eventsRetentionDays } of this.deps.projects()) {
      if (eventsRetentionDays !== null) own.set(id, eventsRetentionDays || null);
    }
    if (days === null && [...own.values()].every((one) => one === null)) return null;
    return {
      days,
      projects: [...own].map(([project_id, one]) => ({ project_id, days: one })),
      last_run_at: this.lastRunAt?.toISOString() ?? null,
      events_removed: this.removed,
    };
  }

  start(): void {
    void this.look();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  /** The moments before which events go: beginnings of days, UTC. */
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

  /** Looks again when it is time, or when other events may stay than at the last look. */
  private next(afterMs: number): void {
    if (this.isStopped) return;
    const dueAt = performance.now() + afterMs;
    const looked = JSON.stringify(this.deps.projects());
    const notice = () => {
      const isDue = performance.now() >= dueAt || JSON.stringify(this.deps.projects()) !== looked;
      if (isDue) void this.look();
      else this.wait(Math.min(noticeMs, dueAt - performance.now()), notice);
    };
    this.wait(Math.min(noticeMs, afterMs), notice);
  }

  private wait(ms: number, then: () => void): void {
    this.timer = setTimeout(then, Math.max(1, ms));
    this.timer.unref();
  }

  /** Whether the clock may say what is old. It is remembered across starts how far it was. */
  private isClockBelieved(): boolean {
    const { dataDir, log, now = Date.now, elapsed = () => performance.now() } = this.deps;
    const [at, passed] = [now(), elapsed()];
    this.believed ??= { at: readLastLook(dataDir) ?? at, elapsed: passed };
    const aheadMs = at - this.believed.at - (passed - this.believed.elapsed);
    if (aheadMs > jumpMs) {
      if (this.doubtedFrom === undefined) {
        this.doubtedFrom = passed;
        const days = Math.round(aheadMs / dayMs);
        log.warn(
          { days },
          "the clock is days ahead of where it was: unless it is put right, events that are too old by it go in a day",
        );
      }
      if (passed - this.doubtedFrom < disbeliefMs) return false;
    }
    this.doubtedFrom = undefined;
    this.believed = { at, elapsed: passed };
    return true;
  }

  /** Has what is too old removed, if the clock can be believed, and looks again when it is time. */
  async look(): Promise<void> {
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
      // Where it cannot be written the one before stays, and a later start doubts its clock for nothing at the worst.
      await noteLook(this.deps.dataDir, this.believed!.at).catch(() => undefined);
      if (removed > 0)
        this.deps.log.info({ events: removed }, "events older than the retention were removed");
    } catch (error) {
      nextMs = againMs;
      if (!this.isStopped)
        this.deps.log.warn({ error: String(error) }, "old events could not be removed yet");
    }
    this.next(nextMs);
  }
}

const LastLook = exactly({ at: Instant });

/** When events were last looked at, milliseconds since 1970; undefined when they never were. */
function readLastLook(dataDir: string): number | undefined {
  try {
    const { at } = JSON.parse(readFileSync(paths(dataDir).lastRetention, "utf8")) as Static<typeof LastLook>;
    return Date.parse(at) || undefined;
  } catch {
    return undefined;
  }
}

async function noteLook(dataDir: string, at: number): Promise<void> {
  const look: Static<typeof LastLook> = { at: new Date(at).toISOString() };
  await replaceFile(paths(dataDir).lastRetention, `${JSON.stringify(look)}\n`);
}
