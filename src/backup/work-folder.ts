/** The work folder of backups: one backup at a time, and leftovers of a killed one are deleted. */

import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { onInterrupt } from "../lib/cancellation.ts";
import { type PendingDeletion, unlinkIncrementally } from "../lib/remove-files.ts";
import { acquireLock, DirectoryInUseError, type Lock } from "../lock.ts";
import { paths } from "../paths.ts";
import { BackupRunningError } from "./errors.ts";

/** Polling interval while another process holds the lock. */
const checkIntervalMs = 200;

/**
 * Runs the work while no other process creates, verifies or deletes backups of the data directory.
 *
 * @param waitMs how long to wait for another process.
 * @throws {BackupRunningError} another process still holds the lock.
 */
export async function withBackupLock<Result>(
  dataDir: string,
  work: () => Promise<Result>,
  waitMs = 0,
): Promise<Result> {
  const base = paths(dataDir).backupWork;
  mkdirSync(base, { recursive: true, mode: 0o700 });
  const lock = await lockWithin(waitMs, () => acquireLock(join(base, "lock"), dataDir));
  if (lock === undefined) throw new BackupRunningError(dataDir);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/** @returns undefined if another process holds it. */
async function lockWithin(waitMs: number, take: () => Lock): Promise<Lock | undefined> {
  for (const end = performance.now() + waitMs; ; await Bun.sleep(checkIntervalMs)) {
    try {
      return take();
    } catch (error) {
      if (!(error instanceof DirectoryInUseError)) throw error;
      if (performance.now() >= end) return undefined;
    }
  }
}

/**
 * Runs the work with an empty, dedicated folder in the data directory, and deletes the folder.
 *
 * @param waitMs how long to wait for another process that does the same.
 * @throws {BackupRunningError} it still does.
 */
export async function withWorkFolder<Result>(
  dataDir: string,
  work: (folder: string) => Promise<Result>,
  waitMs = 0,
): Promise<Result> {
  const base = paths(dataDir).backupWork;
  let free: PendingDeletion | undefined;
  const inFolder = async () => {
    try {
      // Leftovers may take the disk space that the work needs.
      await (await clean(base))();
      const folder = join(base, crypto.randomUUID());
      // Registered before the folder exists: a signal may arrive at any time.
      const stop = onInterrupt(() => dropFolder(folder));
      try {
        mkdirSync(folder, { mode: 0o700 });
        return await work(folder);
      } finally {
        stop();
      }
    } finally {
      free = await clean(base);
    }
  };
  try {
    return await withBackupLock(dataDir, inFolder, waitMs);
  } finally {
    // After the lock is released: deleting some gigabytes takes half a minute.
    await free?.();
  }
}

/**
 * Deletes leftovers of a killed process, which may be as large as all the stores.
 *
 * Does nothing while another process works there.
 */
export async function cleanUpWorkFolder(dataDir: string): Promise<void> {
  const base = paths(dataDir).backupWork;
  if (!existsSync(base)) return;
  const free = await withBackupLock(dataDir, () => clean(base)).catch((error: unknown) => {
    if (!(error instanceof BackupRunningError)) throw error;
  });
  await free?.();
}

/** Renamed first, so that concurrent writes cannot create files in the folder. */
function dropFolder(folder: string): void {
  const deleted = `${folder}.gone`;
  if (existsSync(folder)) renameSync(folder, deleted);
  rmSync(deleted, { recursive: true, force: true });
}

async function clean(base: string): Promise<PendingDeletion> {
  // The lock's files stay, including those that SQLite keeps next to it.
  const names = readdirSync(base).filter((name) => !name.startsWith("lock"));
  return await unlinkIncrementally(...names.map((name) => join(base, name)));
}
