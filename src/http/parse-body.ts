/** Takes the body of a management request apart: JSON, a form or an upload. */

import { parseExactJson } from "../lib/exact-json.ts";
import { parseError, unsupportedMediaType } from "./failure.ts";
import { checkJson, type JsonLimits, parserWords } from "./json.ts";

/** Less deep than events: conditions of flags and cohorts are stored and read back recursively. */
const jsonLimits: JsonLimits = { levels: 200, containers: 100_000 };

/**
 * Parses a body that is decompressed already.
 *
 * @returns an object for an empty body, a form or an upload (files as text); any JSON value otherwise, long integers as `parseExactJson` keeps them.
 * @throws {HttpFailure} 400 not JSON or nested too deep, 415 another media type.
 */
export async function parseBody(bytes: Uint8Array, contentType: string): Promise<unknown> {
  const mediaType = contentType.split(";", 1)[0]!.trim().toLowerCase();
  if (bytes.length === 0) return {};
  if (mediaType === "multipart/form-data") return parseForm(bytes, contentType);
  const text = new TextDecoder().decode(bytes);
  if (mediaType === "application/x-www-form-urlencoded") {
    // `curl -d '{...}'` sends JSON under this type.
    return /^\s*[[{]/.test(text) ? parseText(text) : Object.fromEntries(new URLSearchParams(text));
  }
  if (mediaType !== "" && mediaType !== "application/json" && !mediaType.endsWith("+json")) {
    throw unsupportedMediaType(mediaType);
  }
  return parseText(text);
}

function parseText(text: string): unknown {
  try {
    checkJson(text, jsonLimits);
    return parseExactJson(text);
  } catch (error) {
    throw parseError(parserWords(error));
  }
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
