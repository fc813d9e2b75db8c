/** Dependencies of flag evaluation over HTTP, which the server passes in. */

import type { SubjectReader } from "../../persons/person-reader.ts";
import type { FlagSet } from "../evaluate/model.ts";
import type { OverrideWriter } from "../evaluation-context/override-writer.ts";

/** Project settings for evaluation. */
export interface EvaluatedProject {
  readonly id: number;
  /** The public key. */
  readonly apiToken: string;
  /** IANA name. */
  readonly timezone: string;
}

export interface EvaluationDeps {
  /** Finds a project by its public key; in memory, because every request calls it. */
  readonly projects: { findByToken(token: string): EvaluatedProject | undefined };
  /** The current compiled flags of a project. */
  readonly flagSets: { get(projectId: number): { set: FlagSet; configuration: string } };
  readonly persons: SubjectReader;
  readonly overrides: OverrideWriter;
  /** URL by which clients reach this server; absent: from the request. */
  readonly publicUrl?: string;
  /** Fires when the server stops; endless responses end then. */
  readonly stopping?: AbortSignal;
  /** Whether clients load their surveys: one is running; absent: never. */
  readonly hasSurveys?: (projectId: number) => boolean;
  /** Called with internal errors; the client gets a response nevertheless. */
  readonly onError: (error: unknown) => void;
  /** Milliseconds since 1970; replaced in tests. */
  readonly now?: () => number;
}
