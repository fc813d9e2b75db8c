/** Remembers corruption of the store of persons that a read has met, for readiness and `status`. */

import { readLastBackup } from "../backup/last-backup.ts";
import { isCorruptSqlite } from "../lib/errors.ts";

/**
 * Kept until the server starts again: the next read may hit a part that is whole.
 *
 * Source: contract, third round C10.
 */
export class PeopleDamage {
  /** Null: no read has failed. */
  reason: string | null = null;

  constructor(private readonly dataDir: string) {}

  /** Looks at an error of a read; every other kind is ignored. */
  note(error: unknown): void {
    if (this.reason !== null || !isCorruptSqlite(error)) return;
    this.reason = `A SQLite store is corrupt and could not be read: ${this.remedy()}.`;
  }

  /** The file was missing from a data directory with events. @returns the reason */
  noteMissing(): string {
    this.reason = `people.sqlite was missing, persons and groups are lost: ${this.remedy()}.`;
    return this.reason;
  }

  private remedy(): string {
    const file = readLastBackup(this.dataDir)?.file ?? null;
    if (file === null) return "there is no backup; run `flagkeep doctor`";
    return `restore the last backup with \`flagkeep backup restore ${file} --force --replay\``;
  }

  /** Does a read; the alternative is used when the store is corrupt. @throws every other error */
  reading<Result>(read: () => Result, otherwise: Result): Result {
    try {
      return read();
    } catch (error) {
      if (!isCorruptSqlite(error)) throw error;
      this.note(error);
      return otherwise;
    }
  }
}
