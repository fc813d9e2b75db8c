/** The port for changes of persons that are no events: cohort memberships and hash keys. */

import { addCohortMembers, type PersonNames } from "./cohort-members.ts";
import { addHashKeyOverrides, type NewOverrides } from "./hash-key-overrides.ts";
import type { PersonsDb } from "./open.ts";

export interface PersonWriter {
  /** Adds persons to a static cohort; unknown names are ignored. */
  addCohortMembers(projectId: number, cohortId: number, names: PersonNames): Promise<void>;
  /**
   * Stores a hash key for every person found by the distinct IDs, and for IDs without a person. Existing overrides win.
   * @returns the number of overrides stored for persons
   */
  addHashKeyOverrides(projectId: number, overrides: NewOverrides): Promise<number>;
}

/** @param change runs a change of the store, in a cluster as a commit */
export function sqlitePersonWriter(
  people: PersonsDb,
  change: <Result>(run: () => Result) => Promise<Result>,
): PersonWriter {
  return {
    addCohortMembers: async (projectId, cohortId, names) => {
      await change(() => addCohortMembers(people, projectId, cohortId, names));
    },
    addHashKeyOverrides: (projectId, overrides) =>
      change(() => addHashKeyOverrides(people, projectId, overrides)),
  };
}
