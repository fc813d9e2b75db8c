/** Whether a command can work with the data directory at all. */

import { accessSync, constants, statSync } from "node:fs";
import type { Command } from "commander";
import { AppError } from "../src/lib/errors.ts";
import { requireMetadata } from "../src/serve/data-directory.ts";
import { dataDirOf } from "./settings.ts";

/** The folder is there, but is another user's. */
class NotYours extends AppError {
  readonly code = "not_yours";
  constructor(
    folder: string,
    override readonly hint: string,
  ) {
    super(`The data directory ${folder} cannot be read by this user.`);
  }
}

/** Commands that help where a store is missing. */
const helpers = ["restore", "verify", "list", "prune"];

/**
 * Refuses a command on a folder that its caller may not read, where the stores would seem to be missing, and on one
 * where a store is missing indeed.
 *
 * @throws {NotYours} @throws {MetadataMissing}
 */
export function requireUsable(command: Command): void {
  const usesIt = command.options.some(({ long, hidden }) => long === "--data-dir" && !hidden);
  if (!usesIt) return;
  const folder = dataDirOf(command.opts());
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
  } catch (error) {
    // What else may be wrong with it, each command says by itself.
    if ((error as { code?: string }).code === "EACCES" && !isFile(folder)) {
      throw new NotYours(folder, hintFor(folder));
    }
    return;
  }
  if (command.parent?.name() === "backup" && helpers.includes(command.name())) return;
  requireMetadata(folder);
}

/** A file cannot be entered, whoever owns it. */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function hintFor(folder: string): string {
  try {
    return `Run the command as its owner, such as with: sudo -u '#${statSync(folder).uid}'.`;
  } catch {
    return "Run the command as its owner.";
  }
}
