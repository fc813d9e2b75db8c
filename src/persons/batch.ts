/** Input of the person store from the pipeline. */

import type { JournalEvent, JournalItem } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import type { Operations } from "./identity/operations.ts";
import type { DistinctId } from "./identity/persons-state.ts";
import type { SpikeSignal } from "./spike-detector.ts";

/** Events dropped because their UUID was known; counted per project, lane and UTC day. */
export interface DuplicateCount {
  projectId: number;
  receivedMicros: number;
  historical: boolean;
  count: number;
}

/** Consecutive items of a lane. */
export interface PersonBatch {
  /** Ordered by `seq`, possibly with gaps. Items up to the lane's cursor have no effect. */
  items: readonly JournalItem[];
  duplicates: readonly DuplicateCount[];
}

/** Batches of a lane that are committed together. */
export interface IdentityStep {
  /** Must not retain items after it returns: their properties become invalid. */
  add(batch: PersonBatch): void | Promise<void>;

  /** Whether so much is in memory that the step should be committed. */
  readonly isFull: boolean;

  /**
   * Commits everything with the lane's cursor atomically; the last call.
   * @param lastSeq the new cursor @returns spikes that started or ended
   * @throws errors of the store; nothing was changed
   */
  commit(lastSeq: number): SpikeSignal[] | Promise<SpikeSignal[]>;

  /** Discards what was added, instead of `commit`. */
  abandon(): void;
}

/**
 * The pipeline's view of the store of persons, groups, warnings and usage. One caller at a time.
 * `test/persons/identity-store-conformance.ts` tests the contract of this interface.
 */
export interface IdentityStore {
  /** The last applied sequence number of a lane; 0 initially. */
  cursor(lane: Lane): number;

  /** Starts a step; only one may be open. */
  start(lane: Lane): IdentityStep | Promise<IdentityStep>;
}

/** An event and its operations. */
export interface PlannedEvent {
  event: JournalEvent;
  operations: Operations;
  /** The event's distinct ID, if it was in memory when the event was planned. */
  own?: DistinctId;
}
