/** Looks for the members of a cohort after the answer has gone out. */

import type { Metadata } from "../accounts/metadata.ts";
import type { Person } from "../people/person.ts";
import { type InterruptedCohort, markCalculating, recordCalculation } from "./cohorts.ts";

/** Fills cohorts. Each method resolves with the number of members when it is done. */
export interface CohortFiller {
  /** Adds every person for whom the flag is on now. */
  addPersonsWithFlag(projectId: number, cohortId: number, flagId: number): Promise<number>;
  /** Adds the persons of these distinct ids; ids that nobody has are passed over. */
  addDistinctIds(projectId: number, cohortId: number, distinctIds: readonly string[]): Promise<number>;
  /** Counts the members of a dynamic cohort as it is defined now. */
  countMembers(projectId: number, cohortId: number): Promise<number>;
  /** Members of a cohort of either kind, by number: go on after the last one's `id`. */
  members(projectId: number, cohortId: number, page: { afterId?: number; limit: number }): Promise<Person[]>;
}

/** What looking for members needs. */
export interface FillingDeps {
  metadata: Metadata;
  cohortFiller: CohortFiller;
  /** Where failures of work that goes on after the answer are written. */
  log: { error(facts: Record<string, unknown>, message: string): void };
  /** Changes the metadata after an answer, for all fronts where there are several; left out: there is one. */
  afterwards?: (work: () => void) => Promise<void>;
}

/**
 * Starts to look for members and remembers how that ended; never throws.
 *
 * @param find resolves with the number of members.
 * @returns    resolves when the outcome is stored; no request may wait for it, see `fillNow`.
 */
export function fillInBackground(
  deps: FillingDeps,
  cohortId: number,
  find: () => Promise<number>,
): Promise<void> {
  markCalculating(deps.metadata, cohortId);
  return filledLater(deps, cohortId, find);
}

/** The same while a request waits for it, whose own change it is part of. */
export async function fillNow(
  deps: FillingDeps,
  cohortId: number,
  find: () => Promise<number>,
): Promise<void> {
  markCalculating(deps.metadata, cohortId);
  await filled(deps, cohortId, find, async (work) => work());
}

/** Counts the members of dynamic cohorts that are marked already, one after the other; never throws. */
export async function countMarked(deps: FillingDeps, cohorts: readonly InterruptedCohort[]): Promise<void> {
  for (const { id, projectId } of cohorts)
    await filledLater(deps, id, () => deps.cohortFiller.countMembers(projectId, id));
}

async function filledLater(deps: FillingDeps, cohortId: number, find: () => Promise<number>): Promise<void> {
  const afterwards = deps.afterwards ?? (async (work) => work());
  await filled(deps, cohortId, find, afterwards).catch((error) =>
    deps.log.error({ cohortId, error: String(error) }, "what became of a cohort could not be stored"),
  );
}

async function filled(
  { metadata, log }: FillingDeps,
  cohortId: number,
  find: () => Promise<number>,
  store: (work: () => void) => Promise<void>,
): Promise<void> {
  const count = await find().catch((error: unknown) => {
    log.error({ cohortId, error: String(error) }, "the members of a cohort could not be computed");
    return undefined;
  });
  await store(() => recordCalculation(metadata, cohortId, count, new Date()));
}
