/** Rules that abort an import before the end of its files, with a message about what is wrong. */

import { AppError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { getTitle, type RecordFormat } from "./map/formats.ts";
import type { Reject } from "./reject-file.ts";

/** A file whose first records, this many, are all rejected is aborted. */
export const sampleSize = 1_000;
/** Maximum number of field names in a message. */
const keysShown = 12;

/** The import was aborted: continuing would be useless. */
export class ImportAbortedError extends AppError {
  readonly code = "import_stopped";
  constructor(
    message: string,
    override readonly hint: string,
  ) {
    super(message);
  }
}

export function tooManyRejects(
  name: string,
  rejectPath: string,
  { line, reason }: Reject,
): ImportAbortedError {
  return new ImportAbortedError(
    `Too many records are rejected: ${name}, line ${line} (${reason}).`,
    `See ${rejectPath}; continue with --max-rejects and --resume.`,
  );
}

/** Detects that everything from the start is rejected: the file has another format than expected. */
export class AbortRules {
  private isOver = false;
  /** Count per reason. */
  private readonly reasons = new Map<string, number>();

  /** True after the first event. */
  get isExceeded(): boolean {
    return this.isOver;
  }

  end(): void {
    this.isOver = true;
  }

  /**
   * Adds rejects that no event has preceded.
   *
   * @param seems the detected format, if it differs from the one in use.
   * @returns why the import is aborted, if it is.
   */
  add(
    rejects: readonly Reject[],
    name: string,
    seems: RecordFormat | undefined,
  ): ImportAbortedError | undefined {
    if (this.isOver) return undefined;
    for (const { reason } of rejects) this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1);
    const count = [...this.reasons.values()].reduce((sum, each) => sum + each, 0);
    if (count < sampleSize) return undefined;
    const reasons = [...this.reasons].sort(([, one], [, other]) => other - one).map(([reason]) => reason);
    const sample = rejects.find(({ record }) => record !== null && typeof record === "object")?.record;
    const keys = sample === undefined ? [] : Object.keys(sample as JsonObject).slice(0, keysShown);
    const shape = keys.length === 0 ? "" : ` Its records have ${keys.join(", ")}.`;
    const guess = seems === undefined ? "" : `It looks like ${getTitle(seems)} (--format ${seems}). `;
    return new ImportAbortedError(
      `The first ${count} records of ${name} were all rejected (${reasons.join(", ")}).${shape}`,
      `${guess}Set the format with --format, or the fields of an event with --map.`,
    );
  }
}
