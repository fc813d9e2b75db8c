/** The folder in which a backup is made: one backup at a time, and nothing of a killed one stays. */

import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { onInterrupt } from "../lib/interrupt.ts";
import { DirectoryInUse, type Lock, takeLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { BackupRunning } from "./errors.ts";

/**
 * Does the work while no other process makes, verifies or removes backups of the data directory.
 *
 * @throws {BackupRunning} another process does.
 */
export async function withBackupLock<Result>(dataDir: string, work: () => Promise<Result>): Promise<Result> {
  const base = paths(dataDir).backupWork;
  mkdirSync(base, { recursive: true, mode: 0o700 });
  let lock: Lock;
  try {
    lock = takeLock(join(base, "lock"), dataDir);
  } catch (error) {
    throw error instanceof DirectoryInUse ? new BackupRunning(dataDir) : error;
  }
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/**
 * Does the work with an empty folder of its own in the data directory, and removes it.
 *
 * @throws {BackupRunning} another process does the same.
 */
export async function withWorkFolder<Result>(
  dataDir: string,
  work: (folder: string) => Promise<Result>,
): Promise<Result> {
  const base = paths(dataDir).backupWork;
  return await withBackupLock(dataDir, async () => {
    try {
      await clean(base);
      const folder = join(base, crypto.randomUUID());
      // Before there is anything to remove: a signal may come at any moment.
      const stop = onInterrupt(() => dropFolder(folder));
      try {
        mkdirSync(folder, { mode: 0o700 });
        return await work(folder);
      } finally {
        stop();
      }
    } finally {
      await clean(base);
    }
  });
}

/** Under another name first: what is being written at this moment finds no folder then to be made in. */
function dropFolder(folder: string): void {
  const gone = `${folder}.gone`;
  if (existsSync(folder)) renameSync(folder, gone);
  rmSync(gone, { recursive: true, force: true });
}

async function clean(base: string): Promise<void> {
  for (const name of readdirSync(base)) {
    // The lock's files stay, also those that SQLite keeps beside it.
    if (!name.startsWith("lock")) await rm(join(base, name), { recursive: true, force: true });
  }
}
