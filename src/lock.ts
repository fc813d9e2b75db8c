/**
 * One process at a time uses a data directory.
 *
 * The lock is an SQLite file that is kept in an exclusive transaction: the system takes such a lock away when the
 * process ends, however it ends, so a crash never leaves it stale.
 */

import { Database } from "bun:sqlite";
import { readFileSync, writeFileSync } from "node:fs";
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
 * @param path the lock's file; a file beside it names the holder.
 * @throws {DirectoryInUse}
 */
export function takeLock(path: string, folder: string): Lock {
  const db = new Database(path, { create: true });
  try {
    db.run("PRAGMA busy_timeout = 0");
    db.run("PRAGMA locking_mode = EXCLUSIVE");
    db.run("BEGIN EXCLUSIVE");
  } catch (error) {
    db.close();
    throw (error as { code?: string }).code === "SQLITE_BUSY"
      ? new DirectoryInUse(folder, readHolder(path))
      : error;
  }
  writeFileSync(holderPath(path), String(process.pid), { mode: 0o600 });
  return { release: () => db.close() };
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
