/** zstd in another thread. Node's module for it also loads streams, so it is loaded on first use. */

/** With a checksum. @param level 1 is fast. */
export async function zstdCompressed(bytes: Uint8Array, level = 1): Promise<Buffer> {
  const { constants, zstdCompress } = await import("node:zlib");
  const options = {
    // Few large chunks: each one takes a round trip to another thread.
    chunkSize: 1024 * 1024,
    params: { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_checksumFlag]: 1 },
  };
  return await new Promise((resolve, reject) => {
    zstdCompress(bytes, options, (error, packed) => (error === null ? resolve(packed) : reject(error)));
  });
}

/**
 * How many bytes belong to frames, and whether they are exactly a sequence of complete frames.
 *
 * `zstdDecompressed` does not detect truncation, not even inside the checksum.
 */
export function zstdFrames(bytes: Uint8Array): { length: number; isWhole: boolean } {
  const frames = new ZstdFrames();
  const length = frames.take(bytes);
  return { length, isWhole: frames.isAtEnd && length === bytes.length };
}

/** Decompresses a truncated file as far as possible. @throws {Error} the bytes are corrupt. */
export async function zstdDecompressed(bytes: Uint8Array): Promise<Buffer> {
  const { zstdDecompress } = await import("node:zlib");
  return await new Promise((resolve, reject) => {
    zstdDecompress(bytes, (error, text) => (error === null ? resolve(text) : reject(error)));
  });
}

/**
 * Parses the frame structure of a Zstandard file without decompressing, to detect truncated frames and trailing bytes.
 *
 * The runtime's decompressor accepts a truncated file as complete, and never returns from bytes after the last frame;
 * `read-records.test.ts` shows when that is fixed and this can be removed. Source: RFC 8878, 3.1.
 */
export class ZstdFrames {
  private readonly steps = frameSteps();
  /** Bytes to skip before the next step. */
  private skip = 0;
  private header: number[] = [];
  private wanted: Step;
  private isBroken = false;

  constructor() {
    this.wanted = this.steps.next().value as Step;
  }

  /** Whether the bytes read so far end at a frame boundary. */
  get isAtEnd(): boolean {
    return this.wanted.isFrameStart && this.header.length === 0 && this.skip === 0 && !this.isBroken;
  }

  /** @returns how many bytes of the chunk belong to frames. */
  take(chunk: Uint8Array): number {
    let at = 0;
    while (at < chunk.length && !this.isBroken) {
      if (this.skip > 0) {
        const passed = Math.min(this.skip, chunk.length - at);
        this.skip -= passed;
        at += passed;
        continue;
      }
      this.header.push(chunk[at++]!);
      if (this.header.length < this.wanted.bytes) continue;
      const { value, done } = this.steps.next(Buffer.from(this.header));
      if (done) {
        this.isBroken = true;
        return Math.max(0, at - this.header.length);
      }
      this.header = [];
      this.wanted = value;
      this.skip = value.skip;
    }
    return this.isBroken ? 0 : at;
  }
}

/** Skip `skip` bytes, then pass the next `bytes`. */
interface Step {
  skip: number;
  bytes: number;
  isFrameStart: boolean;
}

const step = (skip: number, bytes: number, isFrameStart = false): Step => ({ skip, bytes, isFrameStart });

/** Ends at bytes that do not start a frame. */
function* frameSteps(): Generator<Step, undefined, Buffer> {
  let skip = 0;
  for (;;) {
    const magic = (yield step(skip, 4, true)).readUInt32LE();
    if (magic >= 0x184d2a50 && magic <= 0x184d2a5f) {
      skip = (yield step(0, 4)).readUInt32LE();
      continue;
    }
    if (magic !== 0xfd2fb528) return;
    const descriptor = (yield step(0, 1))[0]!;
    const isSingle = (descriptor & 32) !== 0;
    const sizeBytes = descriptor >> 6 === 0 ? Number(isSingle) : 2 ** (descriptor >> 6);
    skip = Number(!isSingle) + [0, 1, 2, 4][descriptor & 3]! + sizeBytes;
    for (let isLast = false; !isLast; ) {
      const block = (yield step(skip, 3)).readUIntLE(0, 3);
      isLast = (block & 1) === 1;
      const type = (block >> 1) & 3;
      if (type === 3) return;
      skip = type === 1 ? 1 : block >> 3;
    }
    if ((descriptor & 4) !== 0) skip += 4;
  }
}
