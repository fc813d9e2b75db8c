/** What becomes of a fault that the engine meets: most end it, and the front starts another one. */

import { isDoubtful, openFailureOf, type StoreUse } from "../events/duckdb/open-failure.ts";
import { AppError, firstLine, OperatorNeeded } from "../lib/errors.ts";
import { DataFromNewerVersion } from "../lib/sqlite/migrate.ts";
import type { EngineStart } from "./messages.ts";
import { log, report } from "./report.ts";

export class Faults {
  /** The event store's file is damaged but cannot be made again without losing events. */
  isLimping = false;
  /** What DuckDB's complaints are about at this moment. */
  use: StoreUse = "opening";

  /** @param markDamaged has the event store made again at the next start. */
  constructor(
    private readonly start: EngineStart,
    private readonly markDamaged: (dataDir: string, reason: unknown) => void,
  ) {}

  /** Whether making the event store again mends it. */
  isMendable(error: unknown): boolean {
    return !this.isLimping && this.isDamage(error);
  }

  /** Ends the process, and says why. */
  readonly die = (error: unknown): never => {
    if (error instanceof DataFromNewerVersion) {
      report({ type: "refused", message: error.message, hint: error.hint });
      process.exit(1);
    }
    if (error instanceof OperatorNeeded) {
      report({ type: "trouble", message: error.message, hint: error.hint, isStopped: true });
      process.exit(1);
    }
    if (this.isMendable(error)) this.markDamaged(this.start.dataDir, error);
    report({
      type: "failed",
      message: `The event store had to be closed: ${firstLine(error)}`,
      hint: hintOf(error),
      isDoubtful: isDoubtful(error),
    });
    // Where in the program what is foreseen was found tells an operator nothing.
    const isForeseen = error instanceof AppError;
    log("error", "the engine cannot go on", {
      error: error instanceof Error && !isForeseen ? (error.stack ?? error.message) : String(error),
    });
    process.exit(1);
  };

  /** What is damaged cannot be made again without a person: what is whole can be read until then, and events wait. */
  readonly stopLoading = (error: unknown): void => {
    if (!this.isLimping || !this.isDamage(error)) this.die(error);
    const message = "A damaged part of the event store hinders loading; new events wait in the journal.";
    const hint = "Stop Flagkeep and run `flagkeep doctor`, which says what can be made again.";
    report({ type: "trouble", message, hint, isStopped: false });
    log("error", message, { error: String(error) });
  };

  private isDamage(error: unknown): boolean {
    // A server mends its own files.
    return this.start.eventsAt === null && openFailureOf(error, this.use) === "file_broken";
  }
}

/** What to do about an end of the engine that is no damage. */
function hintOf(error: unknown): string {
  const text = String(error);
  if (/no space left|disk is full|disk quota|SQLITE_FULL|ENOSPC/i.test(text))
    return "Free disk space; it goes on by itself.";
  if (/permission denied|read-only|EACCES|EROFS/i.test(text))
    return "Mend the permissions of the data directory.";
  if (/out of memory|allocate/i.test(text)) return "Give it more with --duckdb-memory-limit.";
  return "It is started again by itself; when this stays, see the log and `flagkeep doctor`.";
}
