/**
 * Serves texts that never change while the process runs: read at the first request, compressed once, with an entity tag.
 */

import { gzipSync } from "node:zlib";
import { isNotModified, weakTag } from "../../../http/etag.ts";
import { acceptsGzip } from "../../../http/finish-response.ts";
import { Reply } from "../../../http/reply.ts";

/** A text ready to be sent. */
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
 * Answers with a file, or with 304 when the client has it already.
 *
 * @param maxAgeSeconds how long the client may use it without asking again.
 */
export function fileAnswer(request: Request, file: PublicFile, maxAgeSeconds: number): Reply {
  const headers = {
    Vary: "Origin, Accept-Encoding",
    ETag: file.etag,
    "Cache-Control": `public, max-age=${maxAgeSeconds}`,
  };
  if (isNotModified(request.headers.get("if-none-match"), file.etag)) {
    return new Reply(304, undefined, headers);
  }
  if (!acceptsGzip(request) || file.gzip === undefined)
    return Reply.of(file.contentType, file.bytes, headers);
  return Reply.of(file.contentType, file.gzip, { ...headers, "Content-Encoding": "gzip" });
}
