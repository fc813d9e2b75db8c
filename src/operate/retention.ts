/**
 * How long events are kept, by the setting `--events-retention`: looked after at the start and then every hour.
 *
 * It holds however events come: what is loaded later and older, by an import or when the event store is made again, goes
 * at the next look.
 */

import { type Static, Type } from "@sinclair/typebox";
import type { EventsRetention } from "../config.ts";
import type { RetentionCutoff } from "../events/old-events.ts";
import { Count, exactly, Instant, orNull } from "../lib/schema.ts";
import type { Log } from "../log.ts";

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
/** The engine may be starting, or making its store again. */
const againMs = 30_000;
/** So long a look waits for events that are being loaded; under a load that never ends it goes on without. */
const [waitMs, waitsMax] = [500, 240];
const dayMs = 86_400_000;

export interface RetentionDeps {
  rules: EventsRetention;
  /** Archived projects too. */
  projectIds: () => number[];
  /** Asks the engine. @returns how many events went. */
  remove: (cutoffs: RetentionCutoff[]) => Promise<number>;
  /** Whether everything acknowledged is loaded: what waits may be old too. */
  isCaughtUp: () => Promise<boolean>;
  log: Pick<Log, "info" | "warn">;
  now?: () => number;
}

export class Retention {
  private timer: ReturnType<typeof setTimeout> | undefined;
  private isStopped = false;
  private lastRunAt: Date | null = null;
  private removed = 0;

  constructor(private readonly deps: RetentionDeps) {}

  /** Null when events are kept for ever. */
  state(): RetentionState | null {
    const { days, byProject } = this.deps.rules;
    if (days === null && byProject.size === 0) return null;
    return {
      days,
      projects: [...byProject].map(([project_id, own]) => ({ project_id, days: own })),
      last_run_at: this.lastRunAt?.toISOString() ?? null,
      events_removed: this.removed,
    };
  }

  start(): void {
    if (this.state() !== null) void this.run();
  }

  stop(): void {
    this.isStopped = true;
    clearTimeout(this.timer);
  }

  /** The moments before which events go: beginnings of days, UTC. */
  cutoffs(): RetentionCutoff[] {
    const { rules, projectIds, now = Date.now } = this.deps;
    return projectIds().flatMap((projectId) => {
      const days = rules.byProject.has(projectId) ? rules.byProject.get(projectId)! : rules.days;
      if (days === null) return [];
      const before = Math.floor((now() - days * dayMs) / dayMs) * dayMs;
      return [{ projectId, beforeMicros: before * 1_000 }];
    });
  }

  private async run(): Promise<void> {
    let nextMs = everyMs;
    try {
      for (let waits = 0; waits < waitsMax && !this.isStopped; waits++) {
        if (await this.deps.isCaughtUp()) break;
        await Bun.sleep(waitMs);
      }
      if (this.isStopped) return;
      const removed = await this.deps.remove(this.cutoffs());
      this.lastRunAt = new Date();
      this.removed += removed;
      if (removed > 0)
        this.deps.log.info({ events: removed }, "events older than the retention were removed");
    } catch (error) {
      nextMs = againMs;
      if (!this.isStopped)
        this.deps.log.warn({ error: String(error) }, "old events could not be removed yet");
    }
    if (this.isStopped) return;
    this.timer = setTimeout(() => void this.run(), nextMs);
    this.timer.unref();
  }
}
