import type { Command } from "commander";
import { createProgram } from "../../cli/main.ts";

/** Commands that do something, by their names. */
export function leaves(command = createProgram(), names: readonly string[] = []): Map<string, Command> {
  if (command.commands.length === 0) return new Map([[names.join(" "), command]]);
  return new Map(command.commands.flatMap((child) => [...leaves(child, [...names, child.name()])]));
}
