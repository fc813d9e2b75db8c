/**
 * Reuses memory for files and batches that are read one after the other: reading into fresh memory takes three times as
 * long, because the system has to find and zero every page.
 *
 * A buffer is valid until `recycle` or `reuse`.
 */

import { open } from "node:fs/promises";

/** Sizes are multiples of this, so that files of similar size can reuse each other's buffers. */
const sizeStep = 1024 * 1024;

export class BufferPool {
  private free: Buffer[] = [];
  private reserved: Buffer[] = [];

  /** @param bytesMax limit for all retained buffers. */
  constructor(private readonly bytesMax: number) {}

  /** A buffer of this size with arbitrary content. */
  take(bytes: number): Buffer {
    const fitting = this.free.findIndex(({ length }) => length >= bytes);
    const buffer =
      fitting === -1
        ? Buffer.allocUnsafeSlow(Math.ceil(bytes / sizeStep) * sizeStep)
        : this.free.splice(fitting, 1)[0]!;
    this.reserved.push(buffer);
    return buffer.subarray(0, bytes);
  }

  /** Reads a file at its size when opened. @throws the errors of `readFile`. */
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

  /** Releases this buffer. @param part of a buffer returned by `take` */
  recycle({ buffer }: Uint8Array): void {
    const index = this.reserved.findIndex((item) => item.buffer === buffer);
    if (index === -1) return;
    const [one] = this.reserved.splice(index, 1);
    const free = this.free.reduce((sum, { length }) => sum + length, 0);
    if (free + one!.length <= this.bytesMax) this.free.push(one!);
  }

  /** Releases all buffers. */
  reuse(): void {
    let retained = 0;
    this.free = [...this.reserved, ...this.free].filter(({ length }) => {
      retained += length;
      return retained <= this.bytesMax;
    });
    this.reserved = [];
  }

  /** Frees all retained memory; buffers in use stay valid. */
  release(): void {
    this.free = [];
    this.reserved = [];
  }
}
