/** Reads the members of files that others wrote: what is not of the expected kind is not there. */

import { isJsonObject, type Json, type JsonObject } from "../../../lib/json.ts";

export const text = (value: Json | undefined): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

/** Keys and ids, which some files write as numbers. */
export const name = (value: Json | undefined): string | undefined =>
  typeof value === "number" ? String(value) : text(value);

export const number = (value: Json | undefined): number | undefined => {
  const read = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof read === "number" && Number.isFinite(read) ? read : undefined;
};

/** A value as text: what is no text as JSON. */
export const asText = (value: Json | undefined): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? "");

export const list = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);

export const object = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {});

export const objects = (value: Json | undefined): JsonObject[] => list(value).filter(isJsonObject);

/** The members of a map that are objects, with their names. */
export const entries = (value: Json | undefined): [string, JsonObject][] =>
  Object.entries(object(value)).filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1]));

/** A file that can be taken over from one environment only. */
export class WhichEnvironment extends Error {
  constructor(readonly environments: readonly string[]) {
    super("Several environments.");
  }
}

/**
 * The environment that is meant: the named one, the only one, else `production`.
 *
 * @throws {WhichEnvironment} it is none of these.
 */
export function chosenEnvironment(all: readonly string[], wanted: string | undefined): string | undefined {
  const known = [...new Set(all)];
  if (wanted !== undefined) {
    if (known.includes(wanted)) return wanted;
    throw new WhichEnvironment(known);
  }
  if (known.length <= 1) return known[0];
  if (known.includes("production")) return "production";
  throw new WhichEnvironment(known);
}
