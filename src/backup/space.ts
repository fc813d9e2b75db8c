/** Whether a disk has room, before anything is written. */

import { mkdirSync } from "node:fs";
import { systemDisk } from "../journal/disk.ts";
import { NotEnoughSpace } from "./errors.ts";

/** Free and total bytes of the disk of a folder; tests put another disk in. */
export type SpaceOf = (folder: string) => Promise<{ freeBytes: number; totalBytes: number }>;

/** DuckDB's library among it, which is put beside the stores. */
const marginBytes = 128 * 1024 * 1024;

/** @throws {NotEnoughSpace} the disk of the folder, which is made when missing, cannot take so many bytes. */
export async function requireSpace(
  folder: string,
  bytes: number,
  spaceOf: SpaceOf = systemDisk.space,
  reserveBytes = 0,
): Promise<void> {
  // At once: made later, by another thread, it could come after an interrupted command has cleaned up.
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const { freeBytes, totalBytes } = await spaceOf(folder);
  // As the journal counts its reserve: at most a twentieth of the disk.
  const needed = bytes + Math.max(marginBytes, Math.min(reserveBytes, totalBytes * 0.05));
  if (freeBytes < needed) throw new NotEnoughSpace(folder, needed, freeBytes);
}
