/** What can go wrong with a backup, each with what an operator can do about it. */

import { AppError } from "../lib/errors.ts";
import { shellWord } from "../lib/shell-text.ts";

/** A part of a backup is not what was put into it. */
export class BackupDamaged extends AppError {
  readonly code = "backup_damaged";
  override readonly hint = "Run `flagkeep backup verify` on an older backup and use that one.";
  constructor(
    /** The file inside the backup, or `manifest.json`, or `end of file`. */
    readonly part: string,
    what: string,
  ) {
    super(`The backup is damaged in its part ${part}: ${what}.`);
  }
}

/** There is no such backup. */
export class BackupNotFound extends AppError {
  readonly code = "backup_not_found";
  override readonly hint: string;
  /** @param isPlace it is where backups are, and none itself. */
  constructor(name: string, isPlace = false) {
    super(isPlace ? `${name} is a folder and no backup.` : `There is no backup ${name}.`);
    // A prefix of a bucket cannot be told from an object that is not there; names of backups end so.
    const isName = !isPlace && (!name.startsWith("s3://") || /\.(?:zst|age|json)$/.test(name));
    const place = isName ? name.slice(0, name.lastIndexOf("/")) || "/" : name;
    this.hint = `See \`flagkeep backup list ${shellWord(place)}\`.`;
  }
}

/** The backup was written by a version of Flagkeep that knows more than this one. */
export class BackupFromNewerVersion extends AppError {
  readonly code = "backup_from_newer_version";
  override readonly hint = "Use the version of Flagkeep that took it, or a later one.";
  constructor(what: string, found: number, known: number, takenBy: string) {
    super(
      `The backup's ${what} has version ${found}, this Flagkeep knows versions up to ${known}: ` +
        `the backup was taken by Flagkeep ${takenBy}.`,
    );
  }
}

/** A restore would overwrite something. */
export class TargetNotEmpty extends AppError {
  readonly code = "target_not_empty";
  override readonly hint =
    "Give an empty or new --data-dir, or --force, which keeps what is there under another name.";
  constructor(folder: string) {
    super(`${folder} is not empty.`);
  }
}

/** The disk has no room for what was asked. */
export class NotEnoughSpace extends AppError {
  readonly code = "not_enough_space";
  override readonly hint = "Free some space there, or use another disk.";
  constructor(folder: string, neededBytes: number, freeBytes: number) {
    super(`The disk of ${folder} needs ${mebibytes(neededBytes)} free and has ${mebibytes(freeBytes)}.`);
  }
}

/** Another backup command works on the same data directory. */
export class BackupRunning extends AppError {
  readonly code = "backup_running";
  override readonly hint = "Wait until it is done.";
  constructor(folder: string) {
    super(`Another backup of ${folder} is being made, verified or removed.`);
  }
}

/** No sound copy of the stores could be made. */
export class SnapshotFailed extends AppError {
  readonly code = "snapshot_failed";
  override readonly hint = "Try again; if it goes on, stop the appliance and make the backup then.";
}

/** The destination cannot be read or written. */
export class DestinationFailed extends AppError {
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
