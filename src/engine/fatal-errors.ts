/** Handles fatal errors of the engine: most end the process, and the server process starts another one. */

import { isAmbiguous, type StoreAccess, toOpenError } from "../events/duckdb/open-error.ts";
import { AppError, firstLine, isCorruptSqlite, OperatorActionError } from "../lib/errors.ts";
import { NewerDataVersionError } from "../lib/sqlite.ts";
import type { EngineStart } from "./messages.ts";
import { log, report } from "./report.ts";

const corruptStore = {
  message: "people.sqlite is corrupt; new events wait in the journal.",
  hint: "Stop Flagkeep and restore the last backup: `flagkeep status` names it.",
};

export class FatalErrorHandler {
  /** The event store's file is corrupt but cannot be rebuilt without losing events. */
  isLimping = false;
  /** The operation to which DuckDB's errors currently refer. */
  use: StoreAccess = "opening";

  /** @param markCorrupt requests a rebuild of the event store at the next start */
  constructor(
    private readonly start: EngineStart,
    private readonly markCorrupt: (dataDir: string, reason: unknown) => void,
  ) {}

  /** Whether rebuilding the event store fixes the error. */
  isRepairable(error: unknown): boolean {
    return !this.isLimping && this.isCorruption(error);
  }

  /** Reports the error and ends the process. */
  readonly die = (error: unknown): never => {
    this.reportCorrupt(error);
    if (error instanceof NewerDataVersionError) {
      report({ type: "refused", message: error.message, hint: error.hint });
      process.exit(1);
    }
    if (isCorruptSqlite(error)) {
      // A restart would fail with the same error.
      report({ type: "trouble", ...corruptStore, isStopped: true });
      log("error", corruptStore.message, { error: String(error) });
      process.exit(1);
    }
    if (error instanceof OperatorActionError) {
      report({ type: "trouble", message: error.message, hint: error.hint, isStopped: true });
      process.exit(1);
    }
    if (this.isRepairable(error)) this.markCorrupt(this.start.dataDir, error);
    report({
      type: "failed",
      message: `The event store was closed after an error: ${firstLine(error)}`,
      hint: getHint(error),
      isAmbiguous: isAmbiguous(error),
    });
    // A stack trace of an expected error does not help an operator.
    const isForeseen = error instanceof AppError;
    log("error", "the engine stopped after a fatal error", {
      error: error instanceof Error && !isForeseen ? (error.stack ?? error.message) : String(error),
    });
    process.exit(1);
  };

  /**
   * Stops loading if the corruption requires an operator: intact data stays readable, and events wait in the journal.
   */
  readonly stopLoading = (error: unknown): void => {
    if (this.reportCorrupt(error)) {
      report({ type: "trouble", ...corruptStore, isStopped: false });
      log("error", corruptStore.message, { error: String(error) });
      return;
    }
    if (!this.isLimping || !this.isCorruption(error)) this.die(error);
    const message = "Corruption in the event store blocks loading. New events stay in the journal.";
    const hint = "Stop Flagkeep and run `flagkeep doctor` to see whether a rebuild is possible.";
    report({ type: "trouble", message, hint, isStopped: false });
    log("error", message, { error: String(error) });
  };

  /** For periodic tasks: intact data stays readable although an SQLite store is corrupt. */
  readonly dieUnlessCorrupt = (error: unknown): void => {
    if (!this.reportCorrupt(error)) this.die(error);
  };

  /** Reports that an SQLite store is corrupt. @returns whether the error is such corruption */
  reportCorrupt(error: unknown): boolean {
    const isCorrupt = isCorruptSqlite(error);
    if (isCorrupt) report({ type: "corrupt" });
    return isCorrupt;
  }

  private isCorruption(error: unknown): boolean {
    // A ClickHouse server repairs its own files.
    return this.start.eventsAt === null && toOpenError(error, this.use) === "file_broken";
  }
}

/** The hint for an exit that is not caused by corruption. */
function getHint(error: unknown): string {
  const text = String(error);
  if (/no space left|disk is full|disk quota|SQLITE_FULL|ENOSPC/i.test(text))
    return "Free disk space; loading resumes automatically.";
  if (/permission denied|read-only|EACCES|EROFS/i.test(text))
    return "Fix the permissions of the data directory.";
  if (/out of memory|allocate/i.test(text)) return "Raise --duckdb-memory-limit.";
  return "It restarts automatically. If the error persists, see the log and `flagkeep doctor`.";
}
