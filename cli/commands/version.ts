import { Command } from "commander";
import { versions } from "../../src/version.ts";
import { print, printJson, run } from "../output.ts";
import { withUnusedDataDir } from "../settings.ts";

export const version = withUnusedDataDir(new Command("version"))
  .description("Print the version of Flagkeep and of what is built into it.")
  .option("--json", "print the versions as JSON")
  .addHelpText("after", "\nExample:\n  flagkeep version --json")
  .action(
    run((options: { json?: true }) => {
      const all = versions();
      if (options.json) printJson(all);
      else printVersion(all);
    }),
  );

/** In one line, for people. */
export function printVersion(all = versions()): void {
  print(`flagkeep ${all.version} (Bun ${all.bun}, DuckDB ${all.duckdb}, SQLite ${all.sqlite})`);
}
