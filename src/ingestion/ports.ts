/** Dependencies of the capture routes, which the server passes in. Types only. */

import type { JournalPort } from "../journal/journal.ts";

/** The durable, ordered log of accepted events, written before they are acknowledged. */
export type JournalSink = Pick<JournalPort, "append">;

/** Project settings for capture. */
export interface CaptureProject {
  readonly id: number;
  /** The project does not store client addresses. */
  readonly anonymizeIps: boolean;
}

/** Finds a project by its public key; in memory, because it is called once per request. */
export interface ProjectDirectory {
  findByToken(token: string): CaptureProject | undefined;
}

/** Dependencies of the routes. Tests replace the optional ones. */
export interface CaptureDeps {
  readonly journal: JournalSink;
  readonly projects: ProjectDirectory;
  /** Epoch microseconds, UTC. */
  readonly nowMicros?: () => number;
  /** Generates the UUID of an event that has none; lower case, hyphenated. */
  readonly generateUuid?: () => string;
}
