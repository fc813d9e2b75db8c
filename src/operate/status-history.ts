/** Figures of the server over the last 24 hours, in memory: empty after a restart. */

import type { Static } from "@sinclair/typebox";
import { bool, dateTime, int, nullable, num, object } from "../http/schemas.ts";
import { PeriodicTasks } from "../lib/concurrency.ts";
import { toApiTime, toApiTimeOrNull } from "../lib/time.ts";

export const historySampleSeconds = 300;
/** 24 hours. */
export const historySamplesMax = 288;

export const StatusSample = object({
  at: dateTime(),
  events_per_second: num({ description: "Average since the sample before." }),
  lag_entries: int({ description: "Acknowledged entries that are not loaded yet." }),
  engine_up: bool(),
  disk_bytes: int(),
  last_backup_at: nullable(dateTime()),
});
export type StatusSample = Static<typeof StatusSample>;

/** What is read for a sample; `events` is a monotonic counter. */
export interface StatusReading {
  events: number;
  lagEntries: number;
  isEngineUp: boolean;
  diskBytes: number;
  lastBackupAt: string | null;
}

export class StatusHistory {
  private readonly samples: StatusSample[] = [];
  private readonly tasks: PeriodicTasks;
  private last: { atMs: number; events: number } | undefined;

  constructor(
    private readonly read: () => Promise<StatusReading>,
    private readonly onError: (error: unknown) => void,
  ) {
    this.tasks = new PeriodicTasks(onError);
  }

  /** Starts sampling, now and at the interval; does not keep the process alive. */
  start(): void {
    void this.sample(new Date()).catch(this.onError);
    this.tasks.every(historySampleSeconds * 1_000, () => this.sample(new Date()));
  }

  stop(): void {
    this.tasks.stop();
  }

  async sample(now: Date): Promise<void> {
    const { events, ...facts } = await this.read();
    const seconds = this.last === undefined ? 0 : (now.getTime() - this.last.atMs) / 1_000;
    const rate = seconds > 0 ? (events - this.last!.events) / seconds : 0;
    this.last = { atMs: now.getTime(), events };
    this.samples.push({
      at: toApiTime(now),
      events_per_second: Math.round(rate * 10) / 10,
      lag_entries: facts.lagEntries,
      engine_up: facts.isEngineUp,
      disk_bytes: facts.diskBytes,
      last_backup_at: toApiTimeOrNull(facts.lastBackupAt === null ? null : new Date(facts.lastBackupAt)),
    });
    if (this.samples.length > historySamplesMax) this.samples.shift();
  }

  /** Oldest first. */
  list(): readonly StatusSample[] {
    return this.samples;
  }
}
