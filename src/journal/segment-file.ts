/**
 * The file of an open segment. Small writes allocate space for the following ones as zeros: a synced write into allocated
 * space takes less time than one that makes the file longer, whose sync includes the file system's log (figures:
 * docs/performance.md). Zeros at the end contain no entry; `close` removes them, after a crash the recovery does.
 */

import { constants } from "node:fs";
import * as fs from "node:fs/promises";
import { once } from "../lib/concurrency.ts";

export interface JournalFile {
  /** Writes all bytes at a position; resolves when they are on disk. */
  write(bytes: Uint8Array, position: number): Promise<void>;
  truncate(bytes: number): Promise<void>;
  close(): Promise<void>;
}

/** O_DSYNC: one call instead of a write and a sync. */
const durableFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_DSYNC;
/** Larger writes allocate nothing: zeros would double what the disk writes. */
const smallWriteBytes = 64 * 1024;
/** Space is allocated for as much as the file contains, so that short segments write few zeros, up to this. */
const allocatedBytesMax = 256 * 1024;
const zeros = once(() => Buffer.alloc(allocatedBytesMax));

/** Creates a file; its name is durable when the folder is synced. */
export async function createSegmentFile(path: string): Promise<JournalFile> {
  const handle = await fs.open(path, durableFile, 0o600);
  let end = 0;
  let allocatedEnd = 0;
  return {
    async write(bytes, position) {
      const isAllocating = position + bytes.length > allocatedEnd && bytes.length <= smallWriteBytes;
      const space = isAllocating ? Math.min(position, allocatedBytesMax) : 0;
      let done = 0;
      while (done < bytes.length) {
        const rest = bytes.subarray(done);
        const { bytesWritten } =
          space > 0
            ? await handle.writev([rest, zeros().subarray(0, space)], position + done)
            : await handle.write(rest, 0, rest.length, position + done);
        if (bytesWritten === 0) throw new Error("The disk accepted no bytes.");
        done += bytesWritten;
      }
      end = position + bytes.length;
      allocatedEnd = Math.max(allocatedEnd, position + done);
    },
    async truncate(bytes) {
      await handle.truncate(bytes);
      end = bytes;
      allocatedEnd = bytes;
    },
    async close() {
      try {
        if (allocatedEnd > end) await handle.truncate(end);
      } finally {
        await handle.close();
      }
    },
  };
}

/** The bytes of a file without allocated space: every line of a segment ends with a line break. */
export function withoutAllocated(bytes: Buffer): Buffer {
  let end = bytes.length;
  while (end > 0 && bytes[end - 1] === 0) end--;
  return bytes.subarray(0, end);
}
