/**
 * Serves content that never changes while the process runs: read on the first request, compressed once, with an ETag.
 */

import { gzipSync } from "node:zlib";
import { acceptsGzip } from "../../http/finish-response.ts";
import { isNotModified, RouteResponse, weakTag } from "../../http/route-response.ts";

/** Content in servable form. */
export interface PublicFile {
  readonly contentType: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Absent when compression gains nothing. */
  readonly gzip: Uint8Array<ArrayBuffer> | undefined;
  readonly etag: string;
}

const gzipBytesMin = 1_024;

export function publicFile(contentType: string, content: string | Uint8Array<ArrayBuffer>): PublicFile {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  return {
    contentType,
    bytes,
    gzip: bytes.length < gzipBytesMin ? undefined : gzipSync(bytes),
    etag: weakTag(bytes),
  };
}

/**
 * Responds with a file, or with 304 if the client has it already.
 *
 * @param maxAgeSeconds how long the client may cache it.
 */
export function fileAnswer(request: Request, file: PublicFile, maxAgeSeconds: number): RouteResponse {
  const headers = {
    Vary: "Origin, Accept-Encoding",
    ETag: file.etag,
    "Cache-Control": `public, max-age=${maxAgeSeconds}`,
  };
  if (isNotModified(request.headers.get("if-none-match"), file.etag)) {
    return new RouteResponse(304, undefined, headers);
  }
  if (!acceptsGzip(request) || file.gzip === undefined)
    return RouteResponse.create(file.contentType, file.bytes, headers);
  return RouteResponse.create(file.contentType, file.gzip, { ...headers, "Content-Encoding": "gzip" });
}
