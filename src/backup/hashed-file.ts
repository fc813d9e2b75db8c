/** Writes files without disturbing the journal, whose syncs on the same disk wait for what is queued before them. */

import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";

/**
 * `paced`: synced piece by piece, and the disk is left alone half of the time.
 * `temporary`: it goes again soon; the first of it need not reach the disk at all. Then paced.
 * `fast`: nobody else is in a hurry.
 */
export type WriteManner = "paced" | "temporary" | "fast";

const KiB = 1024;
/** The journal waits for a piece that is on its way: of 1 MiB that makes its syncs four times as long, of 128 KiB a tenth. */
const pieceBytes = { paced: 128 * KiB, temporary: 128 * KiB, fast: 32 * 1024 * KiB };

/** Bytes of temporary files that no sync is asked for; the first one that is writes them all, while the journal waits. */
const unhurriedBytesMax = 4 * 1024 * KiB;
let unhurriedBytes = 0;

/** Appends to a file and knows the hash of everything so far. The last bytes are synced by whoever opened it. */
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
      const piece = chunk.subarray(done, done + pieceBytes[this.manner] - this.unsynced);
      const { bytesWritten } = await this.file.write(piece);
      done += bytesWritten;
      this.bytes += bytesWritten;
      await this.written(bytesWritten);
    }
  }

  private async written(bytes: number): Promise<void> {
    if (this.manner === "temporary" && unhurriedBytes < unhurriedBytesMax) {
      unhurriedBytes += bytes;
      return;
    }
    this.unsynced += bytes;
    if (this.unsynced < pieceBytes[this.manner]) return;
    this.unsynced = 0;
    const start = performance.now();
    await this.file.datasync();
    if (this.manner !== "fast") await Bun.sleep(performance.now() - start);
  }

  result(): { bytes: number; sha256: string } {
    return { bytes: this.bytes, sha256: this.hash.copy().digest("hex") };
  }
}
