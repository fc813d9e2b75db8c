/** The folder in which a backup is made: one backup at a time, and nothing of a killed one stays. */

import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { DirectoryInUse, type Lock, takeLock } from "../lock.ts";
import { paths } from "../paths.ts";
import { BackupRunning } from "./errors.ts";
import { onInterrupt } from "./interrupt.ts";

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
  mkdirSync(base, { recursive: true, mode: 0o700 });
  let lock: Lock;
  try {
    lock = takeLock(join(base, "lock"), dataDir);
  } catch (error) {
    throw error instanceof DirectoryInUse ? new BackupRunning(dataDir) : error;
  }
  try {
    await clean(base);
    const folder = join(base, crypto.randomUUID());
    mkdirSync(folder, { mode: 0o700 });
    const stop = onInterrupt(() => rmSync(folder, { recursive: true, force: true }));
    try {
      return await work(folder);
    } finally {
      stop();
    }
  } finally {
    await clean(base);
    lock.release();
  }
}

async function clean(base: string): Promise<void> {
  for (const name of readdirSync(base)) {
    // The lock's files stay, also those that SQLite keeps beside it.
    if (!name.startsWith("lock")) await rm(join(base, name), { recursive: true, force: true });
  }
}
