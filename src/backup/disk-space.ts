/** Checks free disk space before anything is written. */

import { mkdirSync } from "node:fs";
import { systemDisk } from "../journal/disk.ts";
import { DiskSpaceError } from "./errors.ts";

/** Free and total bytes of a folder's disk; tests inject another disk. */
export type FreeSpace = (folder: string) => Promise<{ freeBytes: number; totalBytes: number }>;

/** Includes DuckDB's library, which is unpacked next to the stores. */
const marginBytes = 128 * 1024 * 1024;

/** @throws {DiskSpaceError} too little space on the disk of the folder, which is created when missing. */
export async function assertDiskSpace(
  folder: string,
  bytes: number,
  spaceOf: FreeSpace = systemDisk.space,
  reserveBytes = 0,
): Promise<void> {
  // Synchronous: an asynchronous mkdir could run after an interrupted command has cleaned up.
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { freeBytes, totalBytes } = await spaceOf(folder);
  // Like the journal's reserve: at most 5% of the disk.
  const needed = bytes + Math.max(marginBytes, Math.min(reserveBytes, totalBytes * 0.05));
  if (freeBytes < needed) throw new DiskSpaceError(folder, needed, freeBytes);
}
