/** zstd, in another thread. Node's module for it brings streams along: it is loaded at the first use. */

import { ZstdFrames } from "./zstd-frames.ts";

/** With a checksum. @param level 1 is quick. */
export async function zstdCompressed(bytes: Uint8Array, level = 1): Promise<Buffer> {
  const { constants, zstdCompress } = await import("node:zlib");
  const options = {
    // The compressed text comes in few pieces: each is a way to another thread and back.
    chunkSize: 1024 * 1024,
    params: { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_checksumFlag]: 1 },
  };
  return await new Promise((resolve, reject) => {
    zstdCompress(bytes, options, (error, packed) => (error === null ? resolve(packed) : reject(error)));
  });
}

/**
 * How many of the bytes belong to frames, and whether they are whole frames and nothing else.
 *
 * `zstdDecompressed` does not notice a file that is cut off, not even inside of its checksum.
 */
export function zstdFrames(bytes: Uint8Array): { length: number; isWhole: boolean } {
  const frames = new ZstdFrames();
  const length = frames.take(bytes);
  return { length, isWhole: frames.isAtEnd && length === bytes.length };
}

/** A file that is cut off decompresses as far as it goes. @throws {Error} the bytes are damaged. */
export async function zstdDecompressed(bytes: Uint8Array): Promise<Buffer> {
  const { zstdDecompress } = await import("node:zlib");
  return await new Promise((resolve, reject) => {
    zstdDecompress(bytes, (error, text) => (error === null ? resolve(text) : reject(error)));
  });
}
