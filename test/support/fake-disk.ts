/** A disk in memory that can fail, fill up, and forget what was not synced, as power loss does. */

import type { Disk } from "../../src/journal/disk.ts";
import type { JournalFile } from "../../src/journal/segment-file.ts";

export class FakeDisk implements Disk {
  /** What is in each file now. */
  readonly files = new Map<string, Buffer>();
  /** What would still be there after power loss. */
  readonly durable = new Map<string, Buffer>();
  /** Bytes that still fit. */
  freeBytes = Number.POSITIVE_INFINITY;
  /** Set to let the next calls of a kind fail. */
  failing: { write?: boolean; sync?: boolean; create?: boolean; truncate?: boolean } = {};
  /** How long a sync takes. */
  syncMs = 0;
  syncCount = 0;

  async create(path: string): Promise<JournalFile> {
    if (this.failing.create) throw errorWith("EIO");
    if (this.files.has(path)) throw errorWith("EEXIST");
    this.files.set(path, Buffer.alloc(0));
    this.durable.set(path, Buffer.alloc(0));
    return {
      write: async (bytes, position) => {
        if (this.failing.write) {
          // Half of it reached the file before the disk failed.
          this.put(path, bytes.subarray(0, bytes.length >> 1), position);
          throw errorWith("EIO");
        }
        if (bytes.length > this.freeBytes) {
          this.put(path, bytes.subarray(0, this.freeBytes), position);
          throw errorWith("ENOSPC");
        }
        this.freeBytes -= bytes.length;
        this.put(path, bytes, position);
        this.syncCount += 1;
        const content = Buffer.from(this.files.get(path)!);
        if (this.syncMs > 0) await Bun.sleep(this.syncMs);
        if (this.failing.sync) throw errorWith("EIO");
        this.durable.set(path, content);
      },
      truncate: async (bytes) => {
        if (this.failing.truncate) throw errorWith("EIO");
        this.files.set(path, this.files.get(path)!.subarray(0, bytes));
      },
      close: async () => undefined,
    };
  }

  async remove(path: string): Promise<void> {
    this.files.delete(path);
    this.durable.delete(path);
  }

  async space(): Promise<{ freeBytes: number; totalBytes: number }> {
    return { freeBytes: this.freeBytes, totalBytes: 1e12 };
  }

  /** The content of a file after power loss: what was synced, some of what was not, and allocated space. */
  afterPowerLoss(path: string, random: () => number): Buffer {
    const durable = this.durable.get(path)!;
    const now = this.files.get(path)!;
    const extra = now.subarray(durable.length);
    const allocated = Buffer.alloc(random() < 0.5 ? Math.floor(random() * 5_000) : 0);
    if (extra.length === 0) return Buffer.concat([durable, allocated]);
    const retained = Buffer.from(extra.subarray(0, Math.floor(random() * (extra.length + 1))));
    // Pages are written in any order: a page of the tail may hold zeros.
    if (retained.length > 0 && random() < 0.5) retained.fill(0, Math.floor(random() * retained.length));
    return Buffer.concat([durable, retained, allocated]);
  }

  private put(path: string, bytes: Uint8Array, position: number): void {
    const before = this.files.get(path)!;
    const after = Buffer.alloc(Math.max(before.length, position + bytes.length));
    before.copy(after);
    after.set(bytes, position);
    this.files.set(path, after);
  }
}

function errorWith(code: string): Error {
  return Object.assign(new Error(`${code}: made by the test`), { code });
}
