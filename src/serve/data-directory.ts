/** The data directory: created when missing, rejected when it belongs to something else or is incomplete. */

import { accessSync, chmodSync, constants, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { readLastBackup } from "../backup/last-backup.ts";
import { engineSocketName } from "../engine/messages.ts";
import { listArchive } from "../journal/archive.ts";
import { firstOfFileName, lanes } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";
import { shellWord } from "../lib/terminal-text.ts";
import { acquireLock, type Lock } from "../lock.ts";
import { paths } from "../paths.ts";
import { controlSocketName } from "../rpc/control.ts";

/** The data directory cannot be created or is not a folder. */
class InvalidDirectoryError extends AppError {
  readonly code = "unusable_directory";
  override readonly hint = "Use another --data-dir, or fix its permissions.";
}

/** The folder contains other files. */
class NotDataDirectoryError extends AppError {
  readonly code = "foreign_directory";
  override readonly hint = "Choose an empty folder or run flagkeep init.";
  constructor(folder: string, names: readonly string[]) {
    const shown = names.slice(0, shownNames).join(", ") + (names.length > shownNames ? ", …" : "");
    super(`${folder} is not a Flagkeep data directory and is not empty (${shown}).`);
  }
}

/** Events exist without the metadata store: a new store would assign them to a different organization. */
class MissingMetadataError extends AppError {
  readonly code = "metadata_missing";
  override readonly hint: string;
  constructor(dataDir: string, complaint: string) {
    super(
      `${paths(dataDir).metadata} ${complaint}, but the data directory contains events. The file stores organizations, projects, keys and flags.`,
    );
    const backup = readLastBackup(dataDir)?.file ?? "BACKUP";
    this.hint =
      "Restore a copy of the file, or a backup: " +
      `\`flagkeep backup restore ${shellWord(backup)} --force --replay --data-dir ${shellWord(dataDir)}\`.`;
  }
}

const shownNames = 3;
/** Files that systems create in new volumes or folders, and files that keep an empty folder in a repository. */
const systemNames = ["lost+found", ".gitkeep", ".gitignore", ".keep", ".DS_Store"];
/** Working files of a restore when the directory is a mount point. */
const restoreNames = [".restoring", ".before-restore"];

/**
 * Creates the data directory or checks an existing one; a new or unused one is created accessible only to its owner.
 *
 * @returns its path.
 * @throws {InvalidDirectoryError} @throws {NotDataDirectoryError} @throws {MissingMetadataError}
 */
function prepareDirectory(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === false) {
    throw new InvalidDirectoryError(`${path} is a file, not a folder.`);
  }
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    readdirSync(path);
  } catch (error) {
    throw new InvalidDirectoryError(
      `${path} cannot be used as the data directory (${(error as Error).message}).`,
    );
  }
  assertMetadataPresent(path);
  if (!existsSync(paths(path).metadata)) {
    assertOwned(path);
    restrictToOwner(path);
  }
  return path;
}

/**
 * A cloned repository's `data` folder is readable by others. A volume of another user keeps its mode, see `doctor`.
 */
function restrictToOwner(path: string): void {
  if (statSync(path).uid === process.geteuid?.()) chmodSync(path, 0o700);
}

/**
 * Prepares the data directory and locks it until the lock is released.
 *
 * @throws {InvalidDirectoryError} @throws {NotDataDirectoryError} @throws {MissingMetadataError}
 * @throws {DirectoryInUseError}
 */
export function openDataDirectory(path: string): Lock {
  return acquireLock(paths(prepareDirectory(path)).lock, path);
}

/**
 * Rejects a folder with events but without the metadata store; a missing or empty folder passes.
 *
 * @throws {MissingMetadataError}
 */
export function assertMetadataPresent(dataDir: string): void {
  const dataPaths = paths(dataDir);
  if (existsSync(dataPaths.metadata)) return;
  // The persons store is created after the metadata store and may be empty.
  if (existsSync(dataPaths.people) || holdsEvents(dataDir))
    throw new MissingMetadataError(dataDir, "is missing");
}

/**
 * Rejects an empty metadata store next to existing events.
 *
 * @throws {MissingMetadataError}
 */
export function assertNoEvents(dataDir: string): void {
  if (holdsEvents(dataDir)) throw new MissingMetadataError(dataDir, "is empty");
}

function holdsEvents(dataDir: string): boolean {
  const { events, journal, archive } = paths(dataDir);
  return (
    existsSync(events) ||
    lanes.some((lane) => hasSegments(join(journal, lane)) || listArchive(archive, lane).length > 0)
  );
}

function hasSegments(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).some((name) => firstOfFileName(name) !== undefined);
}

/** An interrupted start may have left some Flagkeep files. @throws {NotDataDirectoryError} */
function assertOwned(dataDir: string): void {
  const ours = [
    ...Object.values(paths(dataDir)).map((path) => basename(path)),
    controlSocketName,
    engineSocketName,
    ...systemNames,
    ...restoreNames,
  ];
  const isOurs = (name: string) =>
    ours.some((own) => name === own || name.startsWith(`${own}-`) || name.startsWith(`${own}.`));
  const foreign = readdirSync(dataDir).filter((name) => !isOurs(name));
  if (foreign.length > 0) throw new NotDataDirectoryError(dataDir, foreign.sort());
}
