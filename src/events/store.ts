/** The pipeline's interface to the event store, independent of the engine. */

import type { StorableEvent } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";

/** Loading was cancelled; the next engine loads the batch. */
export class LoadCancelledError extends AppError {
  readonly code = "load_given_up";
  constructor() {
    super("Loading was cancelled.");
  }
}

/** Staged events are not stored and have to be loaded without staging. */
export class StagingError extends AppError {
  readonly code = "staging_failed";
  constructor(cause: unknown) {
    super(`failed to store events in advance: ${cause instanceof Error ? cause.message : cause}`);
    this.cause = cause;
  }
}

/** The fields that identify a stored event. */
export type EventIdentity = Pick<StorableEvent, "seq" | "uuid" | "projectId">;

/**
 * Stores events and a cursor per lane. One caller at a time. `test/events/event-store-conformance.ts` tests the
 * contract of this interface.
 */
export interface EventStore {
  /** The last visible sequence number of a lane; 0 initially. */
  cursor(lane: Lane): number;

  /**
   * A started batch, which may have reached the store: it has to be loaded first, with the same end. Undefined if
   * loading is atomic.
   */
  unfinished(): { lane: Lane; last: number } | undefined;

  /** Fixes the end of the next batch before any other step; repeating it has no effect. */
  start(load: { lane: Lane; last: number }): void;

  /** Optimal and maximum number of events per load; undefined: unlimited. */
  readonly eventsPerLoad?: number;

  /**
   * Finds events that are already stored, excluding those of the started batch.
   * @param events of one lane
   * @returns sequence numbers of the events whose UUID is stored in the same project, in either lane
   */
  known(events: readonly EventIdentity[]): Promise<Set<number>>;

  /** Whether certainly no event of the project with this UUID is stored or being stored; false if unknown. */
  isNew?(projectId: number, uuid: string): boolean;

  /**
   * Stages events of the next `load`, which makes them visible, so that the caller need not hold them. Does not retain
   * the array. Only `known` may be called in between. Absent if the store cannot stage events.
   * @throws {StagingError} here or in that `load`: all staged events are discarded
   */
  stage?(events: readonly StorableEvent[]): Promise<void>;

  /** Discards staged events, instead of `load`. */
  unstage?(): Promise<void>;

  /**
   * Makes events visible and moves the lane's cursor, atomically. After an error it may be repeated with the same
   * events, which are stored once. @param last the new cursor
   * @param events none of them known; staged events precede them
   */
  load(lane: Lane, last: number, events: readonly StorableEvent[]): Promise<void>;

  /**
   * Makes loaded events durable without the journal.
   * @returns false if that is currently impossible; nothing was done
   */
  checkpoint(): Promise<boolean>;

  /** Ends retries while the store is unavailable: `load` and `known` throw `LoadCancelledError`. */
  cancel(): void;
}
