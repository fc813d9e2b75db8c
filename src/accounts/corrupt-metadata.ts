/** The error of a start that cannot read `flagkeep.sqlite`. */

import { AppError, firstLine } from "../lib/errors.ts";

/** The store of organizations, projects, keys and flags is corrupt: the server cannot start without it. */
export class MetadataCorruptError extends AppError {
  readonly code = "metadata_corrupt";
  override readonly hint: string;
  /** @param advice how the last backup is restored, as a clause. */
  constructor(path: string, cause: unknown, advice: string) {
    super(`${path} is corrupt (${firstLine(cause).replace(/^flagkeep\.sqlite: /, "")}).`);
    this.hint = `Keep a copy of the data directory, then ${advice}.`;
  }
}
