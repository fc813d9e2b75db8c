import { type Static, Type } from "@sinclair/typebox";
import { Command } from "commander";
import { NonNegativeInt, strictObject } from "../../src/lib/schema.ts";
import { Finding } from "../../src/operate/doctor/finding.ts";
import { runChecks } from "../../src/operate/doctor/run-checks.ts";
import { type CallOptions, getServer, withServer } from "../operations/server.ts";
import { exitFailed, print, printJson, run, withJson } from "../output.ts";
import { configFromOptions, withSettings } from "../settings.ts";
import { assertInitialized } from "../stores.ts";

const marks = { ok: "ok     ", warning: "WARNING", error: "ERROR  " };

const Report = strictObject({
  /** No problem has the level of an error. */
  ok: Type.Boolean(),
  errors: NonNegativeInt,
  warnings: NonNegativeInt,
  findings: Type.Array(Finding),
});

export const doctor = withJson(
  withSettings(new Command("doctor"), [
    "data-dir",
    "host",
    "port",
    "journal-reserve",
    "events-url",
    "events-password-file",
    "postgres-url",
    "postgres-password-file",
  ] as const),
  Report,
  "print the findings as JSON",
)
  .description("Diagnose the data directory and host, and suggest fixes.")
  .addHelpText(
    "after",
    "\nChanges nothing. Exits with 1 if there are errors; warnings do not affect the exit status.\n\n" +
      "Examples:\n  flagkeep doctor\n  flagkeep doctor --data-dir /var/lib/flagkeep --json\n" +
      "  flagkeep doctor --url https://flags.example.com",
  )
  .action(
    run(async (options: CallOptions) => {
      const report = await readReport(options);
      const { errors, findings } = report;
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
withServer(doctor);

/** Checks read all files of the data directory. */
const checksMs = 10 * 60_000;

async function readReport(options: CallOptions): Promise<Static<typeof Report>> {
  const server = getServer(options);
  if (server !== undefined) {
    const { getFromInstance } = await import("../operations/remote.ts");
    return (await getFromInstance(server, "/doctor", checksMs)) as Static<typeof Report>;
  }
  const config = configFromOptions(options as never);
  assertInitialized(config["data-dir"]);
  const findings = await runChecks(config);
  const count = (wanted: Finding["level"]) => findings.filter(({ level }) => level === wanted).length;
  const errors = count("error");
  return { ok: errors === 0, errors, warnings: count("warning"), findings };
}
