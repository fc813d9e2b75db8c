/**
 * What the management routes ask of the rest of the appliance: whatever needs the event store, or writes
 * to the people store.
 */

import type { JsonObject } from "../accounts/schema.ts";
import type { Reach, ReachRequest } from "../engine/query-types.ts";
import type { Person } from "../people/person.ts";

/** Condition sets, joined by OR, and what they are about. */
export type ReachQuestion = Pick<ReachRequest, "sets" | "groupTypeIndex" | "flagKey">;

/** Which persons or groups conditions of a flag would choose. */
export interface PersonCounter {
  /**
   * Counts without changing anything.
   *
   * @throws {InvalidField} the conditions cannot be evaluated.
   * Source: contract, management-api 5.17; decision 18.
   */
  reach(projectId: number, question: ReachQuestion): Promise<Reach>;
  /** Persons that property filters, joined by AND, choose, by number: go on after the last one's `id`. */
  find(
    projectId: number,
    filters: readonly JsonObject[],
    page: { afterId?: number; limit: number },
  ): Promise<Person[]>;
}

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

/** Computes insights. */
export interface InsightQueries {
  /**
   * Runs the query of an insight.
   *
   * @param query    e.g. `{"kind": "InsightVizNode", "source": {"kind": "TrendsQuery", ...}}`.
   * @param timezone IANA name; days begin there.
   * @returns        the `result` of the insight: for trends one object per series.
   * @throws {InvalidField} the query is of a kind that is not known.
   */
  run(projectId: number, query: JsonObject, timezone: string, now: Date): Promise<JsonObject[]>;
}
