/**
 * Usage metering: accepted events per project and UTC day of receipt. Historical events are counted separately and
 * never billed.
 */

import { and, asc, eq, gte, lte } from "drizzle-orm";
import { microsPerDay } from "../lib/time.ts";
import type { PersonsDb } from "./open.ts";
import { usageDay } from "./schema.ts";

export interface UsageCounts {
  /** Realtime events with person processing. */
  identified: number;
  /** Realtime events without person processing. */
  anonymous: number;
  historical: number;
  /** Events dropped because their UUID was known; not part of the other counts. */
  duplicates: number;
  /** Events rejected by a rule; not part of the other counts. */
  dropped: number;
}

/** `billable` is what a hosted service would charge: realtime events, identified and anonymous. */
export interface UsageTotals extends UsageCounts {
  billable: number;
}

export interface UsageOfDay extends UsageTotals {
  /** YYYY-MM-DD, UTC. */
  date: string;
}

type DayCounts = UsageCounts & { projectId: number; day: number };

/** Counts the events of a batch, written at its end. */
export class UsageTally {
  private readonly days = new Map<string, DayCounts>();
  private latest: DayCounts | undefined;

  add(projectId: number, receivedMicros: number, kind: keyof UsageCounts, count = 1): void {
    const day = Math.floor(receivedMicros / microsPerDay);
    const { latest } = this;
    // Most events have the project and day of the previous one.
    const counts =
      latest?.projectId === projectId && latest.day === day ? latest : this.getCounts(projectId, day);
    counts[kind] += count;
    this.latest = counts;
  }

  private getCounts(projectId: number, day: number): DayCounts {
    const key = `${projectId}:${day}`;
    let counts = this.days.get(key);
    if (counts === undefined) {
      counts = { projectId, day, identified: 0, anonymous: 0, historical: 0, duplicates: 0, dropped: 0 };
      this.days.set(key, counts);
    }
    return counts;
  }

  /** Adds the counts to the store, in the caller's transaction. */
  write(db: PersonsDb): void {
    const add = db.$client.query(`
      INSERT INTO usage_day (project_id, day, identified, anonymous, historical, duplicates, dropped)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (project_id, day) DO UPDATE SET identified = identified + excluded.identified,
        anonymous = anonymous + excluded.anonymous, historical = historical + excluded.historical,
        duplicates = duplicates + excluded.duplicates, dropped = dropped + excluded.dropped`);
    for (const {
      projectId,
      day,
      identified,
      anonymous,
      historical,
      duplicates,
      dropped,
    } of this.days.values()) {
      const date = new Date((day * microsPerDay) / 1000).toISOString().slice(0, 10);
      add.run(projectId, date, identified, anonymous, historical, duplicates, dropped);
    }
  }
}

/** Stored events of all projects since installation, including historical ones. */
export function countStoredEvents(db: PersonsDb): number {
  const sum = "SELECT coalesce(sum(identified + anonymous + historical), 0) AS events FROM usage_day";
  return db.$client.query<{ events: number }, []>(sum).get()!.events;
}

/**
 * Usage per day, oldest first, and its sum; days without events are omitted.
 * @param range first and last UTC day (inclusive), YYYY-MM-DD
 */
export function listUsage(
  db: PersonsDb,
  projectId: number,
  range: { dateFrom?: string; dateTo?: string } = {},
): { results: UsageOfDay[]; totals: UsageTotals } {
  const rows = db
    .select()
    .from(usageDay)
    .where(
      and(
        eq(usageDay.projectId, projectId),
        range.dateFrom === undefined ? undefined : gte(usageDay.day, range.dateFrom),
        range.dateTo === undefined ? undefined : lte(usageDay.day, range.dateTo),
      ),
    )
    .orderBy(asc(usageDay.day))
    .all();
  const totals: UsageTotals = {
    identified: 0,
    anonymous: 0,
    historical: 0,
    billable: 0,
    duplicates: 0,
    dropped: 0,
  };
  const results = rows.map(({ projectId: _, day, ...counts }): UsageOfDay => {
    const billable = counts.identified + counts.anonymous;
    const ofDay = { date: day, ...counts, billable };
    for (const kind of Object.keys(totals) as (keyof UsageTotals)[]) totals[kind] += ofDay[kind];
    return ofDay;
  });
  return { results, totals };
}
