/** Parsing, checks and exit status that all commands share. */

import { Command, CommanderError, Help, type Option } from "commander";
import { closeClusterSession, openClusterSession, withSharedSettings } from "./cluster-stores.ts";
import { printVersion } from "./commands/version.ts";
import { assertUsable } from "./data-dir.ts";
import { assertNoServer, isRemote, withoutServer } from "./operations/server.ts";
import { exitDone, exitUsage, fail, getPath } from "./output.ts";

/** Runs one of these commands with the process's arguments. */
export async function runProgram(commands: readonly Command[], args: readonly string[]): Promise<void> {
  process.stdout.on("error", fail);
  try {
    const program = createProgramFor(commands);
    rejectUnknownHelp(program, args);
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) fail(error);
    process.exit(error.exitCode === 0 ? exitDone : exitUsage);
  }
}

export function createProgramFor(commands: readonly Command[]): Command {
  const program = new Command("flagkeep")
    .description("Feature flags and product events for PostHog SDKs, in one executable.")
    .option("--version", "print the version, as `flagkeep version` does")
    .on("option:version", () => {
      printVersion();
      process.exit(exitDone);
    })
    .addHelpText(
      "after",
      "\nStart with:\n  flagkeep serve\n\nExit status: 0 success, 1 failure, 2 invalid usage.",
    )
    .hook("preAction", async (_, command) => {
      assertNoServer(command);
      if (!isRemote(command) && !(await openClusterSession(command))) assertUsable(command);
    })
    .hook("postAction", closeClusterSession);

  for (const command of commands) program.addCommand(command);
  // Otherwise it would be the only one without a heading.
  const help = new Command("help").argument("[command]").description("display help for command");
  program.addHelpCommand(help.helpOption(false).helpGroup("Tools:"));
  withSharedSettings(program);
  prepare(program);
  return program;
}

/** commander prints the program's help for `help` with an unknown command, without an error. */
function rejectUnknownHelp(program: Command, [first, name]: readonly string[]): void {
  if (first !== "help" || name === undefined || name.startsWith("-")) return;
  if (program.commands.some((command) => command.name() === name)) return;
  program.error(`error: unknown command '${name}'`, { exitCode: exitUsage });
}

/** Options that many commands have: the last ones in help, in this order. */
const commonOptions = [
  "--json",
  "--project",
  "--organization",
  "--user",
  "--confirm",
  "--url",
  "--key",
  "--help",
];

/** A command's own options in their order, then the common ones. */
function visibleOptions(command: Command): Option[] {
  const rank = ({ long }: Option) => commonOptions.indexOf(long ?? "");
  return new Help().visibleOptions(command).toSorted((a, b) => rank(a) - rank(b));
}

/** Makes usage errors end with our exit status and one line, for commands at every depth. */
function prepare(command: Command): void {
  command.exitOverride();
  command.configureHelp({ visibleOptions });
  if (command.commands.length === 0) withoutServer(command);
  command.configureOutput({
    outputError: (text, write) => {
      const complaint = text
        .replace(/^error: /, "")
        .trim()
        .replaceAll("\n", " ")
        .replace(/\.$/, "");
      write(`flagkeep: ${complaint}; \`${getPath(command)} --help\` shows how to call it.\n`);
    },
  });
  for (const child of command.commands) prepare(child);
}
