/** Writes files without disturbing the journal, whose syncs on the same disk wait for previously queued writes. */

import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";

/**
 * `paced`: synced in small steps, with the disk idle half of the time. `temporary`: deleted soon; the first bytes need
 * not reach the disk at all. Then paced. `fast`: no concurrent latency-sensitive work.
 */
export type WriteManner = "paced" | "temporary" | "fast";

const KiB = 1024;
/** The journal waits for a write in progress: 1 MiB makes its syncs four times as long, 128 KiB adds a tenth. */
const chunkBytes = { paced: 128 * KiB, temporary: 128 * KiB, fast: 32 * 1024 * KiB };

/** Bytes of temporary files written without a sync; the first sync writes them all, while the journal waits. */
const unpacedBytesMax = 4 * 1024 * KiB;
let unpacedBytes = 0;

/** Appends to a file and hashes everything written. The opener syncs the last bytes. */
export class HashedFile {
  private readonly hash = createHash("sha256");
  private bytes = 0;
  private unsynced = 0;

  constructor(
    private readonly file: FileHandle,
    private readonly manner: WriteManner,
  ) {}

  async write(chunk: Uint8Array): Promise<void> {
    this.hash.update(chunk);
    for (let done = 0; done < chunk.length; ) {
      const part = chunk.subarray(done, done + chunkBytes[this.manner] - this.unsynced);
      const { bytesWritten } = await this.file.write(part);
      done += bytesWritten;
      this.bytes += bytesWritten;
      await this.written(bytesWritten);
    }
  }

  private async written(bytes: number): Promise<void> {
    if (this.manner === "temporary" && unpacedBytes < unpacedBytesMax) {
      unpacedBytes += bytes;
      return;
    }
    this.unsynced += bytes;
    if (this.unsynced < chunkBytes[this.manner]) return;
    this.unsynced = 0;
    const start = performance.now();
    await this.file.datasync();
    if (this.manner !== "fast") await Bun.sleep(performance.now() - start);
  }

  result(): { bytes: number; sha256: string } {
    return { bytes: this.bytes, sha256: this.hash.copy().digest("hex") };
  }
}
