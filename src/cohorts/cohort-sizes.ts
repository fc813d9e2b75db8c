/** Sizes of cohorts: one number per day with a calculation. */

import { and, asc, eq, lt } from "drizzle-orm";
import type { MetadataTx, Reading } from "../accounts/db.ts";
import { cohortSize } from "../accounts/schema.ts";
import { dayMs } from "../lib/time.ts";

/** Days retained, and returned by one request. */
export const cohortSizeDaysMax = 400;

export interface CohortSize {
  /** `2026-11-27`, in UTC. */
  day: string;
  count: number;
}

/** The day in UTC. */
export const toDay = (now: Date): string => now.toISOString().slice(0, 10);

/** Records a size for its day, in place of an earlier one, and deletes those that are too old. */
export function recordSize(t: MetadataTx, cohortId: number, count: number, now: Date): void {
  const day = toDay(now);
  t.insert(cohortSize)
    .values({ cohortId, day, count })
    .onConflictDoUpdate({ target: [cohortSize.cohortId, cohortSize.day], set: { count } })
    .run();
  const oldest = toDay(new Date(now.getTime() - (cohortSizeDaysMax - 1) * dayMs));
  t.delete(cohortSize)
    .where(and(eq(cohortSize.cohortId, cohortId), lt(cohortSize.day, oldest)))
    .run();
}

/** The sizes of a cohort, oldest first; days without a calculation are absent. */
export function listSizes(db: Reading, cohortId: number): CohortSize[] {
  return db
    .select({ day: cohortSize.day, count: cohortSize.count })
    .from(cohortSize)
    .where(eq(cohortSize.cohortId, cohortId))
    .orderBy(asc(cohortSize.day))
    .all();
}
