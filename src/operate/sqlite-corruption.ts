/** Remembers corruption of the SQLite stores that a read, a write or the check has met: for readiness, metrics and `status`. */

import { readLastBackup } from "../backup/last-backup.ts";
import { isCorruptSqlite } from "../lib/errors.ts";
import { shellWord } from "../lib/terminal-text.ts";
import type { CorruptFile } from "./sqlite-check.ts";

/**
 * Kept until the server starts again: the next read may hit a part that is whole.
 *
 * Source: contract, third round C10 and C13.
 */
export class SqliteCorruption {
  /** Null: no read has failed. */
  reason: string | null = null;
  /** When both files were checked last; null: not since the start. */
  checkedAt: Date | null = null;
  /** Files that are known to be corrupt or missing. */
  readonly files = new Set<string>();
  /** Called once, when corruption is met of which the file is not known yet. */
  onUnknownFile: () => void = () => undefined;

  constructor(private readonly dataDir: string) {}

  /** Handles corruption reported by a read or write; other errors are ignored. */
  record(error: unknown): void {
    if (isCorruptSqlite(error)) this.recordUnknownFile();
  }

  /** Some process has met corruption in one of the files. */
  recordUnknownFile(): void {
    if (this.reason !== null) return;
    this.reason = `A SQLite store is corrupt and could not be read: ${restoreAdvice(this.dataDir)}.`;
    this.onUnknownFile();
  }

  /** Both files were checked. */
  recordChecked(corrupt: readonly CorruptFile[]): void {
    this.checkedAt = new Date();
    for (const { file, complaint } of corrupt) this.recordFile(file, `is corrupt (${complaint})`);
  }

  /** The file was missing from a data directory with events. @returns the reason */
  recordMissing(): string {
    return this.recordFile("people.sqlite", "is missing, persons and groups cannot be read");
  }

  /** The file is there but cannot be opened. @returns the reason */
  recordUnopenable(error: unknown): string {
    const complaint = (error as Error).message.replace(/^people\.sqlite: /, "");
    return this.recordFile("people.sqlite", `is corrupt and cannot be opened (${complaint})`);
  }

  /** A file is corrupt or missing. @returns the reason */
  recordFile(file: string, what: string): string {
    const sentence = `${file} ${what}: ${restoreAdvice(this.dataDir, file)}.`;
    // A named file replaces the sentence about an unknown one; of two files both are named.
    const known = this.files.size === 0 || this.files.has(file) ? null : this.reason;
    this.files.add(file);
    this.reason = known === null ? sentence : `${known} ${sentence}`;
    return sentence;
  }

  /** Does a read; the alternative is used when the store is corrupt. @throws every other error */
  reading<Result>(read: () => Result, otherwise: Result): Result {
    try {
      return read();
    } catch (error) {
      if (!isCorruptSqlite(error)) throw error;
      this.record(error);
      return otherwise;
    }
  }
}

/** How a lost or corrupt file is restored, as a clause. @param lost its name; absent: not known yet */
export function restoreAdvice(dataDir: string, lost?: string): string {
  const backup = readLastBackup(dataDir)?.file ?? null;
  const folder = `--data-dir ${shellWord(dataDir)}`;
  if (backup !== null)
    return `restore the last backup with \`flagkeep backup restore ${shellWord(backup)} --force --replay ${folder}\``;
  const copy = "put back a copy of the file (no backup exists)";
  return lost === "people.sqlite"
    ? `${copy}, or run \`flagkeep persons recreate --accept-loss ${folder}\``
    : `${copy} and run \`flagkeep doctor ${folder}\``;
}
