/** What `--json` prints, described beside the code that makes it: scripts, types and tests rely on the same schema. */

import type { TSchema } from "@sinclair/typebox";
import type { Command } from "commander";

const shapes = new WeakMap<Command, TSchema>();

/** Adds `--json` to a command, and says what it prints then. */
export function withJson(
  command: Command,
  shape: TSchema,
  description = "print the result as JSON",
): Command {
  describeJson(command, shape);
  return command.option("--json", description);
}

/** Says what a command prints that has its own option `--json`. */
export function describeJson(command: Command, shape: TSchema): void {
  shapes.set(command, shape);
}

export function jsonShapeOf(command: Command): TSchema | undefined {
  return shapes.get(command);
}
