/** Which backups are old enough to go. Pure. */

import { dayMs } from "../lib/time.ts";

export interface Rules {
  /** The newest ones. */
  last: number;
  /** The newest one of each of so many days that have one; days and weeks are UTC. */
  daily: number;
  /** The newest one of each of so many weeks that have one; weeks begin on Monday. */
  weekly: number;
}

export interface Candidate {
  /** ISO 8601. */
  createdAt: string;
  /** One that is not is neither counted nor removed: a person should look at it. */
  isGood: boolean;
  /** It stays whatever the rules say, as the one that was made last: a clock that was wrong may have dated it long ago. */
  isPinned?: boolean;
}

/**
 * The backups to remove, oldest first. The newest good one always stays.
 *
 * Those that are dated in the future, by a clock that was wrong, are neither counted nor removed: they would be the newest
 * for years, and everything made meanwhile would go.
 */
export function backupsToRemove<One extends Candidate>(
  backups: readonly One[],
  rules: Rules,
  now: Date,
): One[] {
  const good = backups
    .filter(({ createdAt, isGood }) => isGood && Date.parse(createdAt) <= now.getTime())
    .sort((a, b) => (a.createdAt < b.createdAt ? 1 : a.createdAt > b.createdAt ? -1 : 0));
  const kept = new Set(good.slice(0, Math.max(1, rules.last)));
  for (const backup of good) if (backup.isPinned) kept.add(backup);
  const keepNewestOfEach = (periods: number, periodOf: (day: number) => number) => {
    const seen = new Set<number>();
    for (const backup of good) {
      if (seen.size >= periods) return;
      const period = periodOf(Math.floor(Date.parse(backup.createdAt) / dayMs));
      if (seen.has(period)) continue;
      seen.add(period);
      kept.add(backup);
    }
  };
  keepNewestOfEach(rules.daily, (day) => day);
  // The first day of 1970 was a Thursday.
  keepNewestOfEach(rules.weekly, (day) => Math.floor((day + 3) / 7));
  return good.filter((backup) => !kept.has(backup)).reverse();
}
