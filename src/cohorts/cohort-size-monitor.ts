/** Counts each cohort once a day. */

import { and, asc, eq, isNotNull, notExists, or, sql } from "drizzle-orm";
import type { MetadataTx } from "../accounts/db.ts";
import type { Metadata } from "../accounts/metadata.ts";
import { cohort, cohortSize } from "../accounts/schema.ts";
import { PeriodicTasks } from "../lib/concurrency.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import type { CohortCalculator } from "./cohort-calculation.ts";
import { recordSize, toDay } from "./cohort-sizes.ts";

/** Cohorts without a size of today are counted within this time. */
export const cohortCountMs = 1_800_000;
/** Cohorts counted per check, so that one check does not occupy the event store. */
export const cohortsPerCheck = 200;

/** Static cohorts are empty until a list was uploaded. */
const hasMembers = or(eq(cohort.isStatic, false), isNotNull(cohort.personCount));

export interface CohortSizeDeps {
  metadata: Metadata;
  persons: Pick<PersonReader, "cohortSizes">;
  cohortFiller: Pick<CohortCalculator, "countMembers">;
  /** Runs a change, in a cluster as one of all nodes and with its time. */
  change: <Result>(work: (now?: Date) => Result) => Promise<Result>;
  onError: (error: unknown) => void;
}

/** Counts each cohort once a day. */
export class CohortSizeMonitor {
  private readonly tasks: PeriodicTasks;

  constructor(private readonly deps: CohortSizeDeps) {
    this.tasks = new PeriodicTasks(deps.onError);
  }

  /** Counts at an interval until the signal is aborted. */
  start(intervalMs: number, stopping: AbortSignal): void {
    this.tasks.every(intervalMs, () => this.check(new Date(), stopping));
    stopping.addEventListener("abort", () => this.tasks.stop(), { once: true });
  }

  /** Counts the cohorts without a size of today, one at a time; a failed one is retried at the next check. */
  async check(now: Date, stopping?: AbortSignal): Promise<void> {
    for (const { id, projectId, isStatic } of this.uncounted(now)) {
      if (stopping?.aborted) return;
      const count = await this.countOne(id, projectId, isStatic).catch(this.deps.onError);
      if (count === undefined) continue;
      await this.deps
        .change((at = now) => this.deps.metadata.change((t) => store(t, id, count, at)))
        .catch(this.deps.onError);
    }
  }

  private async countOne(id: number, projectId: number, isStatic: boolean): Promise<number> {
    if (isStatic) return (await this.deps.persons.cohortSizes([id])).get(id)!;
    return await this.deps.cohortFiller.countMembers(projectId, id);
  }

  private uncounted(now: Date) {
    const { db } = this.deps.metadata;
    const ofToday = db
      .select({ one: sql`1` })
      .from(cohortSize)
      .where(and(eq(cohortSize.cohortId, cohort.id), eq(cohortSize.day, toDay(now))));
    return db
      .select({ id: cohort.id, projectId: cohort.projectId, isStatic: cohort.isStatic })
      .from(cohort)
      .where(and(eq(cohort.deleted, false), eq(cohort.isCalculating, false), hasMembers, notExists(ofToday)))
      .orderBy(asc(cohort.id))
      .limit(cohortsPerCheck)
      .all();
  }
}

/** A cohort that was changed meanwhile has a newer count. */
function store(t: MetadataTx, id: number, count: number, now: Date): void {
  const current = t.select().from(cohort).where(eq(cohort.id, id)).get();
  if (current === undefined || current.deleted || current.isCalculating) return;
  const ofToday = and(eq(cohortSize.cohortId, id), eq(cohortSize.day, toDay(now)));
  if (t.select().from(cohortSize).where(ofToday).get() !== undefined) return;
  // The count of a static cohort is never stored: members leave when persons are deleted or merged.
  if (!current.isStatic)
    t.update(cohort).set({ personCount: count, lastCalculation: now }).where(eq(cohort.id, id)).run();
  recordSize(t, id, count, now);
}
