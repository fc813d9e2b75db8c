/**
 * Ensures that only one process uses a data directory.
 *
 * Uses two locks, and both must be free. One is on the folder itself (`flock`) and cannot be bypassed by removing a
 * file. The other is an SQLite file in an exclusive transaction, for volumes that do not support locks on folders,
 * such as some network file systems. The system releases both when the process exits for any reason, so a crash
 * leaves no stale lock.
 */

import { Database } from "bun:sqlite";
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { AppError } from "./lib/errors.ts";
import { cLibrary } from "./lib/operating-system.ts";

/** Another process uses the data directory. */
export class DirectoryInUseError extends AppError {
  readonly code = "directory_in_use";
  override readonly hint = "Stop the other process, or use another --data-dir.";
  constructor(folder: string, holder: string) {
    super(
      `The data directory ${folder} is in use by another Flagkeep process${holder === "" ? "" : ` (process ${holder})`}.`,
    );
  }
}

export interface Lock {
  release(): void;
}

/**
 * Takes the lock of a data directory.
 *
 * @param path   the lock's file, in the folder that is locked; a file next to it names the holder.
 * @param folder what the error names.
 * @throws {DirectoryInUseError}
 */
export function acquireLock(path: string, folder: string): Lock {
  const held = lockFolder(dirname(path), folder, path);
  const db = new Database(path, { create: true });
  try {
    db.run("PRAGMA busy_timeout = 0");
    db.run("PRAGMA locking_mode = EXCLUSIVE");
    db.run("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    held?.release();
    throw (error as { code?: string }).code === "SQLITE_BUSY"
      ? new DirectoryInUseError(folder, readHolder(path))
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

/** An engine notices within seconds that its front has been killed, and ends. */
const formerEngineMs = 30_000;
const waitMs = 50;

/**
 * Takes the lock that an engine holds while it has the stores open: that of a node that was killed may live for a moment, and
 * is waited for. Required to write to a store that an engine used. Nothing is written: a full disk is no hindrance.
 *
 * @param engine  the engine's folder.
 * @param dataDir what the error names.
 * @param onWait  called once, when another engine has it.
 * @returns undefined where no engine has been, or folders cannot be locked.
 * @throws {DirectoryInUseError}
 */
export async function acquireEngineLock(
  engine: string,
  dataDir: string,
  onWait?: () => void,
): Promise<Lock | undefined> {
  if (!existsSync(engine)) return undefined;
  let held = flockFolder(engine);
  if (held === "in use") onWait?.();
  for (const end = performance.now() + formerEngineMs; held === "in use"; held = flockFolder(engine)) {
    if (performance.now() > end) throw new DirectoryInUseError(dataDir, "");
    await Bun.sleep(waitMs);
  }
  return held;
}

/**
 * Takes both locks of a data directory, for who opens its stores instead of a node and its engine.
 *
 * @throws {DirectoryInUseError}
 */
export async function acquireStoresLock(
  files: { lock: string; engine: string },
  folder: string,
): Promise<Lock> {
  const lock = acquireLock(files.lock, folder);
  try {
    const engine = await acquireEngineLock(files.engine, folder);
    return {
      release() {
        engine?.release();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Acquires the lock of an unused data directory; undefined if it is in use. */
export function tryAcquireLock(path: string, folder: string): Lock | undefined {
  try {
    return acquireLock(path, folder);
  } catch (error) {
    if (error instanceof DirectoryInUseError) return undefined;
    throw error;
  }
}

/**
 * Like `acquireLock`, for readers: leaves no file in folders that support locks.
 *
 * @param path the lock's file.
 */
export function acquireSharedLock(path: string, folder: string): Lock | undefined {
  try {
    return lockFolder(folder) ?? acquireLock(path, folder);
  } catch (error) {
    if (error instanceof DirectoryInUseError) return undefined;
    throw error;
  }
}

/** Whether a process uses a data directory; nothing is left in the folder where folders can be locked. @param path the lock's file. */
export function isInUse(path: string, folder: string): boolean {
  const lock = acquireSharedLock(path, folder);
  lock?.release();
  return lock === undefined;
}

/**
 * Takes the lock on the folder alone, which leaves nothing in it: for a folder that may not be ours.
 *
 * @returns undefined where folders cannot be locked.
 * @throws {DirectoryInUseError}
 */
export function lockFolder(path: string, folder = path, file = join(path, "lock")): Lock | undefined {
  const held = flockFolder(path);
  if (held === "in use") throw new DirectoryInUseError(folder, readHolder(file));
  return held;
}

/** Operations of `flock`: exclusive and without waiting, and the end of that. */
const lockExclusive = 2 | 4;
const unlock = 8;

type Flock = (fd: number, operation: number) => number;
/** Null where the system's library has no such call. */
let flock: Flock | null | undefined;

/** @returns undefined where folders cannot be locked. */
function flockFolder(folder: string): Lock | "in use" | undefined {
  flock ??= loadFlock();
  if (flock === null) return undefined;
  // Closed in child processes: the engine must not hold the lock after its server process has exited.
  const fd = openSync(folder, "r");
  if (flock(fd, lockExclusive) === 0) return { release: () => closeSync(fd) };
  // Where folders cannot be locked, unlocking is rejected as well; the file alone decides then.
  const isHeld = flock(fd, unlock) === 0;
  closeSync(fd);
  return isHeld ? "in use" : undefined;
}

/** Null with another C library: the file alone has to do there. */
function loadFlock(): Flock | null {
  return (cLibrary({ flock: { args: ["i32", "i32"], returns: "i32" } })?.flock as Flock) ?? null;
}

function holderPath(path: string): string {
  return `${path}.pid`;
}

/** The id of the process that took the lock last; empty where that is unknown. @param path the lock's file. */
export function readHolder(path: string): string {
  try {
    return readFileSync(holderPath(path), "utf8");
  } catch {
    return "";
  }
}
