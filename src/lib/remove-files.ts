/** Removes large files without holding up whoever syncs to the same disk. */

import type { Stats } from "node:fs";
import { type FileHandle, lstat, open, readdir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";

/**
 * What is freed at once, and how long the disk is left alone then. A file system frees the blocks of a file in one piece of its
 * own log, and a sync of the journal waits for it: 60 to 150 ms for some hundred megabytes, 6 in such steps.
 */
const stepBytes = 4 * 1024 * 1024;
const pauseMs = 12;

/** Files kept open without a name until their room is given back; further ones are freed before the walk goes on. */
const unnamedMax = 64;

/** Gives back the room of files that have lost their names. */
type Freeing = () => Promise<void>;

/**
 * Removes a file; one that is not there is removed already.
 *
 * Its name goes first and its room step by step, so whoever has it open reads an end: it is for files that nobody else reads.
 * A file with further names is left to those.
 *
 * @throws what the system says; EISDIR or EPERM of a folder.
 */
export async function removeFileSparingly(path: string): Promise<void> {
  await (await unlinkFile(path))?.();
}

/** The same for a file or a folder with all that is in it. */
export async function removeSparingly(path: string): Promise<void> {
  await (await unlinkSparingly(path))();
}

/** The same for who cannot wait for the room: when it resolves the names are gone, and the answer gives the room back. */
export async function unlinkSparingly(path: string): Promise<Freeing> {
  const freeings: Freeing[] = [];
  await unlinkTree(path, freeings);
  return async () => {
    for (const free of freeings) await free();
  };
}

async function unlinkTree(path: string, freeings: Freeing[]): Promise<void> {
  const stats = await lstat(path).catch(ignoreAbsent);
  if (stats?.isDirectory()) {
    for (const name of await readdir(path)) await unlinkTree(join(path, name), freeings);
    return await rmdir(path).catch(ignoreAbsent);
  }
  const free = await unlinkFile(path);
  if (free === undefined) return;
  if (freeings.length < unnamedMax) freeings.push(free);
  else await free();
}

async function unlinkFile(path: string): Promise<Freeing | undefined> {
  const stats = await lstat(path).catch(ignoreAbsent);
  const file = stats && isLarge(stats) ? await open(path, "r+").catch(() => undefined) : undefined;
  try {
    await unlink(path).catch(ignoreAbsent);
  } catch (error) {
    await file?.close();
    throw error;
  }
  return stats && file && (() => freeStepByStep(file, stats.size));
}

function isLarge(stats: Stats): boolean {
  return stats.isFile() && stats.nlink === 1 && stats.size > stepBytes;
}

async function freeStepByStep(file: FileHandle, bytes: number): Promise<void> {
  try {
    for (let left = bytes - stepBytes; left > 0; left -= stepBytes) {
      await file.truncate(left);
      await Bun.sleep(pauseMs);
    }
  } finally {
    await file.close();
  }
}

/** For `catch`: a file that is not there is none. */
export function ignoreAbsent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
  return undefined;
}
