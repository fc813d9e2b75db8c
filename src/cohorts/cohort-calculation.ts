/** Calculates the members of cohorts, in the background or as part of a request. */

import type { Metadata } from "../accounts/metadata.ts";
import type { ExperimentRequest } from "../events/insights/experiment.ts";
import type { Person } from "../persons/person.ts";
import { type InterruptedCohort, markCalculating, recordCalculation } from "./cohorts.ts";

/** Each method resolves with the number of members when done, except `members`. */
export interface CohortCalculator {
  /** Adds every person for whom the flag is currently on. */
  addPersonsWithFlag(projectId: number, cohortId: number, flagId: number): Promise<number>;
  /** Adds everyone who was exposed to an experiment. */
  addExposedPersons(projectId: number, cohortId: number, request: ExperimentRequest): Promise<number>;
  /** Adds the persons of these distinct IDs; unknown IDs are ignored. */
  addDistinctIds(projectId: number, cohortId: number, distinctIds: readonly string[]): Promise<number>;
  /** Counts the members of a dynamic cohort by its current definition. */
  countMembers(projectId: number, cohortId: number): Promise<number>;
  /** Members of a static or dynamic cohort, ordered by ID; continue with `afterId` of the last one. */
  members(projectId: number, cohortId: number, page: { afterId?: number; limit: number }): Promise<Person[]>;
}

export interface CalculationDeps {
  metadata: Metadata;
  cohortFiller: CohortCalculator;
  /** Receives errors that occur after the response was sent. */
  log: { error(facts: Record<string, unknown>, message: string): void };
  /** Changes the metadata after the response, on all nodes of a cluster; default: directly. */
  afterwards?: (work: () => void) => Promise<void>;
}

/**
 * Starts a calculation and records its result; never rejects.
 * @param find resolves with the number of members
 * @returns resolves when the result is stored; requests must not wait for it, see `calculate`
 */
export function calculateInBackground(
  deps: CalculationDeps,
  cohortId: number,
  find: () => Promise<number>,
): Promise<void> {
  markCalculating(deps.metadata, cohortId);
  return filledLater(deps, cohortId, find);
}

/** Like `calculateInBackground`, for a request that waits for the result within its own change. */
export async function calculate(
  deps: CalculationDeps,
  cohortId: number,
  find: () => Promise<number>,
): Promise<void> {
  markCalculating(deps.metadata, cohortId);
  await filled(deps, cohortId, find, async (work) => work());
}

/** Calculates dynamic cohorts that are marked as calculating, one by one; never rejects. */
export async function countPending(
  deps: CalculationDeps,
  cohorts: readonly InterruptedCohort[],
): Promise<void> {
  for (const { id, projectId } of cohorts)
    await filledLater(deps, id, () => deps.cohortFiller.countMembers(projectId, id));
}

async function filledLater(
  deps: CalculationDeps,
  cohortId: number,
  find: () => Promise<number>,
): Promise<void> {
  const afterwards = deps.afterwards ?? (async (work) => work());
  await filled(deps, cohortId, find, afterwards).catch((error) =>
    deps.log.error({ cohortId, error: String(error) }, "failed to store the result of a cohort calculation"),
  );
}

async function filled(
  { metadata, log }: CalculationDeps,
  cohortId: number,
  find: () => Promise<number>,
  store: (work: () => void) => Promise<void>,
): Promise<void> {
  const count = await find().catch((error: unknown) => {
    log.error({ cohortId, error: String(error) }, "failed to calculate a cohort");
    return undefined;
  });
  await store(() => recordCalculation(metadata, cohortId, count, new Date()));
}
