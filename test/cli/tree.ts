import type { Command } from "commander";
import { createProgram } from "../../cli/commands.ts";

const program = await createProgram();

/** Commands that do something, by their names. */
export function leaves(command: Command = program, names: readonly string[] = []): Map<string, Command> {
  if (command.commands.length === 0) return new Map([[names.join(" "), command]]);
  return new Map(command.commands.flatMap((child) => [...leaves(child, [...names, child.name()])]));
}

/** Commands that only have others below them, by their names. */
export function groups(command: Command = program, names: readonly string[] = []): Map<string, Command> {
  const below = command.commands.flatMap((child) => [...groups(child, [...names, child.name()])]);
  const isGroup = command.commands.length > 0 && names.length > 0;
  return new Map([...(isGroup ? [[names.join(" "), command] as [string, Command]] : []), ...below]);
}
