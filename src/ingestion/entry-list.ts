/** The journal entries of a request: events, and notes about them. */

import type { EntryJson, EntryWriter } from "../journal/entry.ts";
import type { Outcome, Warning, WarningType } from "./outcome.ts";

/** Two bytes of a body can be an event that is dropped; its note is 50 times as long. */
const notesInFullMax = 10_000;

/** Counts the notes of a request; shared by all parts of a large body. */
export class NoteCount {
  private inFull = 0;
  private readonly further = new Map<
    string,
    { kind: "warning" | "drop"; type: WarningType; count: number }
  >();

  /** Counts a note. @returns whether it is written in full */
  add(kind: "warning" | "drop", type: WarningType): boolean {
    if (this.inFull < notesInFullMax) {
      this.inFull++;
      return true;
    }
    const key = `${kind} ${type}`;
    const seen = this.further.get(key);
    if (seen !== undefined) seen.count++;
    else this.further.set(key, { kind, type, count: 1 });
    return false;
  }

  /** Per kind, the number of notes that were not written in full. */
  end(writer: EntryWriter): EntryJson[] {
    return [...this.further.values()].map(({ kind, type, count }) =>
      writer.note(kind, { type, details: { count } }),
    );
  }
}

export class EntryList {
  private readonly entries: EntryJson[] = [];

  private readonly notes: NoteCount;

  /** @param shared the notes of the whole request; the caller ends them. */
  constructor(
    private readonly writer: EntryWriter,
    private readonly shared?: NoteCount,
  ) {
    this.notes = shared ?? new NoteCount();
  }

  /** Adds the outcome of an event. */
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

  /** Adds serialized events, as UTF-8. */
  addLines(lines: readonly Uint8Array[]): void {
    for (const line of lines) this.entries.push(line);
  }

  /** All entries: the first notes in full, further ones only as counts. */
  end(): EntryJson[] {
    if (this.shared === undefined) this.entries.push(...this.notes.end(this.writer));
    return this.entries;
  }

  private note(kind: "warning" | "drop", warning: Warning): void {
    if (this.notes.add(kind, warning.type)) this.entries.push(this.writer.note(kind, warning));
  }
}
