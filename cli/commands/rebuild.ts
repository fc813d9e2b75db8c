import { Command } from "commander";
import { Rebuilt, rebuildEventStore } from "../../src/backup/recovery/rebuild.ts";
import { getS3Settings } from "../../src/backup/s3-access.ts";
import { openSource } from "../../src/backup/source.ts";
import { fileName, print, printJson, run, withJson } from "../output.ts";
import { TerminalBar } from "../progress.ts";
import { configFromOptions, withSettings } from "../settings.ts";
import { assertInitialized } from "../stores.ts";
import { getKeys, sourceSettings } from "./backup-common.ts";

interface RebuildOptions {
  from?: string;
  acceptLoss?: true;
  json?: true;
}

export const rebuild = withJson(
  withSettings(new Command("rebuild"), [...sourceSettings, "duckdb-memory-limit", "duckdb-threads"]),
  Rebuilt,
)
  .description("Rebuild the event store from a backup and the archived journal; the server must be stopped.")
  .option(
    "--from <backup>",
    "backup to use, file or s3://bucket/key; default: the best one on this machine",
    fileName,
  )
  .option("--accept-loss", "continue without events that are in no backup, archive or journal")
  .addHelpText(
    "after",
    "\nThe server does this at startup if events.duckdb is corrupt or missing and no event would be lost. Otherwise the ranges\n" +
      "that are missing are printed, and nothing is done without --accept-loss. The old file is moved to journal/quarantine.\n\n" +
      "Examples:\n  flagkeep rebuild --data-dir /var/lib/flagkeep\n" +
      "  flagkeep rebuild --from /mnt/backups/flagkeep-2026-11-21T03-00-00.000Z.tar.zst --json",
  )
  .action(
    run(async (options: RebuildOptions) => {
      const config = configFromOptions(options as never);
      const dataDir = assertInitialized(config["data-dir"]);
      const progress = new EntriesProgress(options.json === true);
      const from =
        options.from === undefined ? undefined : await openSource(options.from, getS3Settings(config));
      const rebuilt = await rebuildEventStore({
        dataDir,
        from,
        keys: await getKeys(config),
        acceptLoss: options.acceptLoss === true,
        settings: { memoryLimitBytes: config["duckdb-memory-limit"], threads: config["duckdb-threads"] },
        onStep: (message) => progress.step(message),
        onProgress: (done, total) => progress.show(done, total),
        onCorruption: (error) => progress.printError(error.message),
      }).finally(() => progress.end());
      if (options.json) printJson(rebuilt);
      else show(rebuilt);
    }),
  );

function show({ from, events, persons, entries_waiting, put_aside, lost }: Rebuilt): void {
  print(`The event store was rebuilt from ${from}: ${events} events, ${persons} persons.`);
  if (entries_waiting > 0)
    print(`${entries_waiting} journal entries are pending; the next start loads them.`);
  if (put_aside !== null) print(`The old file is ${put_aside}.`);
  for (const { lane, first_seq, last_seq } of lost) {
    print(`Lost: the ${lane} entries ${first_seq} to ${last_seq}.`);
  }
}

const lineIntervalMs = 5_000;

/** A bar on a terminal, plain lines elsewhere; programs only get problems. */
export class EntriesProgress {
  private shownAt = Number.NEGATIVE_INFINITY;
  private readonly isTerminal = process.stderr.isTTY === true;
  private readonly bar = new TerminalBar();

  constructor(private readonly isQuiet: boolean) {}

  step(message: string): void {
    if (this.isQuiet && !this.isTerminal) return;
    this.end();
    process.stderr.write(`${message}\n`);
  }

  show(done: number, total: number): void {
    if (this.isTerminal) {
      this.bar.show("Applying", done, total, "entries");
      return;
    }
    if (this.isQuiet) return;
    const now = performance.now();
    if (now - this.shownAt < lineIntervalMs && done < total) return;
    this.shownAt = now;
    process.stderr.write(`${done} of ${total} journal entries applied\n`);
  }

  printError(message: string): void {
    this.end();
    process.stderr.write(`flagkeep: ${message}\n`);
  }

  /** Removes the bar. */
  end(): void {
    this.bar.end();
  }
}
