import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { Count, exactly } from "../../src/lib/schema.ts";
import { examine } from "../../src/operate/doctor/examine.ts";
import { Finding } from "../../src/operate/doctor/finding.ts";
import { withJson } from "../json-shape.ts";
import { exitFailed, print, printJson, run } from "../output.ts";
import { configOf, withSettings } from "../settings.ts";
import { requireInitialised } from "../stores.ts";

const marks = { ok: "ok     ", warning: "WARNING", error: "ERROR  " };

const Report = exactly({
  /** Nothing is wrong that counts as an error. */
  ok: Type.Boolean(),
  errors: Count,
  warnings: Count,
  findings: Type.Array(Finding),
});

export const doctor = withJson(
  withSettings(new Command("doctor"), [
    ...(["data-dir", "host", "port", "journal-reserve", "events-url", "events-password-file"] as const),
    ...(["postgres-url", "postgres-password-file"] as const),
  ]),
  Report,
  "print the findings as JSON",
)
  .description("Diagnose the data directory and host, and suggest fixes.")
  .addHelpText(
    "after",
    "\nChanges nothing. Exits with 1 if there are errors; warnings do not count.\n\n" +
      "Examples:\n  flagkeep doctor\n  flagkeep doctor --data-dir /var/lib/flagkeep --json",
  )
  .action(
    run(async (options: { json?: true }) => {
      const config = configOf(options as never);
      requireInitialised(config["data-dir"]);
      const findings = await examine(config);
      const errors = findings.filter(({ level }) => level === "error").length;
      const warnings = findings.filter(({ level }) => level === "warning").length;
      const report: Static<typeof Report> = { ok: errors === 0, errors, warnings, findings };
      if (options.json) printJson(report);
      else {
        for (const { check, level, message, hint } of findings) {
          print(`${marks[level]}  ${check.padEnd(11)}  ${message}`);
          if (hint !== null) print(`${" ".repeat(22)}${hint}`);
        }
      }
      if (errors > 0) process.exitCode = exitFailed;
    }),
  );
