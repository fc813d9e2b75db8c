import { Command } from "commander";
import { examine } from "../../src/doctor/examine.ts";
import { exitFailed, print, printJson, run } from "../output.ts";
import { configOf, withSettings } from "../settings.ts";
import { requireInitialised } from "../stores.ts";

const marks = { ok: "ok     ", warning: "WARNING", error: "ERROR  " };

export const doctor = withSettings(new Command("doctor"), ["data-dir", "host", "port", "journal-reserve"])
  .description("Look for what is wrong with the data directory and its machine, and say how to mend it.")
  .option("--json", "print the findings as JSON")
  .addHelpText(
    "after",
    "\nNothing is changed. Ends with 1 when there are errors; warnings do not count.\n\n" +
      "Examples:\n  flagkeep doctor\n  flagkeep doctor --data-dir /var/lib/flagkeep --json",
  )
  .action(
    run(async (options: { json?: true }) => {
      const config = configOf(options as never);
      requireInitialised(config["data-dir"]);
      const findings = await examine(config);
      const errors = findings.filter(({ level }) => level === "error").length;
      const warnings = findings.filter(({ level }) => level === "warning").length;
      if (options.json) printJson({ ok: errors === 0, errors, warnings, findings });
      else {
        for (const { check, level, message, hint } of findings) {
          print(`${marks[level]}  ${check.padEnd(11)}  ${message}`);
          if (hint !== null) print(`${" ".repeat(22)}${hint}`);
        }
      }
      if (errors > 0) process.exitCode = exitFailed;
    }),
  );
