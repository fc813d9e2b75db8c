/** Reads the body of a management request: bounded, JSON or a form. */

import { bodyTooLarge, parseError, unsupportedMediaType } from "./failure.ts";

/** Contract: management-api 1.2. */
export const bodyBytesMax = 20 * 1024 * 1024;
/** Deeper JSON is refused: what recurses over stored JSON later must not run out of stack. */
export const jsonDepthMax = 200;

/**
 * Reads and parses the body.
 *
 * @returns an object for an empty body, a form or an upload (files as text); any JSON value otherwise.
 * @throws {HttpFailure} 400 not JSON or nested too deep, 413 over `bodyBytesMax`, 415 another media type.
 */
export async function readBody(request: Request): Promise<unknown> {
  const declared = Number(request.headers.get("content-length") ?? 0);
  if (declared > bodyBytesMax) throw bodyTooLarge(bodyBytesMax);
  const contentType = request.headers.get("content-type") ?? "";
  const mediaType = contentType.split(";", 1)[0]!.trim().toLowerCase();
  const bytes = await readBytes(request);
  if (bytes.length === 0) return {};
  if (mediaType === "multipart/form-data") return parseForm(bytes, contentType);
  const text = new TextDecoder().decode(bytes);
  if (mediaType === "application/x-www-form-urlencoded") {
    // `curl -d '{...}'` sends JSON under this type.
    return /^\s*[[{]/.test(text) ? parseJson(text) : Object.fromEntries(new URLSearchParams(text));
  }
  if (mediaType !== "" && mediaType !== "application/json" && !mediaType.endsWith("+json")) {
    throw unsupportedMediaType(mediaType);
  }
  return parseJson(text);
}

async function readBytes(request: Request): Promise<Uint8Array> {
  if (!request.body) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > bodyBytesMax) throw bodyTooLarge(bodyBytesMax);
    chunks.push(chunk);
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
}

function parseJson(text: string): unknown {
  if (nestingOf(text) > jsonDepthMax) throw parseError(`nested deeper than ${jsonDepthMax} levels`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw parseError(error instanceof Error ? error.message.replace(/^JSON Parse error: /, "") : "not JSON");
  }
}

/** Greatest depth of brackets outside of strings. */
function nestingOf(text: string): number {
  let [depth, deepest, isInString] = [0, 0, false];
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (isInString) {
      if (code === 0x5c) at++;
      else if (code === 0x22) isInString = false;
    } else if (code === 0x22) isInString = true;
    else if (code === 0x5b || code === 0x7b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x5d || code === 0x7d) depth--;
  }
  return deepest;
}

async function parseForm(bytes: Uint8Array, contentType: string): Promise<Record<string, string>> {
  try {
    const form = await new Response(bytes as never, { headers: { "content-type": contentType } }).formData();
    const fields: Record<string, string> = {};
    for (const [name, value] of form as unknown as Iterable<[string, string | Blob]>) {
      fields[name] = typeof value === "string" ? value : await value.text();
    }
    return fields;
  } catch {
    throw parseError("the form could not be read");
  }
}
