/**
 * One process at a time uses a data directory.
 *
 * Two locks, and both have to be free. One is on the folder itself (`flock`): nobody can take it away by removing a
 * file. The other is an SQLite file in an exclusive transaction, for volumes whose folders know no locks, such as some
 * network file systems. The system gives both back when the process ends, however it ends, so a crash leaves no
 * stale lock.
 */

import { dlopen } from "bun:ffi";
import { Database } from "bun:sqlite";
import { closeSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { AppError } from "./lib/errors.ts";

/** Another process uses the data directory. */
export class DirectoryInUse extends AppError {
  readonly code = "directory_in_use";
  override readonly hint = "Stop the other process, or give this one another --data-dir.";
  constructor(folder: string, holder: string) {
    super(
      `The data directory ${folder} is in use by another Flagkeep${holder === "" ? "" : ` (process ${holder})`}.`,
    );
  }
}

export interface Lock {
  release(): void;
}

/**
 * Takes the lock of a data directory.
 *
 * @param path   the lock's file, in the folder that is locked; a file beside it names the holder.
 * @param folder what the error names.
 * @throws {DirectoryInUse}
 */
export function takeLock(path: string, folder: string): Lock {
  const held = takeFolderLock(dirname(path), folder, path);
  const db = new Database(path, { create: true });
  try {
    db.run("PRAGMA busy_timeout = 0");
    db.run("PRAGMA locking_mode = EXCLUSIVE");
    db.run("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    held?.release();
    throw (error as { code?: string }).code === "SQLITE_BUSY"
      ? new DirectoryInUse(folder, readHolder(path))
      : error;
  }
  writeFileSync(holderPath(path), String(process.pid), { mode: 0o600 });
  return {
    release() {
      db.close();
      held?.release();
    },
  };
}

/** Takes the lock of a data directory that nobody uses; undefined when somebody does. */
export function tryLock(path: string, folder: string): Lock | undefined {
  try {
    return takeLock(path, folder);
  } catch (error) {
    if (error instanceof DirectoryInUse) return undefined;
    throw error;
  }
}

/**
 * Takes the lock on the folder alone, which leaves nothing in it: for a folder that may not be ours.
 *
 * @returns undefined where folders cannot be locked.
 * @throws {DirectoryInUse}
 */
export function takeFolderLock(path: string, folder = path, file = join(path, "lock")): Lock | undefined {
  const held = lockFolder(path);
  if (held === "in use") throw new DirectoryInUse(folder, readHolder(file));
  return held;
}

/** Operations of `flock`: exclusive and without waiting, and the end of that. */
const lockExclusive = 2 | 4;
const unlock = 8;

type Flock = (fd: number, operation: number) => number;
/** Null where the system's library has no such call. */
let flock: Flock | null | undefined;

/** @returns undefined where folders cannot be locked. */
function lockFolder(folder: string): Lock | "in use" | undefined {
  flock ??= loadFlock();
  if (flock === null) return undefined;
  // Closed in child processes: the engine does not hold the lock when its front has gone.
  const fd = openSync(folder, "r");
  if (flock(fd, lockExclusive) === 0) return { release: () => closeSync(fd) };
  // Where folders cannot be locked, unlocking is refused as well; the file alone decides then.
  const isHeld = flock(fd, unlock) === 0;
  closeSync(fd);
  return isHeld ? "in use" : undefined;
}

function loadFlock(): Flock | null {
  const names = process.platform === "darwin" ? ["libSystem.B.dylib"] : ["libc.so.6", "libc.so"];
  for (const name of names) {
    try {
      return dlopen(name, { flock: { args: ["i32", "i32"], returns: "i32" } }).symbols.flock as Flock;
    } catch {
      // Another C library; the file alone has to do where there is none of these names.
    }
  }
  return null;
}

function holderPath(path: string): string {
  return `${path}.pid`;
}

function readHolder(path: string): string {
  try {
    return readFileSync(holderPath(path), "utf8");
  } catch {
    return "";
  }
}
