/** Reads values that other programs have written in one way or another. Pure. */

import { numberText } from "../../lib/exact-json.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { parseJsonText } from "../read/json-text.ts";

/** An id, however it is written. */
export function idOf(value: Json | undefined): string | undefined {
  if ((typeof value === "string" && value !== "") || typeof value === "number") return String(value);
  return numberText(value);
}

/** An object, also one that is text; empty when it is none. */
export function objectOf(value: Json | undefined): JsonObject {
  const parsed = value === undefined ? undefined : jsonText(value);
  return isJsonObject(parsed) ? parsed : {};
}

/**
 * The properties of an event, also as text: an object of its own, which may be changed.
 *
 * @returns what stands there when it is something else, by which ingestion refuses the event.
 */
export function propertiesOf(value: Json | undefined): JsonObject | Exclude<Json, JsonObject> {
  const parsed = value === undefined || value === "" ? null : jsonText(value);
  if (parsed === null) return {};
  return isJsonObject(parsed) ? { ...parsed } : (parsed as Exclude<Json, JsonObject>);
}

/** Tables hold objects as JSON text. */
export function jsonText(value: Json): Json {
  if (typeof value !== "string" || !value.trimStart().startsWith("{")) return value;
  try {
    return parseJsonText(value);
  } catch {
    return value;
  }
}

/** A list, also one that is text, or as Parquet holds it; empty when it is none. */
export function listOf(value: Json | undefined): Json[] {
  if (Array.isArray(value)) return value;
  if (isJsonObject(value)) return Array.isArray(value.list) ? value.list : [];
  if (typeof value !== "string" || !value.trimStart().startsWith("[")) return [];
  try {
    const parsed = parseJsonText(value);
    return Array.isArray(parsed) ? parsed : [];
  } catch {
    return [];
  }
}
