/** Selects the backups to delete. Pure. */

import { dayMs } from "../lib/time.ts";

export interface Rules {
  /** Number of newest backups to keep. */
  last: number;
  /** Number of days of which the newest backup is kept; days without one do not count. Days and weeks are UTC. */
  daily: number;
  /** Number of weeks of which the newest backup is kept; weeks begin on Monday. */
  weekly: number;
}

export interface Candidate {
  /** ISO 8601. */
  createdAt: string;
  /** A bad one is neither counted nor deleted: an operator should examine it. */
  isGood: boolean;
  /** Kept by every rule, as the most recently created one: a wrong clock may have dated it long ago. */
  isPinned?: boolean;
}

/**
 * The backups to delete, oldest first. The newest good one is always kept.
 *
 * Future-dated backups, created with a wrong clock, are neither counted nor deleted: they would be the newest for
 * years, and every other backup would be deleted.
 */
export function backupsToRemove<One extends Candidate>(
  backups: readonly One[],
  rules: Rules,
  now: Date,
): One[] {
  const good = backups
    .filter(({ createdAt, isGood }) => isGood && Date.parse(createdAt) <= now.getTime())
    .sort((a, b) => (a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : 0));
  const retained = new Set(good.slice(0, Math.max(1, rules.last)));
  for (const backup of good) if (backup.isPinned) retained.add(backup);
  const keepNewestOfEach = (periods: number, periodOf: (day: number) => number) => {
    const seen = new Set<number>();
    for (const backup of good) {
      if (seen.size >= periods) return;
      const period = periodOf(Math.floor(Date.parse(backup.createdAt) / dayMs));
      if (seen.has(period)) continue;
      seen.add(period);
      retained.add(backup);
    }
  };
  keepNewestOfEach(rules.daily, (day) => day);
  // The first day of 1970 was a Thursday.
  keepNewestOfEach(rules.weekly, (day) => Math.floor((day + 3) / 7));
  return good.filter((backup) => !retained.has(backup)).reverse();
}
