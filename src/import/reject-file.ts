/** The file of the records that are no events: one line of JSON each, with the line number and the reason. */

import { appendFileSync, rmSync, statSync, truncateSync } from "node:fs";
import type { JsonObject } from "../lib/json.ts";

export interface Reject {
  line: number;
  reason: string;
  /** What could be read. */
  record: JsonObject | string | null;
}

/** Longer texts are no use to look at. */
const textLengthMax = 10_000;

export class RejectFile {
  private bytes = 0;

  constructor(readonly path: string) {}

  /** Length of the file as far as it was written. */
  get length(): number {
    return this.bytes;
  }

  /** Begins at the length that an earlier run has reached: what is behind it is found again. */
  begin(bytes: number): void {
    const found = statSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
    this.bytes = Math.min(bytes, found);
    if (this.bytes === 0) rmSync(this.path, { force: true });
    else if (found > this.bytes) truncateSync(this.path, this.bytes);
  }

  append(rejects: readonly Reject[]): void {
    if (rejects.length === 0) return;
    const lines = rejects.map(({ line, reason, record }) => {
      const shown = typeof record === "string" ? record.slice(0, textLengthMax) : record;
      return `${JSON.stringify({ line, reason, record: shown })}\n`;
    });
    const text = Buffer.from(lines.join(""));
    appendFileSync(this.path, text, { mode: 0o600, flush: true });
    this.bytes += text.length;
  }
}
