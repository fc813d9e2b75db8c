/** Parses the body of a management request: JSON, a form or an upload. */

import { parseExactJson } from "../lib/json/exact.ts";
import { checkJson, type JsonLimits, parserMessage } from "../lib/json/limits.ts";
import { parseError, unsupportedMediaType } from "./http-error.ts";

/** Less nesting than for events: conditions of flags and cohorts are stored and read recursively. */
const jsonLimits: JsonLimits = { levels: 200, containers: 100_000 };

/** Other encodings are rejected: with replacement characters, the stored text would differ from the sent one. */
const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses a decompressed body.
 *
 * @returns an object for an empty body, a form or an upload (files as text); any JSON value otherwise, long integers as
 * by `parseExactJson`.
 * @throws {HttpError} 400 not JSON, not UTF-8 or nested too deep, 415 another media type.
 */
export async function parseBody(bytes: Uint8Array, contentType: string): Promise<unknown> {
  const mediaType = contentType.split(";", 1)[0]!.trim().toLowerCase();
  if (bytes.length === 0) return {};
  if (mediaType === "multipart/form-data") return parseForm(bytes, contentType);
  const isForm = mediaType === "application/x-www-form-urlencoded";
  if (!isForm && mediaType !== "" && mediaType !== "application/json" && !mediaType.endsWith("+json")) {
    throw unsupportedMediaType(mediaType);
  }
  const text = decoded(bytes);
  // `curl -d '{...}'` sends JSON with the content type of a form.
  const isJson = !isForm || /^\s*[[{]/.test(text);
  return isJson ? parseString(text) : Object.fromEntries(new URLSearchParams(text));
}

function decoded(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw parseError("the body is not UTF-8");
  }
}

function parseString(text: string): unknown {
  try {
    checkJson(text, jsonLimits);
    return parseExactJson(text);
  } catch (error) {
    throw parseError(parserMessage(error));
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
