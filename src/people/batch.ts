/** What the pipeline hands to the store of persons. */

import type { JournalEvent, JournalItem } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import type { Operations } from "./identity/operations.ts";
import type { DistinctId } from "./identity/people-state.ts";
import type { SpikeSignal } from "./spikes/detector.ts";

/** Events that were left out because their uuid was known; counted per project, lane and UTC day. */
export interface DuplicateCount {
  projectId: number;
  receivedMicros: number;
  historical: boolean;
  count: number;
}

/** Some of a lane's items, behind those before. */
export interface PeopleBatch {
  /** In order of `seq`; sequence numbers may be missing. What the lane's cursor covers already has no effect again. */
  items: readonly JournalItem[];
  duplicates: readonly DuplicateCount[];
}

/** What a lane brings, batch after batch, to be committed together. */
export interface IdentityStep {
  /** Keeps nothing of the items once it has returned: their properties go. */
  add(batch: PeopleBatch): void | Promise<void>;

  /** So much is held in memory that it should be committed. */
  readonly isFull: boolean;

  /**
   * Stores everything that was added and moves the lane's cursor, both or neither; the last call.
   *
   * @param lastSeq the cursor afterwards.
   * @returns spikes that began or ended.
   * @throws  whatever the store throws; nothing was changed then.
   */
  commit(lastSeq: number): SpikeSignal[] | Promise<SpikeSignal[]>;

  /** Forgets what was added, in place of `commit`. */
  abandon(): void;
}

/**
 * The store of persons, groups, warnings and usage as the pipeline sees it.
 *
 * One caller at a time. `test/people/identity-store-conformance.ts` says in tests what is promised here.
 */
export interface IdentityStore {
  /** The last sequence number of a lane whose effects are in the store; 0 at first. */
  cursor(lane: Lane): number;

  /** Begins a step, of which there is one at a time. */
  begin(lane: Lane): IdentityStep | Promise<IdentityStep>;
}

/** An event and what it asks for. */
export interface PlannedEvent {
  event: JournalEvent;
  operations: Operations;
  /** The event's own id, if it was in memory when the event was looked at. */
  own?: DistinctId;
}
