/** Writes files without disturbing the journal, whose syncs on the same disk wait for what is queued before them. */

import { createHash } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { totalmem } from "node:os";

/**
 * `paced`: synced piece by piece, and the disk is left alone half of the time.
 * `temporary`: it goes again soon; as far as memory allows it need not reach the disk at all. Then paced.
 * `fast`: nobody else is in a hurry.
 */
export type WriteManner = "paced" | "temporary" | "fast";

const pieceBytes = { paced: 1024 * 1024, temporary: 1024 * 1024, fast: 32 * 1024 * 1024 };

/** Bytes of temporary files that the system may write when it likes. */
const unhurriedBytesMax = Math.min(512 * 1024 * 1024, totalmem() / 16);
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
    for (let done = 0; done < chunk.length; ) done += (await this.file.write(chunk, done)).bytesWritten;
    this.hash.update(chunk);
    this.bytes += chunk.length;
    if (this.manner === "temporary" && unhurriedBytes < unhurriedBytesMax) {
      unhurriedBytes += chunk.length;
      return;
    }
    this.unsynced += chunk.length;
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
