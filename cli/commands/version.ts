import { Command } from "commander";
import { Versions, versions } from "../../src/version.ts";
import { print, printJson, run, withJson } from "../output.ts";
import { withUnusedDataDir } from "../settings.ts";

export const version = withJson(
  withUnusedDataDir(new Command("version")),
  Versions,
  "print the versions as JSON",
)
  .description("Print the versions of Flagkeep, Bun, DuckDB and SQLite.")
  .addHelpText("after", "\nExample:\n  flagkeep version --json")
  .action(
    run((options: { json?: true }) => {
      const all = versions();
      if (options.json) printJson(all);
      else printVersion(all);
    }),
  );

/** In one line. */
export function printVersion(all = versions()): void {
  print(`flagkeep ${all.version} (Bun ${all.bun}, DuckDB ${all.duckdb}, SQLite ${all.sqlite})`);
}
