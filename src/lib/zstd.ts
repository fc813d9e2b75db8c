/** zstd in another thread. Node's module for it also loads streams, so it is loaded on first use. */

import { ZstdFrames } from "./zstd-frames.ts";

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
