/** What the pipeline hands to the store of persons. */

import type { JournalEvent, JournalItem } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import type { Operations } from "./identity/operations.ts";
import type { SpikeSignal } from "./spikes/detector.ts";

/** Events that were left out because their uuid was known; counted per project, lane and UTC day. */
export interface DuplicateCount {
  projectId: number;
  receivedMicros: number;
  historical: boolean;
  count: number;
}

/** One step of the pipeline: everything between the lane's cursor and `lastSeq`, without duplicates. */
export interface PeopleBatch {
  lane: Lane;
  /** The lane's cursor afterwards. */
  lastSeq: number;
  /** In order of `seq`; sequence numbers may be missing. */
  items: readonly JournalItem[];
  duplicates: readonly DuplicateCount[];
}

/**
 * The store of persons, groups, warnings and usage as the pipeline sees it.
 *
 * One caller at a time. `test/people/identity-store-conformance.ts` says in tests what is promised here.
 */
export interface IdentityStore {
  /** The last sequence number of a lane whose effects are in the store; 0 at first. */
  cursor(lane: Lane): number;

  /**
   * Applies a batch and moves the lane's cursor, both or neither. What the cursor covers already has no effect again.
   *
   * @returns spikes that began or ended.
   * @throws  whatever the store throws; nothing was changed then.
   */
  apply(batch: PeopleBatch): SpikeSignal[] | Promise<SpikeSignal[]>;
}

/** An event and what it asks for. */
export interface PlannedEvent {
  event: JournalEvent;
  operations: Operations;
}
