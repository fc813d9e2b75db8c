/** What flag evaluation over HTTP needs from the rest of the appliance. */

import type { PeopleDb } from "../../../people/open.ts";
import type { FlagSet } from "../../evaluate/model.ts";
import type { OverrideWriter } from "../../subject/override-writer.ts";

/** What evaluation must know about a project. */
export interface EvaluatedProject {
  readonly id: number;
  /** The public key. */
  readonly apiToken: string;
  /** IANA name. */
  readonly timezone: string;
}

export interface EvaluationDependencies {
  /** Finds a project by its public key; in memory, because every request asks. */
  readonly projects: { findByToken(token: string): EvaluatedProject | undefined };
  /** The compiled flags of a project as they are now. */
  readonly flagSets: { of(projectId: number): { set: FlagSet; configuration: string } };
  /** Persons and groups; opened for reading. */
  readonly people: PeopleDb;
  readonly overrides: OverrideWriter;
  /** Where clients reach this server; absent: as they asked. */
  readonly publicUrl?: string;
  /** Fires when the server stops; answers that have no end of their own end then. */
  readonly stopping?: AbortSignal;
  /** Told of failures that are ours; the client gets an answer all the same. */
  readonly onTrouble: (error: unknown) => void;
  /** Milliseconds since 1970; replaced in tests. */
  readonly now?: () => number;
}
