/** What an import needs of the appliance that it loads events into. */

import type { ReachedAppliance } from "../../cli/reach.ts";
import type { ImportBatch, LastSeqs } from "./control-route.ts";

export interface ImportTarget {
  /**
   * Stores a batch of events in the historical lane, all or none; resolves once they are on disk.
   *
   * @param texts JSON texts of events as `/batch/` takes them.
   */
  send(texts: string[]): Promise<void>;
  /** How many of these uuids are stored. */
  countKnown(uuids: string[]): Promise<number>;
  /** The last sequence number of the historical lane. */
  lastSeq(): Promise<number>;
  /** Resolves once the historical lane can be read up to this sequence number. */
  waitUntilLoaded(seq: number): Promise<void>;
}

export function importTarget(appliance: ReachedAppliance, projectId: number): ImportTarget {
  return {
    async send(events) {
      const batch: ImportBatch = { project_id: projectId, events };
      await appliance.tell("import_batch", batch);
    },
    countKnown: (uuids) => appliance.ask("countKnown", { projectId, uuids }),
    lastSeq: async () => (await appliance.tell<LastSeqs>("last_seqs")).historical,
    waitUntilLoaded: (historical) => appliance.waitUntilLoaded({ historical }),
  };
}
