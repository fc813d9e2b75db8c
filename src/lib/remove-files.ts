/** Removes large files without holding up whoever syncs to the same disk. */

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
export type Freeing = () => Promise<void>;

/**
 * Removes a file or a folder with all that is in it; what is not there is removed already.
 *
 * Names go first and the room step by step, so whoever has a file open reads an end: it is for files that nobody else reads.
 * A file with further names is left to those.
 *
 * @throws what the system says.
 */
export async function removeSparingly(path: string): Promise<void> {
  await (await unlinkSparingly(path))();
}

/** The same for who cannot wait for the room: when it resolves the names are gone, and the answer gives the room back. */
export async function unlinkSparingly(...paths: readonly string[]): Promise<Freeing> {
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
  const stats = await lstat(path).catch(ignoreAbsent);
  if (stats?.isDirectory()) {
    for (const name of await readdir(path)) await unlinkTree(join(path, name), unnamed);
    return await rmdir(path).catch(ignoreAbsent);
  }
  const isLarge = stats?.isFile() === true && stats.size > stepBytes;
  const file = isLarge ? await open(path, "r+").catch(() => undefined) : undefined;
  if (file !== undefined) unnamed.push(file);
  await unlink(path).catch(ignoreAbsent);
  if (unnamed.length > unnamedMax) await freeStepByStep(unnamed.shift()!);
}

async function freeStepByStep(file: FileHandle): Promise<void> {
  try {
    const { nlink, size } = await file.stat();
    // Asked when the name is gone: another one may have been made until then.
    if (nlink > 0) return;
    for (let left = size - stepBytes; left > 0; left -= stepBytes) {
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
