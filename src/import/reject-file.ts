/** The file of rejected records: one line of JSON each, with the line number and the reason. */

import { appendFileSync, constants, lstatSync, rmSync, statSync, truncateSync } from "node:fs";
import type { JsonObject } from "../lib/json/value.ts";

/** Default maximum of rejects in a file. */
export const rejectsMaxDefault = 10_000;

export interface Reject {
  line: number;
  reason: string;
  /** The readable part. */
  record: JsonObject | string | null;
}

/** Longer records are truncated: they are not useful to read, and must not fill the disk. */
const textLengthMax = 10_000;
const { O_WRONLY, O_APPEND, O_CREAT, O_NOFOLLOW } = constants;

export class RejectFile {
  private bytes = 0;

  constructor(readonly path: string) {}

  /** Length written so far. */
  get length(): number {
    return this.bytes;
  }

  /** Truncates to the length that an earlier run has reached: later rejects are found again. */
  start(bytes: number): void {
    const found = statSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
    this.bytes = Math.min(bytes, found);
    if (this.bytes === 0) {
      // lstat: a link of this name may be dangling.
      if (lstatSync(this.path, { throwIfNoEntry: false }) !== undefined) rmSync(this.path, { force: true });
    } else if (found > this.bytes) truncateSync(this.path, this.bytes);
  }

  append(rejects: readonly Reject[]): void {
    if (rejects.length === 0) return;
    const lines = rejects.map(({ line, reason, record }) => {
      const text = typeof record === "string" ? record : JSON.stringify(record);
      const shown = text.length <= textLengthMax ? record : text.slice(0, textLengthMax).toWellFormed();
      return `${JSON.stringify({ line, reason, record: shown })}\n`;
    });
    const text = Buffer.from(lines.join(""));
    // A link of this name could lead to an unrelated file.
    const flag = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW;
    appendFileSync(this.path, text, { mode: 0o600, flush: true, flag: flag as never });
    this.bytes += text.length;
  }
}
