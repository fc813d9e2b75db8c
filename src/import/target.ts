/** What an import needs of the appliance that it loads events into. */

import type { Analysis } from "../engine/analysis.ts";
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

/** An appliance that is asked again while it starts. */
export interface ImportAppliance {
  ask(name: "countKnown", request: Parameters<Analysis["countKnown"]>[0]): ReturnType<Analysis["countKnown"]>;
  tell<Answer>(name: string, request?: unknown): Promise<Answer>;
  waitUntilLoaded(seqs: Partial<LastSeqs>): Promise<void>;
}

export function importTarget(appliance: ImportAppliance, projectId: number): ImportTarget {
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
