/** The event store as the pipeline sees it: whatever keeps events stands behind this. */

import type { StorableEvent } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";

/** Loading was told to stop; the batch is loaded by the next engine. */
export class LoadGivenUp extends AppError {
  readonly code = "load_given_up";
  constructor() {
    super("Loading was given up.");
  }
}

/** Events that were staged are not stored, and have to be loaded in the old way. */
export class StagingFailed extends AppError {
  readonly code = "staging_failed";
  constructor(cause: unknown) {
    super(`Events could not be stored in advance: ${cause instanceof Error ? cause.message : cause}`);
    this.cause = cause;
  }
}

/** What of an event tells whether it is stored already. */
export type EventIdentity = Pick<StorableEvent, "seq" | "uuid" | "projectId">;

/**
 * Keeps events and, per lane, how far it has come.
 *
 * One caller at a time. `test/events/event-store-conformance.ts` says in tests what is promised here.
 */
export interface EventStore {
  /** The last sequence number of a lane whose events can be read; 0 at first. */
  cursor(lane: Lane): number;

  /**
   * A batch that was begun and is loaded before any other, with the same border: it may have reached the store. None where
   * loading leaves no doubt.
   */
  unfinished(): { lane: Lane; last: number } | undefined;

  /** Fixes the border of the next batch, before anything else is done with it; the same border again changes nothing. */
  begin(load: { lane: Lane; last: number }): void;

  /** So many events are best loaded together, and no more; undefined: as many as there are. */
  readonly eventsPerLoad?: number;

  /**
   * Tells which events are stored already. Those of the batch that was begun do not count.
   *
   * @param events of one lane.
   * @returns      the sequence numbers of those whose uuid is stored in the same project, whichever lane it came by.
   */
  known(events: readonly EventIdentity[]): Promise<Set<number>>;

  /** Whether certainly no event of a project with this uuid is stored, or being stored; false where that is not known. */
  isNew?(projectId: number, uuid: string): boolean;

  /**
   * Takes some events of the next `load`, which makes them readable, so that nobody need hold them until then. Does not look
   * at them once it has returned. Nothing but `known` may come in between.
   *
   * Absent where events cannot be stored in advance.
   *
   * @throws {StagingFailed} here and in that `load`: nothing is stored of what was staged, which ends it.
   */
  stage?(events: readonly StorableEvent[]): Promise<void>;

  /** Forgets what was staged, in place of `load`. */
  unstage?(): Promise<void>;

  /**
   * Makes events readable and moves the lane's cursor, both or neither. After a failure it may be called again with the same
   * events, which are stored once all the same.
   *
   * @param last   the cursor afterwards.
   * @param events none of them known. Those that were staged come before them.
   */
  load(lane: Lane, last: number, events: readonly StorableEvent[]): Promise<void>;

  /**
   * Makes what was loaded survive the loss of the journal.
   *
   * @returns false when that cannot be at this moment; nothing was done then.
   */
  checkpoint(): Promise<boolean>;

  /** Ends attempts that go on for as long as the store is away; `load` and `known` throw `LoadGivenUp` then. */
  giveUp(): void;
}
