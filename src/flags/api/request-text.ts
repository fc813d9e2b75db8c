/** Reads the text of a request for flags, however it is wrapped. Source: contract, flag-evaluation 2.1; sdk-compat 4.1. */

import { queryFields } from "../../http/decode/form.ts";
import { readBody } from "../../http/decode/read-body.ts";
import type { SlowBodies } from "../../http/decode/slow-bodies.ts";
import { unwrap } from "../../http/decode/unwrap.ts";
import { Undecodable } from "./failures.ts";

export interface BodyReading {
  /** Most bytes that a body may have, as sent and unpacked. */
  limitBytes: number;
  slowBodies: SlowBodies;
}

const openBrace = 123;
const utf8 = new TextDecoder("utf-8", { fatal: true });
const contentTypes = new Set(["application/json", "text/plain", "application/x-www-form-urlencoded"]);

/**
 * The innermost text of a body.
 *
 * @throws {Undecodable} @throws {InvalidPayload} @throws {PayloadTooLarge} @throws {BodyInterrupted}
 */
export async function readText(request: Request, { limitBytes, slowBodies }: BodyReading): Promise<string> {
  const contentType = request.headers.get("content-type");
  const mediaType = (contentType ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (mediaType !== "" && !contentTypes.has(mediaType)) {
    throw new Undecodable(`unsupported content type: ${mediaType}`);
  }
  const bytes = await readBody(request, limitBytes, slowBodies);
  const contentEncoding = request.headers.get("content-encoding");
  // Nearly every body is plain JSON, and then nothing else has to be looked at.
  if (bytes[0] === openBrace && contentEncoding === null) return plainText(bytes);
  const { text } = await unwrap({ bytes, query: queryFields(request.url), contentEncoding }, limitBytes);
  return text;
}

/** @throws {Undecodable} */
function plainText(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Undecodable("the payload is not UTF-8");
  }
}

/** Whether a request carries a header that only browsers send. */
export function hasBrowserHeaders(headers: Headers): boolean {
  return (
    headers.has("origin") ||
    headers.has("referer") ||
    headers.has("sec-fetch-mode") ||
    headers.has("sec-fetch-site") ||
    headers.has("sec-fetch-dest") ||
    headers.has("sec-fetch-user")
  );
}
