/**
 * Memory that is used again, for files and batches that are read one after the other: reading into fresh memory takes three
 * times as long, because the system has to find and empty every page of it.
 *
 * Whoever takes a buffer has it until `giveBack` or `reuse`, and must not look at it afterwards.
 */

import { open } from "node:fs/promises";

/** Sizes are multiples of this, so that files of about the same size fit into each other's buffers. */
const sizeStep = 1024 * 1024;

export class ReusedBuffers {
  private free: Buffer[] = [];
  private taken: Buffer[] = [];

  /** @param bytesMax kept for later, all buffers together. */
  constructor(private readonly bytesMax: number) {}

  /** A buffer of so many bytes, with any content. */
  take(bytes: number): Buffer {
    const fitting = this.free.findIndex(({ length }) => length >= bytes);
    const buffer =
      fitting === -1
        ? Buffer.allocUnsafeSlow(Math.ceil(bytes / sizeStep) * sizeStep)
        : this.free.splice(fitting, 1)[0]!;
    this.taken.push(buffer);
    return buffer.subarray(0, bytes);
  }

  /** A file as it is when it is opened. @throws as `readFile` does. */
  async readFile(path: string): Promise<Buffer> {
    const file = await open(path, "r");
    try {
      const { size } = await file.stat();
      const buffer = this.take(size);
      let length = 0;
      while (length < size) {
        const { bytesRead } = await file.read(buffer, length, size - length, length);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      return buffer.subarray(0, length);
    } finally {
      await file.close();
    }
  }

  /** Nobody looks at this one any more. @param part of what `take` gave */
  giveBack({ buffer }: Uint8Array): void {
    const index = this.taken.findIndex((one) => one.buffer === buffer);
    if (index === -1) return;
    const [one] = this.taken.splice(index, 1);
    const free = this.free.reduce((sum, { length }) => sum + length, 0);
    if (free + one!.length <= this.bytesMax) this.free.push(one!);
  }

  /** Nobody looks at what was taken any more. */
  reuse(): void {
    let kept = 0;
    this.free = [...this.taken, ...this.free].filter(({ length }) => {
      kept += length;
      return kept <= this.bytesMax;
    });
    this.taken = [];
  }

  /** Gives all memory back; what is taken stays with those who have it. */
  release(): void {
    this.free = [];
    this.taken = [];
  }
}
