/**
 * Decompresses request bodies within a limit.
 *
 * node:zlib with `maxOutputLength` stops during decompression; the size in a gzip trailer is ignored. Small results are
 * decompressed synchronously, larger ones outside of the event loop.
 */

import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { zstdFrames } from "../../lib/zstd.ts";
import { InvalidPayloadError, PayloadTooLargeError } from "./errors.ts";

/** Supported codings of `Content-Encoding`, by their registered names. */
export type Coding = "gzip" | "deflate" | "br" | "zstd";

/** Larger compressed bodies are never decompressed synchronously. */
const syncInputBytesMax = 256 * 1024;
/**
 * Results up to this size take about 5 ms synchronously; a larger one wastes that time and is decompressed
 * asynchronously.
 */
const syncOutputBytesMax = 2 * 1024 * 1024;
/** Typical ratio of JSON; a fitting initial output buffer halves the time of a small body. */
const expectedRatio = 16;
const chunkBytesMin = 4 * 1024;
const chunkBytesMax = 512 * 1024;

const machines = {
  gzip: { now: zlib.gunzipSync, later: promisify<Uint8Array, zlib.ZlibOptions, Buffer>(zlib.gunzip) },
  inflate: { now: zlib.inflateSync, later: promisify<Uint8Array, zlib.ZlibOptions, Buffer>(zlib.inflate) },
  inflateRaw: {
    now: zlib.inflateRawSync,
    later: promisify<Uint8Array, zlib.ZlibOptions, Buffer>(zlib.inflateRaw),
  },
  br: {
    now: zlib.brotliDecompressSync,
    later: promisify<Uint8Array, zlib.BrotliOptions, Buffer>(zlib.brotliDecompress),
  },
  zstd: {
    now: zlib.zstdDecompressSync,
    later: promisify<Uint8Array, zlib.ZstdOptions, Buffer>(zlib.zstdDecompress),
  },
};

/** Whether the bytes start like a gzip member; clients send gzip without declaring it. */
export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

/**
 * Decompresses a whole body.
 *
 * @param limitBytes maximum size of the result.
 * @throws {InvalidPayloadError} the bytes are not in this coding, or are truncated.
 * @throws {PayloadTooLargeError} the result would be larger than the limit.
 */
export async function inflate(bytes: Uint8Array, coding: Coding, limitBytes: number): Promise<Uint8Array> {
  const machine = machines[coding === "deflate" ? (hasZlibHeader(bytes) ? "inflate" : "inflateRaw") : coding];
  const chunkSize = Math.min(Math.max(bytes.length * expectedRatio, chunkBytesMin), chunkBytesMax);
  // The decompressor accepts a truncated body as complete.
  if (coding === "zstd" && isCutOffZstd(bytes)) throw undecodable(coding, "unexpected end of file");
  if (bytes.length <= syncInputBytesMax) {
    const maxOutputLength = Math.min(limitBytes, syncOutputBytesMax);
    try {
      return machine.now(bytes, { chunkSize, maxOutputLength });
    } catch (error) {
      if (!isTooLarge(error)) throw undecodable(coding, error);
      if (maxOutputLength === limitBytes) throw new PayloadTooLargeError(limitBytes);
    }
  }
  try {
    return await machine.later(bytes, { chunkSize, maxOutputLength: limitBytes });
  } catch (error) {
    throw isTooLarge(error) ? new PayloadTooLargeError(limitBytes) : undecodable(coding, error);
  }
}

/** `deflate` means the zlib format; some clients send the raw stream. */
function hasZlibHeader(bytes: Uint8Array): boolean {
  return (bytes[0]! & 0x0f) === 8 && ((bytes[0]! << 8) | bytes[1]!) % 31 === 0;
}

function isCutOffZstd(bytes: Uint8Array): boolean {
  const { length, isWhole } = zstdFrames(bytes);
  return !isWhole && length === bytes.length;
}

function isTooLarge(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ERR_BUFFER_TOO_LARGE";
}

function undecodable(coding: Coding, error: unknown): InvalidPayloadError {
  const reason = error instanceof Error ? error.message : String(error);
  return new InvalidPayloadError(
    `failed to decode request: the body is not valid ${coding} data (${reason})`,
  );
}
