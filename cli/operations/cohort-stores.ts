/** Dependencies of cohort operations, in a separate file: other commands start without this code. */

import type { CohortCalculator } from "../../src/cohorts/cohort-calculation.ts";
import { FlagStores } from "./flag-stores.ts";

/** Only a server has the engine: the cohort stays marked, and the next start of the server counts its members. */
const later = () => new Promise<never>(() => undefined);

export class CohortStores extends FlagStores {
  readonly cohortFiller: CohortCalculator = {
    addPersonsWithFlag: later,
    addExposedPersons: later,
    addDistinctIds: later,
    countMembers: later,
    members: later,
  };
  readonly log = { error: () => undefined };
}
