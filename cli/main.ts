/** The executable's entry: one file per command under `commands/`, loaded when it is called. */

import { Command, CommanderError } from "commander";
import { cohorts } from "./commands/cohorts.ts";
import { completions } from "./commands/completions.ts";
import { doctor } from "./commands/doctor.ts";
import { exportData } from "./commands/export.ts";
import { flags } from "./commands/flags.ts";
import { healthcheck } from "./commands/healthcheck.ts";
import { importEvents } from "./commands/import.ts";
import { init } from "./commands/init.ts";
import { keys } from "./commands/keys.ts";
import { members } from "./commands/members.ts";
import { migrate } from "./commands/migrate.ts";
import { organization } from "./commands/organization.ts";
import { projects } from "./commands/projects.ts";
import { query } from "./commands/query.ts";
import { roles } from "./commands/roles.ts";
import { serve } from "./commands/serve.ts";
import { status } from "./commands/status.ts";
import { usage } from "./commands/usage.ts";
import { users } from "./commands/users.ts";
import { version } from "./commands/version.ts";
import { warnings } from "./commands/warnings.ts";
import { exitUsage } from "./output.ts";
import { engineRole } from "./roles.ts";

// Whatever is written is for its owner alone.
process.umask(0o077);

// No `await` at the top level: the executable holds compiled bytecode, which does not know it.
void main();

async function main(): Promise<void> {
  if (process.argv[2] === engineRole) {
    const { runEngine } = await import("../src/engine/process.ts");
    return await runEngine();
  }
  const program = new Command("flagkeep")
    .description("Feature flags and event capture for PostHog SDKs, in one executable file.")
    .showHelpAfterError("(--help shows how to call it)")
    .addHelpText(
      "after",
      "\nStart with:\n  flagkeep serve\n\nExit status: 0 done, 1 failed, 2 called wrongly.",
    );

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
    organization,
    query,
    status,
    usage,
    warnings,
    healthcheck,
    migrate,
    doctor,
    completions,
    exportData,
    importEvents,
    version,
  ])
    program.addCommand(command);
  throwInsteadOfExit(program);

  try {
    await program.parseAsync();
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    process.exit(error.exitCode === 0 ? 0 : exitUsage);
  }
}

/** So that a wrong call ends with our status, for commands at every depth. */
function throwInsteadOfExit(command: Command): void {
  command.exitOverride();
  for (const child of command.commands) {
    child.showHelpAfterError("(--help shows how to call it)");
    throwInsteadOfExit(child);
  }
}
