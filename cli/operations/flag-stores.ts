/** Dependencies of flag and cohort operations, in a separate file: other commands start without this code. */

import type { CohortCalculator } from "../../src/cohorts/cohort-calculation.ts";
import { FlagSets, type GroupTypeSource, groupTypesFrom } from "../../src/flags/store/flag-sets.ts";
import type { PayloadCipher } from "../../src/flags/store/flag-writes.ts";
import { payloadCipher } from "../../src/flags/store/payload-cipher.ts";
import { openPayloadKey } from "../../src/flags/store/payload-key.ts";
import { paths } from "../../src/paths.ts";
import { getDataDir } from "../settings.ts";
import { LocalStores } from "./local-stores.ts";

export class FlagStores extends LocalStores {
  private openedFlagSets: FlagSets | undefined;
  private openedPayloads: PayloadCipher | undefined;

  get groupTypes(): GroupTypeSource {
    return groupTypesFrom(this.people);
  }

  get flagSets(): FlagSets {
    this.openedFlagSets ??= new FlagSets(this.metadata, this.groupTypes);
    return this.openedFlagSets;
  }

  get payloads(): PayloadCipher {
    const { payloadKey } = paths(getDataDir(this.options as Record<string, unknown>));
    this.openedPayloads ??= payloadCipher(openPayloadKey(payloadKey, this.metadata));
    return this.openedPayloads;
  }
}

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
