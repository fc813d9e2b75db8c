/** What the capture routes need from the rest of the appliance. The appliance passes these in; nothing here is implemented. */

import type { JournalPort } from "../journal/journal.ts";

/** The durable, ordered log that every accepted event goes to before it is acknowledged. */
export type JournalSink = Pick<JournalPort, "append">;

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
