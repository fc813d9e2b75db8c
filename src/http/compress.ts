/** Compresses answers for whoever takes them so. Streams go out as they are made. */

import { promisify } from "node:util";
import { gzip } from "node:zlib";

type Bytes = string | Uint8Array<ArrayBuffer>;

const gzipLater = promisify<Bytes, Buffer<ArrayBuffer>>(gzip as never);

/** Shorter answers fit into a packet or two as they are. */
const bytesMin = 1_024;
/** Up to this size it takes a fraction of a millisecond; larger answers are compressed in another thread. */
const atOnceBytesMax = 64 * 1024;

/** Whether an answer is worth it: JSON of some length that nobody has compressed already. */
export function isCompressible(
  contentType: string,
  bytes: Bytes,
  headers: Readonly<Record<string, string>>,
): boolean {
  return (
    bytes.length >= bytesMin &&
    contentType.startsWith("application/json") &&
    headers["Content-Encoding"] === undefined
  );
}

/** Whether a client takes gzip; `q=0` refuses it. */
export function takesGzip(request: Request): boolean {
  const accepted = request.headers.get("accept-encoding");
  return accepted !== null && /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(accepted);
}

/** The bytes as gzip. */
export async function gzipped(bytes: Bytes): Promise<Uint8Array<ArrayBuffer>> {
  if (bytes.length > atOnceBytesMax) return await gzipLater(bytes);
  return Bun.gzipSync(bytes, { level: 1 }) as Uint8Array<ArrayBuffer>;
}
