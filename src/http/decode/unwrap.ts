/**
 * Turns the bytes of a request into the JSON text inside them.
 *
 * Clients wrap their JSON in forms, base64 and compression, in several orders and often without saying so. Each
 * wrapping is recognised by its first bytes and taken off, until what starts like JSON is left. Headers and
 * parameters are believed only where bytes cannot tell: `compression=gzip` around plain JSON is plain JSON, and so is
 * JSON under the content type of a form.
 * Source: contract, ingestion 2; sdk-compat 4.1; decision 20.
 */

import { InvalidPayload, NothingSent } from "./failures.ts";
import { type CaptureFields, looksLikeForm, readFields } from "./form.ts";
import { type Coding, inflate, isGzip } from "./inflate.ts";
import { decompressLz64 } from "./lz64.ts";

/** The parts of a request that say how its body is wrapped. */
export interface WrappedBody {
  readonly bytes: Uint8Array;
  readonly query: CaptureFields;
  readonly contentEncoding: string | null;
}

/** What is in a body, and the fields of the form that it came in. */
export interface UnwrappedBody {
  /** The bytes of a text, or the text itself where it was not wrapped as bytes. */
  readonly content: Uint8Array | string;
  readonly form: CaptureFields | undefined;
}

/** More layers than any client makes; a body that has more is made to be expensive. */
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

/** A body that nothing is wrapped around: most are; undefined for any other, which `unwrap` is for. */
export function unwrapped({ bytes, query, contentEncoding }: WrappedBody): UnwrappedBody | undefined {
  const isPlain =
    query.data === undefined &&
    (contentEncoding === null || codingOf(contentEncoding) === undefined) &&
    (bytes[0] === openBrace || bytes[0] === openBracket);
  return isPlain ? { content: bytes, form: undefined } : undefined;
}

/**
 * Unwraps a body.
 *
 * @param limitBytes most bytes that any layer may have.
 * @throws {InvalidPayload} nothing was sent, or a layer is damaged.
 * @throws {PayloadTooLarge} a layer is larger than the limit.
 */
export async function unwrap(body: WrappedBody, limitBytes: number): Promise<UnwrappedBody> {
  const isInQuery = body.query.data !== undefined && body.query.data.length > 0;
  let bytes = isInQuery ? body.query.data! : body.bytes;
  if (bytes.length === 0) throw new NothingSent();
  let coding = isInQuery ? undefined : codingOf(body.contentEncoding);
  let form: CaptureFields | undefined;
  let hint = body.query.compression;
  /** What stood there before it was taken for base64, which any word may look like. */
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
      if (bytes.length === 0) throw new NothingSent();
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
  // What this is will show when it is parsed; here it only has to be text.
  return { content: unguessed ?? bytes, form };
}

/**
 * Takes off what `Content-Encoding` tells of, and gzip that it does not tell of; nothing else.
 *
 * @throws {InvalidPayload} the bytes are not in this coding. @throws {PayloadTooLarge}
 */
export async function decompressed(
  bytes: Uint8Array,
  contentEncoding: string | null,
  limitBytes: number,
): Promise<Uint8Array> {
  if (isGzip(bytes)) return await inflate(bytes, "gzip", limitBytes);
  const coding = codingOf(contentEncoding);
  if (coding === undefined || coding === "gzip" || bytes.length === 0) return bytes;
  return (await inflateIfItIs(bytes, coding, limitBytes)) ?? bytes;
}

function codingOf(header: string | null): Coding | undefined {
  return header === null ? undefined : codings.get(header.trim().toLowerCase());
}

/** Plain JSON under a header that promises compression is taken as what it is. */
async function inflateIfItIs(
  bytes: Uint8Array,
  coding: Coding,
  limitBytes: number,
): Promise<Uint8Array | undefined> {
  try {
    return await inflate(bytes, coding, limitBytes);
  } catch (error) {
    if (error instanceof InvalidPayload && startsLikeJson(bytes)) return undefined;
    throw error;
  }
}

/** base64 of something else reads as lz64 too, but not as JSON in lz64. */
function lz64IfItIs(bytes: Uint8Array, limitBytes: number): string | undefined {
  try {
    const text = decompressLz64(bytes, limitBytes);
    return /^\s*[[{]/.test(text) ? text : undefined;
  } catch (error) {
    if (error instanceof InvalidPayload && isBase64(bytes, true)) return undefined;
    throw error;
  }
}

/** Whether the bytes can be JSON that nothing is wrapped around. */
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

/** The text in a body. @throws {InvalidPayload} its bytes are not UTF-8. */
export function textOf({ content }: UnwrappedBody): string {
  if (typeof content === "string") return content;
  const bytes = content;
  try {
    return utf8.decode(bytes);
  } catch {
    if (startsLikeJson(bytes)) throw new InvalidPayload("the body is JSON that is not UTF-8");
    const start = Buffer.from(bytes.subarray(0, shownBytes)).toString("hex");
    throw new InvalidPayload(`the body is not JSON: it begins with the bytes ${start}`);
  }
}
