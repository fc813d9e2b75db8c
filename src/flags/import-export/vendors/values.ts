/** Reads members of foreign files leniently: a member of the wrong type counts as missing. */

import { formatNumber } from "../../../lib/json/exact.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../lib/json/value.ts";

export const text = (value: Json | undefined): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined;

/** Keys and IDs, which some files write as numbers. */
export const name = (value: Json | undefined): string | undefined =>
  typeof value === "number" ? String(value) : (formatNumber(value) ?? text(value));

/** Lists, objects and null: no value that a condition compares. */
export const isComposite = (value: Json): boolean =>
  typeof value === "object" && formatNumber(value) === undefined;

export const number = (value: Json | undefined): number | undefined => {
  const read = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  return typeof read === "number" && Number.isFinite(read) ? read : undefined;
};

/** A value as a string: other types as JSON. */
export const stringify = (value: Json | undefined): string =>
  typeof value === "string" ? value : (JSON.stringify(value) ?? "");

export const list = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);

export const object = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {});

export const objects = (value: Json | undefined): JsonObject[] => list(value).filter(isJsonObject);

/** Receives what is wrong in a file. */
export type Report = (reason: string) => void;

/** The members of a list; a value that is not one is reported. An absent list is empty. */
export function checkedList(value: Json | undefined, what: string, report: Report): readonly Json[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) report(`${what}: ${shown(value)} is not a list`);
  return list(value);
}

/** The objects of a list; a value that is not a list, and other members, are reported. */
export function checkedObjects(value: Json | undefined, what: string, report: Report): JsonObject[] {
  return checkedList(value, what, report).filter((item): item is JsonObject => {
    if (!isJsonObject(item)) report(`${what}: ${shown(item)} is not an object`);
    return isJsonObject(item);
  });
}

/** An object; other values are reported. An absent one is empty. */
export function checkedObject(value: Json | undefined, what: string, report: Report): JsonObject {
  if (value !== undefined && value !== null && !isJsonObject(value))
    report(`${what}: ${shown(value)} is not an object`);
  return object(value);
}

/** A percentage; other values are reported, and count as 0. */
export function checkedPercent(value: Json | undefined, what: string, report: Report): number {
  const percent = number(value);
  if (percent !== undefined && percent >= 0 && percent <= 100) return percent;
  report(`${what}: ${shown(value ?? null)} is not a percentage`);
  return 0;
}

const shownLengthMax = 100;

/** A value for a message. */
function shown(value: Json): string {
  const json = JSON.stringify(value);
  return json.length > shownLengthMax ? `${json.slice(0, shownLengthMax)}…` : json;
}

/** The members of a map that are objects, with their names. */
export const entries = (value: Json | undefined): [string, JsonObject][] =>
  Object.entries(object(value)).filter((entry): entry is [string, JsonObject] => isJsonObject(entry[1]));

/** The file has several environments, and none can be chosen. */
export class AmbiguousEnvironmentError extends Error {
  constructor(readonly environments: readonly string[]) {
    super("Several environments.");
  }
}

/**
 * The selected environment: the named one, the only one, else `production`.
 *
 * @throws {AmbiguousEnvironmentError} none of these exists.
 */
export function chosenEnvironment(all: readonly string[], wanted: string | undefined): string | undefined {
  const known = [...new Set(all)];
  if (wanted !== undefined) {
    if (known.includes(wanted)) return wanted;
    throw new AmbiguousEnvironmentError(known);
  }
  if (known.length <= 1) return known[0];
  if (known.includes("production")) return "production";
  throw new AmbiguousEnvironmentError(known);
}
