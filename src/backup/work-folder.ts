/** The folder in which a backup is made: one backup at a time, and nothing of a killed one stays. */

import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { onInterrupt } from "../lib/interrupt.ts";
import { type Freeing, unlinkSparingly } from "../lib/remove-files.ts";
import { DirectoryInUse, type Lock, takeLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { BackupRunning } from "./errors.ts";

/** How often it is looked whether another one has ended. */
const lookEveryMs = 200;

/**
 * Does the work while no other process makes, verifies or removes backups of the data directory.
 *
 * @param waitMs so long another one is waited for.
 * @throws {BackupRunning} another process still does.
 */
export async function withBackupLock<Result>(
  dataDir: string,
  work: () => Promise<Result>,
  waitMs = 0,
): Promise<Result> {
  const base = paths(dataDir).backupWork;
  mkdirSync(base, { recursive: true, mode: 0o700 });
  const lock = await lockWithin(waitMs, () => takeLock(join(base, "lock"), dataDir));
  if (lock === undefined) throw new BackupRunning(dataDir);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

/** @returns undefined when somebody else still has it. */
async function lockWithin(waitMs: number, take: () => Lock): Promise<Lock | undefined> {
  for (const end = performance.now() + waitMs; ; await Bun.sleep(lookEveryMs)) {
    try {
      return take();
    } catch (error) {
      if (!(error instanceof DirectoryInUse)) throw error;
      if (performance.now() >= end) return undefined;
    }
  }
}

/**
 * Does the work with an empty folder of its own in the data directory, and removes it.
 *
 * @param waitMs so long another process that does the same is waited for.
 * @throws {BackupRunning} it still does.
 */
export async function withWorkFolder<Result>(
  dataDir: string,
  work: (folder: string) => Promise<Result>,
  waitMs = 0,
): Promise<Result> {
  const base = paths(dataDir).backupWork;
  let free: Freeing | undefined;
  const inFolder = async () => {
    try {
      // Its room may be needed.
      await (await clean(base))();
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
      free = await clean(base);
    }
  };
  try {
    return await withBackupLock(dataDir, inFolder, waitMs);
  } finally {
    // When others may begin: some gigabytes take half a minute.
    await free?.();
  }
}

/**
 * Removes what a killed one has left, which may be as large as all the stores.
 *
 * @returns without having done anything while another process works there.
 */
export async function dropLeftWork(dataDir: string): Promise<void> {
  const base = paths(dataDir).backupWork;
  if (!existsSync(base)) return;
  const free = await withBackupLock(dataDir, () => clean(base)).catch((error: unknown) => {
    if (!(error instanceof BackupRunning)) throw error;
  });
  await free?.();
}

/** Under another name first: what is being written at this moment finds no folder then to be made in. */
function dropFolder(folder: string): void {
  const gone = `${folder}.gone`;
  if (existsSync(folder)) renameSync(folder, gone);
  rmSync(gone, { recursive: true, force: true });
}

async function clean(base: string): Promise<Freeing> {
  // The lock's files stay, also those that SQLite keeps beside it.
  const names = readdirSync(base).filter((name) => !name.startsWith("lock"));
  return await unlinkSparingly(...names.map((name) => join(base, name)));
}
