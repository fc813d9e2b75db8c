/** Checks whether a command can work with the data directory. */

import { accessSync, constants, mkdtempSync, rmdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import type { Command } from "commander";
import { AppError } from "../src/lib/errors.ts";
import { shellWord } from "../src/lib/terminal-text.ts";
import { paths } from "../src/paths.ts";
import { assertMetadataPresent } from "../src/serve/data-directory.ts";
import { getDataDir } from "./settings.ts";

/** The folder belongs to another user. */
class NotOwnerError extends AppError {
  readonly code = "not_yours";
  constructor(
    folder: string,
    override readonly hint: string,
  ) {
    super(`The data directory ${folder} cannot be read by this user.`);
  }
}

/** Files created by root could not be written or removed by the server's user. */
class ForeignFilesError extends AppError {
  readonly code = "others_files";
  override readonly hint: string;
  constructor(folder: string, owner: number) {
    super(
      `The files in ${folder} belong to the user ${owner}, whose server cannot write files created by root.`,
    );
    this.hint =
      `Run the command as that user, for example with: sudo -u '#${owner}' flagkeep …; ` +
      `or give everything to root: chown -R 0 ${shellWord(folder)}.`;
  }
}

/** Commands that help when a store is missing. */
const backupCommandsWithoutStores = ["restore", "verify", "list", "prune"];
/** Commands that create no files. */
const readOnlyCommands = ["status", "healthcheck", "doctor"];

/**
 * Rejects a folder that the user may not read (stores would seem to be missing), one where files created by root would
 * be unusable for the owner, and one where a store is missing.
 *
 * @throws {NotOwnerError} @throws {ForeignFilesError} @throws {MissingMetadataError}
 */
export function assertUsable(command: Command): void {
  const usesIt = command.options.some(({ long, hidden }) => long === "--data-dir" && !hidden);
  if (!usesIt) return;
  const folder = getDataDir(command.opts());
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
  } catch (error) {
    // Each command reports other problems itself.
    if ((error as { code?: string }).code === "EACCES" && !isFile(folder)) {
      throw new NotOwnerError(folder, hintFor(folder));
    }
    return;
  }
  if (!readOnlyCommands.includes(command.name())) assertOwnFiles(folder);
  if (command.parent?.name() === "backup" && backupCommandsWithoutStores.includes(command.name())) return;
  assertMetadataPresent(folder);
}

/**
 * Checks the files only: the folder itself may belong to any user, for example when mounted into root's container.
 *
 * @throws {ForeignFilesError}
 */
function assertOwnFiles(folder: string): void {
  if (process.geteuid?.() !== 0) return;
  const owner = ownerOfFiles(folder);
  if (owner === undefined || owner === 0 || owner === ownerOfNewFiles(folder)) return;
  throw new ForeignFilesError(folder, owner);
}

/** Undefined if there are no files yet. */
function ownerOfFiles(folder: string): number | undefined {
  const { metadata, people, lock } = paths(folder);
  for (const path of [metadata, people, lock]) {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats !== undefined) return stats.uid;
  }
  return undefined;
}

/** Network or host file systems may assign all files to one user, even those of root. */
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

/** A file cannot be entered, regardless of its owner. */
function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

function hintFor(folder: string): string {
  try {
    return `Run the command as its owner, for example with: sudo -u '#${statSync(folder).uid}'.`;
  } catch {
    return "Run the command as its owner.";
  }
}

/** How to call this executable from the current folder: `flagkeep` if the PATH finds it, else its relative path. */
export function commandName(): string {
  if (Bun.which("flagkeep") === process.execPath) return "flagkeep";
  const path = relative(process.cwd(), process.execPath);
  return shellWord(path.startsWith("..") ? process.execPath : path.includes("/") ? path : `./${path}`);
}
