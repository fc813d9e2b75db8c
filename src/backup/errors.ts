/** Backup errors, each with advice for an operator. */

import { AppError } from "../lib/errors.ts";
import { shellWord } from "../lib/terminal-text.ts";

/** A part of a backup does not match its checksum or format. */
export class BackupCorruptError extends AppError {
  readonly code = "backup_damaged";
  override readonly hint = "Run `flagkeep backup verify` on an older backup and use it instead.";
  constructor(
    /** The file inside the backup, or `manifest.json`, or `end of file`. */
    readonly part: string,
    what: string,
  ) {
    super(`The backup is corrupt in ${part}: ${what}.`);
  }
}

export class BackupNotFoundError extends AppError {
  readonly code = "backup_not_found";
  override readonly hint: string;
  /** @param isLocation it is a folder or bucket of backups, not a backup. */
  constructor(name: string, isLocation = false) {
    super(isLocation ? `${name} is a folder, not a backup.` : `Backup ${name} does not exist.`);
    // A bucket prefix cannot be distinguished from a missing object; names of backups have these endings.
    const isName = !isLocation && (!name.startsWith("s3://") || /\.(?:zst|age|json)$/.test(name));
    const folder = isName ? name.slice(0, name.lastIndexOf("/")) || "/" : name;
    this.hint = `See \`flagkeep backup list ${shellWord(folder)}\`.`;
  }
}

export class BackupFromNewerVersionError extends AppError {
  readonly code = "backup_from_newer_version";
  override readonly hint = "Use the Flagkeep version that created it, or a later one.";
  constructor(what: string, found: number, known: number, usedBy: string) {
    super(
      `The backup's ${what} has version ${found}, but this Flagkeep supports versions up to ${known}: ` +
        `the backup was created by Flagkeep ${usedBy}.`,
    );
  }
}

/** A restore would overwrite existing files. */
export class TargetNotEmptyError extends AppError {
  readonly code = "target_not_empty";
  override readonly hint =
    "Use an empty --data-dir, or --force, which keeps the old directory under another name.";
  constructor(folder: string) {
    super(`${folder} is not empty.`);
  }
}

export class DiskSpaceError extends AppError {
  readonly code = "not_enough_space";
  override readonly hint = "Free disk space there, or use another disk.";
  constructor(folder: string, neededBytes: number, freeBytes: number) {
    super(
      `The disk of ${folder} has ${mebibytes(freeBytes)} free, but ${mebibytes(neededBytes)} are required.`,
    );
  }
}

/** Another backup command works on the same data directory. */
export class BackupRunningError extends AppError {
  readonly code = "backup_running";
  override readonly hint = "Wait until it is done.";
  constructor(folder: string) {
    super(`Another backup operation is running on ${folder}.`);
  }
}

/** No consistent copy of the stores could be created. */
export class SnapshotError extends AppError {
  readonly code = "snapshot_failed";
  override readonly hint = "Try again. If the error persists, stop the server and create the backup then.";
}

/** The destination cannot be read or written. */
export class DestinationError extends AppError {
  readonly code = "destination_failed";
  constructor(
    message: string,
    override readonly hint = "Check the destination's address, credentials and permissions.",
  ) {
    super(message);
  }
}

function mebibytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024 ** 2)} MiB`;
}
