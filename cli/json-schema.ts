/** Schemas of `--json` output, next to the code that creates it: scripts, types and tests use the same schema. */

import type { TSchema } from "@sinclair/typebox";
import type { Command } from "commander";

const shapes = new WeakMap<Command, TSchema>();

/** Adds `--json` with the schema of its output to a command. */
export function withJson(
  command: Command,
  shape: TSchema,
  description = "print the result as JSON",
): Command {
  describeJson(command, shape);
  return command.option("--json", description);
}

/** Sets the output schema of a command that defines `--json` itself. */
export function describeJson(command: Command, shape: TSchema): void {
  shapes.set(command, shape);
}

export function getJsonShape(command: Command): TSchema | undefined {
  return shapes.get(command);
}
