/** Compresses answers for whoever takes them so. */

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

/** Kinds of answers that are worth it; events as they happen are not: they must not wait for more of them. */
const packable = /^(?:application\/(?:json|x-ndjson)|text\/csv)\b/;

/** An answer that is sent while it is made, as gzip where that is worth it and the client takes it. */
export async function packedResponse(response: Response, request: Request): Promise<Response> {
  const { headers, body } = response;
  if (body === null || headers.has("content-encoding") || !packable.test(headers.get("content-type") ?? ""))
    return response;
  headers.append("Vary", "Accept-Encoding");
  if (!takesGzip(request)) return response;
  const reader = body.getReader();
  const first: Uint8Array[] = [];
  let length = 0;
  let failure: unknown;
  while (length < bytesMin && failure === undefined) {
    const { done, value } = await reader.read().catch((error) => {
      failure = error ?? new Error("The answer broke off.");
      return { done: false, value: new Uint8Array() };
    });
    if (done) return new Response(Buffer.concat(first), response);
    first.push(value!);
    length += value!.length;
  }
  headers.set("Content-Encoding", "gzip");
  headers.delete("Content-Length");
  const rest = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        if (first.length === 0 && failure !== undefined) throw failure;
        const value = first.shift() ?? (await reader.read()).value;
        if (value === undefined) controller.close();
        else controller.enqueue(value as Uint8Array<ArrayBuffer>);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return new Response(rest.pipeThrough(new CompressionStream("gzip")), response);
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
