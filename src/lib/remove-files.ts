/** Removes large files without holding up whoever syncs to the same disk. */

import type { Stats } from "node:fs";
import { lstat, open, readdir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";

/**
 * What is freed at once, and how long the disk is left alone then. A file system frees the blocks of a file in one piece of its
 * own log, and a sync of the journal waits for it: 60 to 150 ms for some hundred megabytes, 6 in such steps.
 */
const stepBytes = 4 * 1024 * 1024;
const pauseMs = 12;

/**
 * Removes a file; one that is not there is removed already.
 *
 * Its name goes at once and its room step by step, so whoever has it open reads an end: it is for files that nobody else reads.
 * A file with further names is left to those.
 *
 * @throws what the system says; EISDIR or EPERM of a folder.
 */
export async function removeFileSparingly(path: string): Promise<void> {
  const stats = await lstat(path).catch(ignoreAbsent);
  if (stats === undefined) return;
  if (isLarge(stats)) await freeStepByStep(path, stats.size);
  else await unlink(path).catch(ignoreAbsent);
}

/** The same for a file or a folder with all that is in it. */
export async function removeSparingly(path: string): Promise<void> {
  const stats = await lstat(path).catch(ignoreAbsent);
  if (stats?.isDirectory() !== true) return await removeFileSparingly(path);
  for (const name of await readdir(path)) await removeSparingly(join(path, name));
  await rmdir(path).catch(ignoreAbsent);
}

function isLarge(stats: Stats): boolean {
  return stats.isFile() && stats.nlink === 1 && stats.size > stepBytes;
}

async function freeStepByStep(path: string, bytes: number): Promise<void> {
  const file = await open(path, "r+").catch(() => undefined);
  try {
    await unlink(path).catch(ignoreAbsent);
    if (file === undefined) return;
    for (let left = bytes - stepBytes; left > 0; left -= stepBytes) {
      await file.truncate(left);
      await Bun.sleep(pauseMs);
    }
  } finally {
    await file?.close();
  }
}

/** For `catch`: a file that is not there is none. */
export function ignoreAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
  return undefined;
}
