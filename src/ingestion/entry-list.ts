/** The entries of a request: lines of its events, and notes about them. */

import type { EntryText, EntryWriter } from "../journal/entry.ts";
import type { Outcome, Warning, WarningType } from "./outcome.ts";

/** Two bytes of a body can be an event that is dropped; its note would be 50 times as long. */
const notesInFullMax = 10_000;

export class EntryList {
  private readonly entries: EntryText[] = [];
  private notes = 0;
  private readonly further = new Map<
    string,
    { kind: "warning" | "drop"; type: WarningType; count: number }
  >();

  constructor(private readonly writer: EntryWriter) {}

  /** What became of an event. */
  add(outcome: Outcome): void {
    if (outcome.kind === "event") {
      this.entries.push(this.writer.event(outcome.event));
      for (const warning of outcome.warnings) this.note("warning", warning);
    } else if (outcome.kind === "dropped") {
      this.note("drop", outcome.reason);
    } else {
      this.note("warning", outcome.warning);
    }
  }

  /** Lines of events that are written already, as UTF-8. */
  addLines(lines: readonly Uint8Array[]): void {
    for (const line of lines) this.entries.push(line);
  }

  /** All entries: the first notes in full, of a flood of further ones only how many. */
  end(): EntryText[] {
    for (const { kind, type, count } of this.further.values()) {
      this.entries.push(this.writer.note(kind, { type, details: { count } }));
    }
    return this.entries;
  }

  private note(kind: "warning" | "drop", warning: Warning): void {
    if (this.notes < notesInFullMax) {
      this.notes++;
      this.entries.push(this.writer.note(kind, warning));
      return;
    }
    const key = `${kind} ${warning.type}`;
    const seen = this.further.get(key);
    if (seen !== undefined) seen.count++;
    else this.further.set(key, { kind, type: warning.type, count: 1 });
  }
}
