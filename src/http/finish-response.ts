/** Turns what handlers return into the response on the wire: common headers, CORS, gzip, HEAD. */

import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { addCors } from "./cors.ts";
import type { RouteProfile } from "./route-profile.ts";
import { RouteResponse } from "./route-response.ts";

/**
 * Adds the headers that every response has, and compresses it where that pays.
 *
 * @param result what a handler returned: a `RouteResponse`, a `Response`, or JSON for a 200.
 * @returns a promise only if the response is compressed.
 */
export function finishResponse(
  result: unknown,
  profile: RouteProfile,
  { request, requestId }: { request: Request; requestId: string },
): Response | Promise<Response> {
  const common: Record<string, string> = {
    "X-Request-Id": requestId,
    "X-Content-Type-Options": "nosniff",
  };
  if (profile.cors !== undefined) addCors(common, request, profile.cors);
  if (profile.caching !== undefined) common["Cache-Control"] = profile.caching;
  const isHead = request.method === "HEAD";
  if (result instanceof Response) {
    if (isHead) return withHeaders(withoutBody(result), common);
    return compressResponse(result, request).then((response) => withHeaders(response, common));
  }
  const reply = result instanceof RouteResponse ? result : new RouteResponse(200, result);
  const written = reply.written();
  if (written !== undefined) common["Content-Type"] = written.contentType;
  if (isHead && written !== undefined) common["Content-Length"] = String(Buffer.byteLength(written.bytes));
  const headers = Object.assign(common, reply.headers);
  const bytes = isHead ? null : (written?.bytes ?? null);
  const { status } = reply;
  if (bytes !== null && isCompressible(written!.contentType, bytes, headers)) {
    headers.Vary = headers.Vary === undefined ? "Accept-Encoding" : `${headers.Vary}, Accept-Encoding`;
    if (acceptsGzip(request)) {
      headers["Content-Encoding"] = "gzip";
      return toGzip(bytes).then((compressed) => new Response(compressed, { status, headers }));
    }
  }
  return new Response(bytes, { status, headers });
}

/** For HEAD. The length of a streamed body is unknown: chunked, rather than a length of 0. */
function withoutBody(response: Response): Response {
  const { body } = response;
  const head = new Response(null, response);
  if (body === null) return head;
  body.cancel().catch(() => undefined);
  if (!head.headers.has("Content-Length")) head.headers.set("Transfer-Encoding", "chunked");
  return head;
}

function withHeaders(response: Response, headers: Readonly<Record<string, string>>): Response {
  const vary = response.headers.get("Vary");
  const caching = response.headers.get("Cache-Control");
  for (const name in headers) response.headers.set(name, headers[name]!);
  if (caching !== null) response.headers.set("Cache-Control", caching);
  if (vary !== null && headers.Vary !== undefined) response.headers.append("Vary", vary);
  return response;
}

type Bytes = string | Uint8Array<ArrayBuffer>;

const gzipInThread = promisify<Bytes, Buffer<ArrayBuffer>>(gzip as never);

/** Shorter responses fit into a packet or two uncompressed. */
const bytesMin = 1_024;
/** Up to this size gzip takes a fraction of a millisecond; larger responses are compressed in another thread. */
const synchronousBytesMax = 64 * 1024;

/** Whether to compress a complete body: JSON of some length that is not compressed yet. */
function isCompressible(
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

/** Streams to compress; not event streams: a compressor would delay events until more follow. */
const compressibleTypes = /^(?:application\/(?:json|x-ndjson)|text\/csv)\b/;

/** Compresses a streamed response if its type and length are worth it and the client accepts gzip. */
async function compressResponse(response: Response, request: Request): Promise<Response> {
  const { headers, body } = response;
  if (
    body === null ||
    headers.has("content-encoding") ||
    !compressibleTypes.test(headers.get("content-type") ?? "")
  )
    return response;
  headers.append("Vary", "Accept-Encoding");
  if (!acceptsGzip(request)) return response;
  const reader = body.getReader();
  const first: Uint8Array[] = [];
  let length = 0;
  let failure: unknown;
  while (length < bytesMin && failure === undefined) {
    const { done, value } = await reader.read().catch((error) => {
      failure = error ?? new Error("The response stream failed.");
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

/** Whether a client accepts gzip; `q=0` rejects it. */
export function acceptsGzip(request: Request): boolean {
  const accepted = request.headers.get("accept-encoding");
  return accepted !== null && /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(accepted);
}

async function toGzip(bytes: Bytes): Promise<Uint8Array<ArrayBuffer>> {
  if (bytes.length > synchronousBytesMax) return await gzipInThread(bytes);
  return Bun.gzipSync(bytes, { level: 1 }) as Uint8Array<ArrayBuffer>;
}
