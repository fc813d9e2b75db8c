/** Deletes large files without delaying syncs to the same disk. */

import { type FileHandle, lstat, open, readdir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";

/**
 * Bytes freed per step, with a pause after each. A file system frees all blocks of a file in one transaction, and a
 * sync of the journal waits for it: 60 to 150 ms for some hundred megabytes, 6 ms in such steps.
 */
const stepBytes = 4 * 1024 * 1024;
const pauseMs = 12;

/** Deleted files kept open until their space is freed; further ones are freed before the walk continues. */
const unnamedMax = 64;

/** Frees the disk space of unlinked files. */
export type PendingDeletion = () => Promise<void>;

/**
 * Deletes a file, or a folder with its contents; a missing path is ignored.
 *
 * Files are unlinked first and truncated step by step, so a process with an open file sees it shrink: only for files
 * without other readers. Files with further hard links stay intact.
 *
 * @throws errors of the file system.
 */
export async function deleteIncrementally(path: string): Promise<void> {
  await (await unlinkIncrementally(path))();
}

/** Like `deleteIncrementally`, but resolves once the files are unlinked, with a function that frees their space. */
export async function unlinkIncrementally(...paths: readonly string[]): Promise<PendingDeletion> {
  const unnamed: FileHandle[] = [];
  const free = async () => {
    for (let file = unnamed.shift(); file !== undefined; file = unnamed.shift()) await freeStepByStep(file);
  };
  try {
    for (const path of paths) await unlinkTree(path, unnamed);
  } catch (error) {
    await free();
    throw error;
  }
  return free;
}

async function unlinkTree(path: string, unnamed: FileHandle[]): Promise<void> {
  const stats = await lstat(path).catch(ignoreNotFound);
  if (stats?.isDirectory()) {
    for (const name of await readdir(path)) await unlinkTree(join(path, name), unnamed);
    return await rmdir(path).catch(ignoreNotFound);
  }
  const isLarge = stats?.isFile() === true && stats.size > stepBytes;
  const file = isLarge ? await open(path, "r+").catch(() => undefined) : undefined;
  if (file !== undefined) unnamed.push(file);
  await unlink(path).catch(ignoreNotFound);
  if (unnamed.length > unnamedMax) await freeStepByStep(unnamed.shift()!);
}

async function freeStepByStep(file: FileHandle): Promise<void> {
  try {
    const { nlink, size } = await file.stat();
    // Checked after the unlink: another link may have been created before.
    if (nlink > 0) return;
    for (let left = size - stepBytes; left > 0; left -= stepBytes) {
      await file.truncate(left);
      await Bun.sleep(pauseMs);
    }
  } finally {
    await file.close();
  }
}

/** Ignores ENOENT. */
export function ignoreNotFound(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
  return undefined;
}
