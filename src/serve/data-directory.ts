/** The folder that holds everything Flagkeep keeps: made when it is missing, refused when it is another's or not whole. */

import { accessSync, chmodSync, constants, existsSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { basename, join } from "node:path";
import { readLastBackup } from "../backup/last-backup.ts";
import { engineSocketName } from "../engine/messages.ts";
import { listArchive } from "../journal/archive.ts";
import { firstOfFileName, lanes } from "../journal/segment.ts";
import { AppError } from "../lib/errors.ts";
import { shellWord } from "../lib/shell-text.ts";
import { type Lock, takeLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { controlSocketName } from "../rpc/control.ts";

/** The data directory cannot be created or is not a folder. */
class UnusableDirectory extends AppError {
  readonly code = "unusable_directory";
  override readonly hint = "Give another --data-dir, or mend its permissions.";
}

/** The folder belongs to something else. */
class ForeignDirectory extends AppError {
  readonly code = "foreign_directory";
  override readonly hint =
    "Give --data-dir an empty folder, one that is not there yet, or one that Flagkeep made.";
  constructor(folder: string, names: readonly string[]) {
    const shown = names.slice(0, shownNames).join(", ") + (names.length > shownNames ? ", …" : "");
    super(`${folder} is no data directory of Flagkeep, and there are other things in it: ${shown}.`);
  }
}

/** Events are there, but not the store of organisations, projects, keys and flags: a new one would make them another's. */
class MetadataMissing extends AppError {
  readonly code = "metadata_missing";
  override readonly hint: string;
  constructor(dataDir: string, complaint: string) {
    super(
      `${paths(dataDir).metadata} ${complaint}, but there are events beside it; it holds organisations, projects, keys and flags.`,
    );
    const backup = readLastBackup(dataDir)?.file ?? "BACKUP";
    this.hint =
      "Put a copy of the file back, or restore a backup and go on from here: " +
      `\`flagkeep backup restore ${shellWord(backup)} --force --replay --data-dir ${shellWord(dataDir)}\`.`;
  }
}

const shownNames = 3;
/** What a system puts into a new volume or folder, and what keeps an empty one in a repository, as `data` in this one. */
const systemNames = ["lost+found", ".gitkeep", ".gitignore", ".keep", ".DS_Store"];
/** What restores work with when the directory is a mount point. */
const restoreNames = [".restoring", ".before-restore"];

/**
 * Creates the data directory, or checks an existing one; a new or unused one is accessible only for its owner. Returns its path.
 *
 * @throws {UnusableDirectory} @throws {ForeignDirectory} @throws {MetadataMissing}
 */
function prepareDirectory(path: string): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === false) {
    throw new UnusableDirectory(`${path} is a file and no folder.`);
  }
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    readdirSync(path);
  } catch (error) {
    throw new UnusableDirectory(
      `${path} cannot be used as the data directory (${(error as Error).message}).`,
    );
  }
  requireMetadata(path);
  if (!existsSync(paths(path).metadata)) {
    requireOurs(path);
    restrictToOwner(path);
  }
  return path;
}

/** A clone's `data` folder is readable for others. A volume that belongs to another user keeps its mode, see `doctor`. */
function restrictToOwner(path: string): void {
  if (statSync(path).uid === process.geteuid?.()) chmodSync(path, 0o700);
}

/**
 * The same, and nobody else uses it until the lock is released: before that nothing in it may be changed.
 *
 * @throws {UnusableDirectory} @throws {ForeignDirectory} @throws {MetadataMissing} @throws {DirectoryInUse}
 */
export function takeDirectory(path: string): Lock {
  return takeLock(paths(prepareDirectory(path)).lock, path);
}

/**
 * Refuses a folder that holds events without the store they belong to; one that is not there, or is empty, passes.
 *
 * @throws {MetadataMissing}
 */
export function requireMetadata(dataDir: string): void {
  const place = paths(dataDir);
  if (existsSync(place.metadata)) return;
  // The store of persons is made after it, and may be empty.
  if (existsSync(place.people) || holdsEvents(dataDir)) throw new MetadataMissing(dataDir, "is missing");
}

/**
 * Refuses to begin anew beside events. For a store that was opened and holds no organisation.
 *
 * @throws {MetadataMissing}
 */
export function requireNoEvents(dataDir: string): void {
  if (holdsEvents(dataDir)) throw new MetadataMissing(dataDir, "is empty");
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

/** A start that was cut off may have left some of our files. @throws {ForeignDirectory} */
function requireOurs(dataDir: string): void {
  const ours = [
    ...Object.values(paths(dataDir)).map((path) => basename(path)),
    ...[controlSocketName, engineSocketName, ...systemNames, ...restoreNames],
  ];
  const isOurs = (name: string) =>
    ours.some((own) => name === own || name.startsWith(`${own}-`) || name.startsWith(`${own}.`));
  const foreign = readdirSync(dataDir).filter((name) => !isOurs(name));
  if (foreign.length > 0) throw new ForeignDirectory(dataDir, foreign.sort());
}
