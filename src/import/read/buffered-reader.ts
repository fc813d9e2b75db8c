/**
 * Reads a zip archive in blocks. The archive's library reads headers one by one, which takes most of the time if there
 * are many small members.
 */

import { close, open, read } from "node:fs";
import { Readable } from "node:stream";
import yauzl from "yauzl";

const blockBytes = 64 * 1024;
/** One block of the directory, and of the members. */
const blocksMax = 2;

interface Block {
  position: number;
  bytes: Buffer;
}

export class BufferedReader extends yauzl.RandomAccessReader {
  /** Newest first. */
  private blocks: Block[] = [];

  private constructor(private readonly handle: number) {
    super();
  }

  static async open(path: string): Promise<BufferedReader> {
    return new BufferedReader(
      await new Promise((resolve, reject) => {
        open(path, "r", (error, handle) => (error ? reject(error) : resolve(handle)));
      }),
    );
  }

  override read(
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
    callback: (error: Error | null) => void,
  ): void {
    this.bytesAt(position, (error, bytes) => {
      if (error !== null) return callback(error);
      if (bytes.length === 0) return callback(new Error("unexpected end of file"));
      const copied = bytes.copy(buffer, offset, 0, length);
      if (copied === length) return callback(null);
      this.read(buffer, offset + copied, length - copied, position + copied, callback);
    });
  }

  override createReadStream({ start, end }: { start: number; end: number }): Readable {
    const next = (size: number, done: (error: Error | null, bytes: Buffer) => void) =>
      this.bytesAt(start, (error, bytes) => done(error, bytes.subarray(0, Math.min(size, end - start))));
    return new Readable({
      read() {
        if (start >= end) {
          this.push(null);
          return;
        }
        next(blockBytes, (error, bytes) => {
          if (error !== null || bytes.length === 0) {
            this.destroy(error ?? new Error("unexpected end of file"));
            return;
          }
          start += bytes.length;
          this.push(bytes);
        });
      },
    });
  }

  override close(callback: (error: Error | null) => void): void {
    this.blocks = [];
    close(this.handle, (error) => callback(error ?? null));
  }

  /** The bytes from a position up to the end of their block; none at the end of the file. */
  private bytesAt(position: number, callback: (error: Error | null, bytes: Buffer) => void): void {
    const found = this.blocks.find(
      (block) => position >= block.position && position < block.position + block.bytes.length,
    );
    if (found !== undefined) {
      if (found !== this.blocks[0]) this.blocks = [found, ...this.blocks.filter((block) => block !== found)];
      callback(null, found.bytes.subarray(position - found.position));
      return;
    }
    const bytes = Buffer.allocUnsafeSlow(blockBytes);
    read(this.handle, bytes, 0, blockBytes, position, (error, length) => {
      if (error) return callback(error, bytes.subarray(0, 0));
      const block = { position, bytes: bytes.subarray(0, length) };
      this.blocks = [block, ...this.blocks].slice(0, blocksMax);
      callback(null, block.bytes);
    });
  }
}
