/**
 * Decodes the bytes of a request into the JSON text inside them.
 *
 * Clients wrap JSON in forms, base64 and compression, in any order and often undeclared. Each layer is recognized by
 * its first bytes. Headers and parameters count only for ambiguous bytes: plain JSON stays plain JSON with
 * `compression=gzip` or the content type of a form. Source: contract, ingestion 2; sdk-compat 4.1; decision 20.
 */

import { promisify } from "node:util";
import * as zlib from "node:zlib";
import { zstdFrames } from "../../lib/zstd.ts";
import { EmptyPayloadError, InvalidPayloadError, PayloadTooLargeError } from "./errors.ts";
import { type CaptureFields, looksLikeForm, readFields } from "./form.ts";
import { decompressLz64 } from "./lz64.ts";

/*
 * Decompresses request bodies within a limit.
 *
 * node:zlib with `maxOutputLength` stops during decompression; the size in a gzip trailer is ignored. Small results are
 * decompressed synchronously, larger ones outside of the event loop.
 */

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
async function inflate(bytes: Uint8Array, coding: Coding, limitBytes: number): Promise<Uint8Array> {
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

/** The parts of a request that declare its encoding. */
export interface EncodedBody {
  readonly bytes: Uint8Array;
  readonly query: CaptureFields;
  readonly contentEncoding: string | null;
}

/** Decoded body, and the fields of its form. */
export interface DecodedBody {
  /** UTF-8 bytes, or a string if the decoder produced one. */
  readonly content: Uint8Array | string;
  readonly form: CaptureFields | undefined;
}

/** More layers than any client uses; further layers are an attack. */
const layersMax = 6;
const openBrace = 0x7b;
const openBracket = 0x5b;
const sniffedBytes = 128;
const shownBytes = 20;
const base64Start = /^[A-Za-z0-9+/_-]+={0,2}\s*$/;
const jsonStart = /^(?:\xef\xbb\xbf)?\s*[[{]/;
const codings = new Map<string, Coding>([
  ["gzip", "gzip"],
  ["x-gzip", "gzip"],
  ["deflate", "deflate"],
  ["br", "br"],
  ["zstd", "zstd"],
]);
const lzHints = new Set(["lz64", "lz-string"]);
const base64Hints = new Set(["base64", "b64"]);

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Fast path for a body without encodings, which most have; undefined for any other, see `decodeBody`. */
export function unwrapped({ bytes, query, contentEncoding }: EncodedBody): DecodedBody | undefined {
  const isPlain =
    query.data === undefined &&
    (contentEncoding === null || getCoding(contentEncoding) === undefined) &&
    (bytes[0] === openBrace || bytes[0] === openBracket);
  return isPlain ? { content: bytes, form: undefined } : undefined;
}

/**
 * Decodes a body.
 *
 * @param limitBytes maximum size of every layer.
 * @throws {InvalidPayloadError} the body is empty, or a layer is corrupt.
 * @throws {PayloadTooLargeError} a layer is larger than the limit.
 */
export async function decodeBody(body: EncodedBody, limitBytes: number): Promise<DecodedBody> {
  const isInQuery = body.query.data !== undefined && body.query.data.length > 0;
  let bytes = isInQuery ? body.query.data! : body.bytes;
  if (bytes.length === 0) throw new EmptyPayloadError();
  let coding = isInQuery ? undefined : getCoding(body.contentEncoding);
  let form: CaptureFields | undefined;
  let hint = body.query.compression;
  /** The bytes before a guessed base64 layer: any word may look like base64. */
  let unguessed: Uint8Array | undefined;

  for (let layer = 0; layer < layersMax; layer++) {
    if (isGzip(bytes)) {
      bytes = await inflate(bytes, "gzip", limitBytes);
    } else if (coding !== undefined && coding !== "gzip") {
      bytes = (await inflateIfItIs(bytes, coding, limitBytes)) ?? bytes;
      coding = undefined;
    } else if (startsLikeJson(bytes)) {
      return { content: bytes, form };
    } else if (form === undefined && looksLikeForm(bytes)) {
      form = readFields(bytes);
      hint ??= form.compression;
      bytes = form.data ?? new Uint8Array();
      if (bytes.length === 0) throw new EmptyPayloadError();
    } else {
      const hinted = hint?.toLowerCase() ?? body.contentEncoding?.toLowerCase() ?? "";
      const text = lzHints.has(hinted) ? lz64IfItIs(bytes, limitBytes) : undefined;
      if (text !== undefined) return { content: text, form };
      const isLengthFree = isInQuery || form !== undefined || base64Hints.has(hinted);
      if (!isBase64(bytes, isLengthFree)) break;
      unguessed ??= bytes;
      bytes = Buffer.from(latin1(bytes), "base64");
    }
  }
  // The parser decides what this is; here it only has to be text.
  return { content: unguessed ?? bytes, form };
}

/**
 * Removes the declared `Content-Encoding` and undeclared gzip, and nothing else.
 *
 * @throws {InvalidPayloadError} the bytes are not in this coding. @throws {PayloadTooLargeError}
 */
export async function decompressed(
  bytes: Uint8Array,
  contentEncoding: string | null,
  limitBytes: number,
): Promise<Uint8Array> {
  if (isGzip(bytes)) return await inflate(bytes, "gzip", limitBytes);
  const coding = getCoding(contentEncoding);
  if (coding === undefined || coding === "gzip" || bytes.length === 0) return bytes;
  return (await inflateIfItIs(bytes, coding, limitBytes)) ?? bytes;
}

function getCoding(header: string | null): Coding | undefined {
  return header === null ? undefined : codings.get(header.trim().toLowerCase());
}

/** Plain JSON with a header that declares compression is accepted as plain JSON. */
async function inflateIfItIs(
  bytes: Uint8Array,
  coding: Coding,
  limitBytes: number,
): Promise<Uint8Array | undefined> {
  try {
    return await inflate(bytes, coding, limitBytes);
  } catch (error) {
    if (error instanceof InvalidPayloadError && startsLikeJson(bytes)) return undefined;
    throw error;
  }
}

/** Other base64 data can also decode as lz64, but not to JSON. */
function lz64IfItIs(bytes: Uint8Array, limitBytes: number): string | undefined {
  try {
    const text = decompressLz64(bytes, limitBytes);
    return /^\s*[[{]/.test(text) ? text : undefined;
  } catch (error) {
    if (error instanceof InvalidPayloadError && isBase64(bytes, true)) return undefined;
    throw error;
  }
}

/** Whether the bytes can be JSON without an encoding. */
export function startsLikeJson(bytes: Uint8Array): boolean {
  // The first byte decides for nearly every body.
  return (
    bytes[0] === openBrace ||
    bytes[0] === openBracket ||
    jsonStart.test(latin1(bytes.subarray(0, sniffedBytes)))
  );
}

function isBase64(bytes: Uint8Array, isLengthFree: boolean): boolean {
  if (!base64Start.test(latin1(bytes.subarray(0, sniffedBytes)))) return false;
  let length = bytes.length;
  while (length > 0 && bytes[length - 1]! <= 32) length--;
  return isLengthFree || length % 4 === 0;
}

function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");
}

/** The text of a body. @throws {InvalidPayloadError} its bytes are not UTF-8. */
export function toDisplayString({ content }: DecodedBody): string {
  if (typeof content === "string") return content;
  const bytes = content;
  try {
    return utf8.decode(bytes);
  } catch {
    if (startsLikeJson(bytes)) throw new InvalidPayloadError("the body is JSON that is not UTF-8");
    const start = Buffer.from(bytes.subarray(0, shownBytes)).toString("hex");
    throw new InvalidPayloadError(`the body is not JSON: it begins with the bytes ${start}`);
  }
}
