/** What the capture routes need from the rest of the appliance. The appliance passes these in; nothing here is implemented. */

import type { EntryText } from "../journal/entry.ts";
import type { Lane } from "../journal/segment.ts";

/** The durable, ordered log that every accepted event goes to before it is acknowledged. */
export interface JournalSink {
  /**
   * Appends lines and resolves once they are on disk.
   *
   * @param entries each the text of one JSON object, or its UTF-8, without its `{` and without a sequence number, on one
   *                line; they stay together and in this order.
   * @returns the sequence number of the first entry; the rest follow without gaps.
   * @throws an error whose `code` is `"journal_unavailable"`: nothing was written, the client should come again.
   */
  append(lane: Lane, entries: readonly EntryText[]): Promise<number>;
}

/** What capture must know about a project. */
export interface CaptureProject {
  readonly id: number;
  /** The project's owner does not want client addresses kept. */
  readonly anonymizeIps: boolean;
}

/** Finds a project by its public key; in memory, because it is asked once per request. */
export interface ProjectDirectory {
  findByToken(token: string): CaptureProject | undefined;
}

/** Everything the routes are given. What is optional is replaced in tests. */
export interface CaptureDependencies {
  readonly journal: JournalSink;
  readonly projects: ProjectDirectory;
  /** Epoch microseconds, UTC. */
  readonly nowMicros?: () => number;
  /** Makes the uuid of an event that came without one; lower case, hyphenated. */
  readonly makeUuid?: () => string;
}
