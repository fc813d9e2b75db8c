/** What the routes under `/api` are given. */

import type { Metadata } from "../accounts/metadata.ts";
import type { FlagSets } from "../flags/store/flag-sets.ts";
import type { FlagWriting, PayloadCipher } from "../flags/store/flag-writes.ts";
import type { PeopleDb } from "../people/open.ts";
import type { CohortFiller, InsightQueries, PersonCounter } from "./ports.ts";

export interface ManagementDeps {
  metadata: Metadata;
  /** Persons and groups; opened for reading. */
  people: PeopleDb;
  /** The flags of each project, compiled; shared with the routes that evaluate flags. */
  flagSets: FlagSets;
  /** Encrypts the payloads that are secret. */
  payloads: PayloadCipher;
  personCounter: PersonCounter;
  cohortFiller: CohortFiller;
  /** Absent: insights come without results. */
  insights?: InsightQueries;
  /** Where failures of work that goes on after the answer are written. */
  log: { error(facts: Record<string, unknown>, message: string): void };
}

/** What the store needs to write flags. */
export const writingOf = (deps: ManagementDeps): FlagWriting => ({
  metadata: deps.metadata,
  payloads: deps.payloads,
});
