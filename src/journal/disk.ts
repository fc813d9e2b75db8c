/**
 * The file operations that the journal's promises rest on, as one interface, so that tests can put a disk below
 * the journal that is full, slow or forgets what was not synced.
 */

import { constants } from "node:fs";
import * as fs from "node:fs/promises";
import { dirname } from "node:path";

export interface JournalFile {
  /** Writes all bytes at the position; resolves once they are on the disk. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  truncate(bytes: number): Promise<void>;
  close(): Promise<void>;
}

export interface Disk {
  /** Creates a new file; its name is durable when this resolves. */
  create(path: string): Promise<JournalFile>;
  remove(path: string): Promise<void>;
  /** Free bytes and size of the volume that holds the path. */
  space(path: string): Promise<{ freeBytes: number; totalBytes: number }>;
}

/** A new file whose writes return when they are on the disk: one call where a write and a sync would be two. */
const durableFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_DSYNC;

export const systemDisk: Disk = {
  async create(path) {
    const handle = await fs.open(path, durableFile, 0o600);
    await syncFolder(dirname(path));
    return {
      async write(bytes, position) {
        let done = 0;
        while (done < bytes.length) {
          const { bytesWritten } = await handle.write(bytes, done, bytes.length - done, position + done);
          if (bytesWritten === 0) throw new Error("The disk took no bytes.");
          done += bytesWritten;
        }
      },
      truncate: (bytes) => handle.truncate(bytes),
      close: () => handle.close(),
    };
  },
  remove: (path) => fs.unlink(path),
  async space(path) {
    const stats = await fs.statfs(path);
    return { freeBytes: stats.bavail * stats.bsize, totalBytes: stats.blocks * stats.bsize };
  },
};

/** Makes created, renamed and removed names in a folder durable. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await fs.open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

/** Replaces a file atomically, mode 0600: after a crash it has the old or the new content. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}.tmp`;
  const file = await fs.open(temporary, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await fs.rename(temporary, path);
  await syncFolder(dirname(path));
}

const MiB = 1024 * 1024;
/** Fixed cost of a load: blocks of the event store, pages of the store of persons. */
const loadingBytes = 8 * MiB;
/** For each byte of the journal: the event store's log, its file, the store of persons, the archive. */
const loadingFactor = 2.5;
/** Margin for concurrent writers. */
const marginBytes = 2 * MiB;
/** Upper limit of the reserve as a part of the volume. */
const reserveShare = 0.05;

/** Disk space the journal keeps free in addition to its pending bytes. @param reserveBytes the setting `journal-reserve` */
export function reservedBytes(reserveBytes: number, totalBytes: number): number {
  return Math.min(reserveBytes, totalBytes * reserveShare);
}

/** Free space needed to load journal entries into the stores. */
export function bytesNeededToLoad(journalBytes: number): number {
  return loadingBytes + loadingFactor * journalBytes;
}

/** Inverse of `bytesNeededToLoad`; negative if nothing can be loaded. */
export function loadableBytes(freeBytes: number): number {
  return (freeBytes - loadingBytes - marginBytes) / loadingFactor;
}

/** Free space needed to checkpoint loaded bytes from the event store's log into its file. */
export function bytesNeededToCheckpoint(journalBytes: number): number {
  return marginBytes + journalBytes;
}

/** Pending entries, in journal bytes. */
export interface PendingBytes {
  /** Not loaded. */
  unloaded: number;
  /** Loaded, but still in the event store's log. */
  unwritten: number;
}

/**
 * Free space below which new entries are rejected: the reserve plus what all accepted entries still need, so accepted
 * entries can be loaded however full the volume is.
 */
export function bytesNeededToAccept(reserve: number, { unloaded, unwritten }: PendingBytes): number {
  return reserve + marginBytes + bytesNeededToLoad(unloaded) + bytesNeededToCheckpoint(unwritten);
}

/** Disk space of new entries: their journal bytes plus what loading them will need. */
export function diskCost(bytes: number): number {
  return bytes * (1 + loadingFactor);
}
