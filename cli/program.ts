/** What all commands have in common: how they are called, what they check first, how they end. */

import { Command, CommanderError } from "commander";
import { printVersion } from "./commands/version.ts";
import { requireUsable } from "./data-dir.ts";
import { exitDone, exitUsage, fail } from "./output.ts";
import { beginShared, endShared, withSharedSettings } from "./shared-stores.ts";

/** Runs one of these commands with the arguments of the call. */
export async function runProgram(commands: readonly Command[], args: readonly string[]): Promise<void> {
  process.stdout.on("error", fail);
  try {
    const program = programOf(commands);
    refuseUnknownHelp(program, args);
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) fail(error);
    process.exit(error.exitCode === 0 ? exitDone : exitUsage);
  }
}

/** The tree of these commands. */
export function programOf(commands: readonly Command[]): Command {
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
      if (!(await beginShared(command))) requireUsable(command);
    })
    .hook("postAction", endShared);

  for (const command of commands) program.addCommand(command);
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
