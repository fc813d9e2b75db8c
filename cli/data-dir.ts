/** Whether a command can work with the data directory at all. */

import { accessSync, constants, mkdtempSync, rmdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { AppError } from "../src/lib/errors.ts";
import { shellWord } from "../src/lib/shell-text.ts";
import { paths } from "../src/paths.ts";
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

/** What root would make in it, the server of another user could neither write nor remove. */
class OthersFiles extends AppError {
  readonly code = "others_files";
  override readonly hint: string;
  constructor(folder: string, owner: number) {
    super(
      `The files in ${folder} belong to the user ${owner}: what root makes there, that user's server cannot write.`,
    );
    this.hint =
      `Run the command as that user, such as with: sudo -u '#${owner}' flagkeep …; ` +
      `or give everything to root: chown -R 0 ${shellWord(folder)}.`;
  }
}

/** Commands that help where a store is missing. */
const helpers = ["restore", "verify", "list", "prune"];
/** Commands that leave nothing behind, whoever calls them. */
const lookers = ["status", "healthcheck", "doctor"];

/**
 * Refuses a command on a folder that its caller may not read, where the stores would seem to be missing, on one whose
 * files root would make unusable for their owner, and on one where a store is missing indeed.
 *
 * @throws {NotYours} @throws {OthersFiles} @throws {MetadataMissing}
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
  if (!lookers.includes(command.name())) requireOwnFiles(folder);
  if (command.parent?.name() === "backup" && helpers.includes(command.name())) return;
  requireMetadata(folder);
}

/**
 * Judges by the files: the folder itself may be any user's, such as one that is mounted into root's container.
 *
 * @throws {OthersFiles}
 */
function requireOwnFiles(folder: string): void {
  if (process.geteuid?.() !== 0) return;
  const owner = ownerOfFiles(folder);
  if (owner === undefined || owner === 0 || owner === ownerOfNewFiles(folder)) return;
  throw new OthersFiles(folder, owner);
}

/** Undefined where there are none yet. */
function ownerOfFiles(folder: string): number | undefined {
  const { metadata, people, lock } = paths(folder);
  for (const path of [metadata, people, lock]) {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats !== undefined) return stats.uid;
  }
  return undefined;
}

/** A network's or a host's file system may give everything to one user, root's too. */
function ownerOfNewFiles(folder: string): number | undefined {
  try {
    const probe = mkdtempSync(join(folder, "lock-"));
    try {
      return statSync(probe).uid;
    } finally {
      rmdirSync(probe);
    }
  } catch {
    return undefined;
  }
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
