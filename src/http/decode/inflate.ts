/**
 * Decompresses request bodies, never beyond a limit.
 *
 * Everything goes through node:zlib with `maxOutputLength`, which stops while it unpacks; what a gzip trailer claims
 * about the size is not looked at. Small results are made at once, larger ones outside of the event loop.
 */

import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { zstdFrames } from "../../lib/zstd.ts";
import { InvalidPayload, PayloadTooLarge } from "./failures.ts";

/** The codings of `Content-Encoding` that are understood, by their registered names. */
export type Coding = "gzip" | "deflate" | "br" | "zstd";

/** Compressed bodies up to this size are tried at once. */
const syncInputBytesMax = 256 * 1024;
/** Results up to this size are made at once, in about 5 ms; a larger one costs that much in vain, then goes elsewhere. */
const syncOutputBytesMax = 2 * 1024 * 1024;
/** Usual ratio of JSON; the right output buffer at the first try halves the time of a small body. */
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

/** Whether the bytes start like a gzip member; clients send gzip without saying so. */
export function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b;
}

/**
 * Decompresses a whole body.
 *
 * @param limitBytes most bytes that the result may have.
 * @throws {InvalidPayload} the bytes are not in this coding, or are cut short.
 * @throws {PayloadTooLarge} the result would be larger than the limit.
 */
export async function inflate(bytes: Uint8Array, coding: Coding, limitBytes: number): Promise<Uint8Array> {
  const machine = machines[coding === "deflate" ? (hasZlibHeader(bytes) ? "inflate" : "inflateRaw") : coding];
  const chunkSize = Math.min(Math.max(bytes.length * expectedRatio, chunkBytesMin), chunkBytesMax);
  // The decompressor takes a cut-off body for a whole one.
  if (coding === "zstd" && isCutOffZstd(bytes)) throw undecodable(coding, "unexpected end of file");
  if (bytes.length <= syncInputBytesMax) {
    const maxOutputLength = Math.min(limitBytes, syncOutputBytesMax);
    try {
      return machine.now(bytes, { chunkSize, maxOutputLength });
    } catch (error) {
      if (!isTooLarge(error)) throw undecodable(coding, error);
      if (maxOutputLength === limitBytes) throw new PayloadTooLarge(limitBytes);
    }
  }
  try {
    return await machine.later(bytes, { chunkSize, maxOutputLength: limitBytes });
  } catch (error) {
    throw isTooLarge(error) ? new PayloadTooLarge(limitBytes) : undecodable(coding, error);
  }
}

/** `deflate` means the zlib format; some clients send the bare stream. */
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

function undecodable(coding: Coding, error: unknown): InvalidPayload {
  const reason = error instanceof Error ? error.message : String(error);
  return new InvalidPayload(`failed to decode request: the body is not valid ${coding} data (${reason})`);
}
