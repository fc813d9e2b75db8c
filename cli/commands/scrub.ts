import { resolve } from "node:path";
import { Command } from "commander";
import { Scrub } from "../../src/operate/scrub/last-scrub.ts";
import { scrub as scrubData } from "../../src/operate/scrub/scrub.ts";
import { withJson } from "../json-shape.ts";
import { bytesText, exitFailed, print, printJson, run } from "../output.ts";
import { configOf, withSettings } from "../settings.ts";
import { requireInitialised } from "../stores.ts";
import { withProgress } from "./backup-common.ts";

export const scrub = withJson(
  withSettings(new Command("scrub"), ["data-dir"]),
  Scrub,
  "print what was found as JSON",
)
  .description("Verify the checksums of all stores and journal segments, and list damage.")
  .addHelpText(
    "after",
    "\nChanges nothing; the server may run. Exits with 1 if there is damage.\n" +
      "SQLite's files have no checksums: their pages and indexes are read. An engine that does not answer is waited for,\n" +
      "up to a minute.\n" +
      "`flagkeep serve --scrub-schedule` does it by itself.\n\n" +
      "Examples:\n  flagkeep scrub\n  flagkeep scrub --data-dir /var/lib/flagkeep --json",
  )
  .action(
    run(async (options: { json?: true }) => {
      const dataDir = resolve(configOf(options as never)["data-dir"]);
      requireInitialised(dataDir);
      const found = await withProgress(options, (progress) =>
        scrubData(dataDir, (part) => progress.show(`Reading ${part}`, 0, 0)),
      );
      if (!found.ok) process.exitCode = exitFailed;
      if (options.json) {
        printJson(found);
        return;
      }
      for (const { part, bytes, damage } of found.parts) {
        print(`${damage.length === 0 ? "ok     " : "DAMAGED"}  ${part.padEnd(9)}  ${bytesText(bytes)}`);
        for (const sentence of damage) print(`${" ".repeat(9)}${sentence}`);
      }
      if (!found.ok)
        print("\n`flagkeep doctor` says how to mend it; keep a copy of the data directory before you do.");
    }),
  );
