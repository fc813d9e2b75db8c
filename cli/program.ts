/** The tree of commands: one file per command under `commands/`. */

import { Command, CommanderError } from "commander";
import { backup } from "./commands/backup.ts";
import { cohorts } from "./commands/cohorts.ts";
import { completions } from "./commands/completions.ts";
import { doctor } from "./commands/doctor.ts";
import { exportData } from "./commands/export.ts";
import { flags } from "./commands/flags.ts";
import { healthcheck } from "./commands/healthcheck.ts";
import { importEvents } from "./commands/import.ts";
import { init } from "./commands/init.ts";
import { keys } from "./commands/keys.ts";
import { mcp } from "./commands/mcp.ts";
import { members } from "./commands/members.ts";
import { migrate } from "./commands/migrate.ts";
import { migrateEvents } from "./commands/migrate-events.ts";
import { migrateFrom, migrateTo } from "./commands/migrate-to.ts";
import { organization } from "./commands/organization.ts";
import { persons } from "./commands/persons.ts";
import { projects } from "./commands/projects.ts";
import { query } from "./commands/query.ts";
import { rebuild } from "./commands/rebuild.ts";
import { roles } from "./commands/roles.ts";
import { scrub } from "./commands/scrub.ts";
import { serve } from "./commands/serve.ts";
import { status } from "./commands/status.ts";
import { top } from "./commands/top.ts";
import { usage } from "./commands/usage.ts";
import { users } from "./commands/users.ts";
import { printVersion, version } from "./commands/version.ts";
import { warnings } from "./commands/warnings.ts";
import { requireUsable } from "./data-dir.ts";
import { exitDone, exitUsage, fail } from "./output.ts";
import { beginShared, endShared, withSharedSettings } from "./shared-stores.ts";

/** Runs the command that the process was called with. */
export async function runProgram(): Promise<void> {
  process.stdout.on("error", fail);
  try {
    const program = createProgram();
    refuseUnknownHelp(program, process.argv.slice(2));
    await program.parseAsync();
  } catch (error) {
    if (!(error instanceof CommanderError)) fail(error);
    process.exit(error.exitCode === 0 ? exitDone : exitUsage);
  }
}

/** The tree of commands. */
export function createProgram(): Command {
  const program = new Command("flagkeep")
    .description("Feature flags and event capture for PostHog SDKs, in one executable file.")
    .option("--version", "print the version, as `flagkeep version` does")
    .on("option:version", () => {
      printVersion();
      process.exit(exitDone);
    })
    .addHelpText(
      "after",
      "\nStart with:\n  flagkeep serve\n\nExit status: 0 done, 1 failed, 2 called wrongly.",
    )
    .hook("preAction", async (_, command) => {
      if (!(await beginShared(command))) requireUsable(command);
    })
    .hook("postAction", endShared);

  for (const command of [
    serve,
    init,
    flags,
    keys,
    projects,
    users,
    members,
    roles,
    cohorts,
    persons,
    organization,
    query,
    status,
    top,
    usage,
    warnings,
    healthcheck,
    migrate,
    migrateEvents,
    migrateTo,
    migrateFrom,
    doctor,
    scrub,
    mcp,
    completions,
    exportData,
    importEvents,
    backup,
    rebuild,
    version,
  ])
    program.addCommand(command);
  withSharedSettings(program);
  prepare(program);
  return program;
}

/** commander prints the program's help for `help` with a command that is none, without a word about it. */
function refuseUnknownHelp(program: Command, [first, name]: readonly string[]): void {
  if (first !== "help" || name === undefined || name.startsWith("-")) return;
  if (program.commands.some((command) => command.name() === name)) return;
  program.error(`error: unknown command '${name}'`, { exitCode: exitUsage });
}

/** A wrong call ends with our status and one line, for commands at every depth. */
function prepare(command: Command): void {
  command.exitOverride();
  command.configureOutput({
    outputError: (text, write) => {
      const complaint = text
        .replace(/^error: /, "")
        .trim()
        .replaceAll("\n", " ")
        .replace(/\.$/, "");
      write(`flagkeep: ${complaint}; \`${pathOf(command)} --help\` shows how to call it.\n`);
    },
  });
  for (const child of command.commands) prepare(child);
}

/** `flagkeep keys create` */
function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`;
}
