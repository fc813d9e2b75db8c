import { resolve } from "node:path";
import { Command } from "commander";
import { scrub as scrubData } from "../../src/operate/doctor/scrub.ts";
import { Scrub } from "../../src/operate/scrub-schedule.ts";
import { exitFailed, formatBytes, print, printJson, run, withJson } from "../output.ts";
import { configFromOptions, withSettings } from "../settings.ts";
import { assertInitialized } from "../stores.ts";
import { withProgress } from "./backup-common.ts";

export const scrub = withJson(
  withSettings(new Command("scrub"), ["data-dir"]),
  Scrub,
  "print the results as JSON",
)
  .description("Verify the checksums of all stores and journal segments, and list corruption.")
  .addHelpText(
    "after",
    "\nChanges nothing; the server may run. Exits with 1 on corruption.\n" +
      "SQLite files have no checksums: their pages and indexes are read. An unresponsive engine is awaited for\n" +
      "up to a minute.\n" +
      "`flagkeep serve --scrub-schedule` runs it automatically.\n\n" +
      "Examples:\n  flagkeep scrub\n  flagkeep scrub --data-dir /var/lib/flagkeep --json",
  )
  .action(
    run(async (options: { json?: true }) => {
      const dataDir = resolve(configFromOptions(options as never)["data-dir"]);
      assertInitialized(dataDir);
      const found = await withProgress(options, (progress) =>
        scrubData(dataDir, (part) => progress.show(`Reading ${part}`, 0, 0)),
      );
      if (!found.ok) process.exitCode = exitFailed;
      if (options.json) {
        printJson(found);
        return;
      }
      for (const { part, bytes, damage } of found.parts) {
        print(`${damage.length === 0 ? "ok     " : "CORRUPT"}  ${part.padEnd(9)}  ${formatBytes(bytes)}`);
        for (const sentence of damage) print(`${" ".repeat(9)}${sentence}`);
      }
      if (!found.ok) print("\n`flagkeep doctor` suggests fixes; copy the data directory before a repair.");
    }),
  );
