/**
 * File operations that the journal's durability depends on, as an interface, so that tests can simulate a disk that is
 * full, slow or loses unsynced writes.
 */

import * as fs from "node:fs/promises";
import { dirname } from "node:path";
import { createSegmentFile, type JournalFile } from "./segment-file.ts";

export interface Disk {
  /** Creates a new file; resolves when its name is durable. */
  create(path: string): Promise<JournalFile>;
  remove(path: string): Promise<void>;
  /** Free bytes and size of the path's volume. */
  space(path: string): Promise<{ freeBytes: number; totalBytes: number }>;
}

export const systemDisk: Disk = {
  async create(path) {
    const file = await createSegmentFile(path);
    await syncFolder(dirname(path));
    return file;
  },
  remove: (path) => fs.unlink(path),
  async space(path) {
    const stats = await fs.statfs(path);
    return { freeBytes: stats.bavail * stats.bsize, totalBytes: stats.blocks * stats.bsize };
  },
};

/** Makes created, renamed and deleted names in a folder durable. */
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
/** Fixed cost of a load: blocks of the event store, pages of the person store. */
const loadingBytes = 8 * MiB;
/** Per journal byte: the event store's log and file, the person store, the archive. */
const loadingFactor = 2.5;
/** Margin for concurrent writers. */
const marginBytes = 2 * MiB;
/** Upper limit of the reserve as a fraction of the volume. */
const reserveShare = 0.05;

/**
 * Disk space that the journal keeps free in addition to its pending bytes.
 * @param reserveBytes the setting `journal-reserve`
 */
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

/** Free space needed to checkpoint loaded bytes from the event store's log to its file. */
export function bytesNeededToCheckpoint(journalBytes: number): number {
  return marginBytes + journalBytes;
}

/** Pending entries in journal bytes. */
export interface PendingBytes {
  unloaded: number;
  /** Loaded, but still in the event store's log. */
  unwritten: number;
}

/**
 * Free space below which new entries are rejected: the reserve plus what accepted entries still need, so that they can
 * be loaded however full the volume is.
 */
export function bytesNeededToAccept(reserve: number, { unloaded, unwritten }: PendingBytes): number {
  return reserve + marginBytes + bytesNeededToLoad(unloaded) + bytesNeededToCheckpoint(unwritten);
}

/** Disk space of new entries: their journal bytes plus the cost of loading them. */
export function diskCost(bytes: number): number {
  return bytes * (1 + loadingFactor);
}
