/** Reads values that other programs have written in one way or another. Pure. */

import { isJsonObject, type Json, type JsonObject } from "../lib/json.ts";

/** An id, however it is written. */
export function idOf(value: Json | undefined): string | undefined {
  return (typeof value === "string" && value !== "") || typeof value === "number" ? String(value) : undefined;
}

/** An object, also one that is text; empty when it is none. */
export function objectOf(value: Json | undefined): JsonObject {
  const parsed = value === undefined ? undefined : jsonText(value);
  return isJsonObject(parsed) ? parsed : {};
}

/** Tables hold objects as JSON text. */
export function jsonText(value: Json): Json {
  if (typeof value !== "string" || !value.trimStart().startsWith("{")) return value;
  try {
    return JSON.parse(value) as Json;
  } catch {
    return value;
  }
}
