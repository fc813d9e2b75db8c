/**
 * The file operations that the journal's promises rest on, as one interface, so that tests can put a disk below
 * the journal that is full, slow or forgets what was not synced.
 */

import * as fs from "node:fs/promises";
import { dirname } from "node:path";

export interface JournalFile {
  /** Writes all bytes at the position. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  /** Resolves once what was written is on the disk. */
  sync(): Promise<void>;
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

export const realDisk: Disk = {
  async create(path) {
    const handle = await fs.open(path, "wx", 0o600);
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
      sync: () => handle.datasync(),
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
