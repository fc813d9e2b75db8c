/** When an import ends before the end of its files: what is wrong with them is said, and nothing more is taken. */

import { AppError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json.ts";
import { type RecordFormat, titleOf } from "./map/formats.ts";
import type { Reject } from "./reject-file.ts";

/** When so many records at the beginning of a file are no events, none of it will be. */
export const recordsOfDoubt = 1_000;
/** Names of fields that a message shows. */
const keysShown = 12;

/** The import ends before the end of its files: going on would be of no use. */
export class ImportStopped extends AppError {
  readonly code = "import_stopped";
  constructor(
    message: string,
    override readonly hint: string,
  ) {
    super(message);
  }
}

export function tooManyRejects(name: string, rejectPath: string, { line, reason }: Reject): ImportStopped {
  return new ImportStopped(
    `Too many records are rejected: ${name}, line ${line} (${reason}).`,
    `See ${rejectPath}; --max-rejects with --resume goes on from here.`,
  );
}

/** Whether everything from the beginning is rejected: the file is of another kind than was said then. */
export class Doubts {
  private isOver = false;
  /** How often each was met. */
  private readonly reasons = new Map<string, number>();

  /** An event was met. */
  get areOver(): boolean {
    return this.isOver;
  }

  end(): void {
    this.isOver = true;
  }

  /**
   * Takes note of rejects behind which there was no event yet.
   *
   * @param seems what the file looks like, when it was taken for something else.
   * @returns why the import ends here.
   */
  add(rejects: readonly Reject[], name: string, seems: RecordFormat | undefined): ImportStopped | undefined {
    if (this.isOver) return undefined;
    for (const { reason } of rejects) this.reasons.set(reason, (this.reasons.get(reason) ?? 0) + 1);
    const count = [...this.reasons.values()].reduce((sum, each) => sum + each, 0);
    if (count < recordsOfDoubt) return undefined;
    const reasons = [...this.reasons].sort(([, one], [, other]) => other - one).map(([reason]) => reason);
    const sample = rejects.find(({ record }) => record !== null && typeof record === "object")?.record;
    const keys = sample === undefined ? [] : Object.keys(sample as JsonObject).slice(0, keysShown);
    const shape = keys.length === 0 ? "" : ` Its records have ${keys.join(", ")}.`;
    const guess = seems === undefined ? "" : `It looks like ${titleOf(seems)} (--format ${seems}). `;
    return new ImportStopped(
      `The first ${count} records of ${name} were all rejected (${reasons.join(", ")}).${shape}`,
      `${guess}Say what the file is with --format, or where the fields of an event are with --map.`,
    );
  }
}
