import { Type } from "@sinclair/typebox";
import { Command } from "commander";
import { SchemaVersion, schemaVersions } from "../../src/backup/schema-versions.ts";
import { exitFailed, printJson, printTable, run, withJson } from "../output.ts";
import { getDataDir, withSettings } from "../settings.ts";
import { assertInitialized } from "../stores.ts";

const meanings = {
  current: "up to date",
  older: "will be migrated by the next `flagkeep serve`",
  newer: "written by a newer version of Flagkeep: use that version",
  absent: "will be created by the next `flagkeep serve`",
};

export const migrate = withJson(
  withSettings(new Command("migrate"), ["data-dir"]),
  Type.Array(SchemaVersion),
  "print the versions as JSON",
)
  .description("Check the schema versions of the stores; `flagkeep serve` migrates them.")
  .requiredOption("--check", "check only; exits with 1 if the data is from a newer version")
  .addHelpText("after", "\nExample:\n  flagkeep migrate --check --json")
  .action(
    run(async (options: { json?: true }) => {
      const found = await schemaVersions(assertInitialized(getDataDir(options as never)));
      if (options.json) printJson(found);
      else {
        printTable(
          ["store", "found", "known", ""],
          found.map((item) => [
            item.store,
            String(item.found ?? "-"),
            String(item.known),
            meanings[item.state],
          ]),
        );
      }
      if (found.some((item) => item.state === "newer")) process.exitCode = exitFailed;
    }),
  );
