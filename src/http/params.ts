/** Path and query parameters. */

import { InvalidFieldError } from "../lib/errors.ts";
import { canonicalUuid } from "../lib/ids.ts";
import { isJsonObject, type JsonObject } from "../lib/json/value.ts";
import { isRepresentable, parseInstant } from "../lib/timestamp.ts";
import { normalizeOperator, validateFilterValue } from "../lib/values/operators.ts";

/** The last value of a repeated parameter counts (contract: management-api 5.1). */
export class Query extends URLSearchParams {
  override get(name: string): string | null {
    return this.getAll(name).at(-1) ?? null;
  }
}

const trueWords = new Set(["true", "1", "yes", "on"]);
const falseWords = new Set(["false", "0", "no", "off"]);

/**
 * A boolean filter in any letter case; undefined when absent or empty.
 *
 * @param alternative a word that the caller accepts as well, for the message
 * @throws {InvalidFieldError} any other word. Source: decision 23.
 */
export function readBoolean(query: URLSearchParams, name: string, alternative?: string): boolean | undefined {
  const word = query.get(name)?.trim().toLowerCase() ?? "";
  if (word === "") return undefined;
  if (trueWords.has(word)) return true;
  if (falseWords.has(word)) return false;
  const expected =
    alternative === undefined ? "a valid boolean: true or false" : `true, false or ${alternative}`;
  throw new InvalidFieldError(name, "invalid_input", `Must be ${expected}.`);
}

/**
 * A time in epoch microseconds, UTC by default; undefined when absent or empty.
 *
 * @throws {InvalidFieldError} invalid.
 */
export function readInstant(query: URLSearchParams, name: string): number | undefined {
  const option = query.get(name);
  if (!option) return undefined;
  const micros = parseInstant(option);
  if (micros !== undefined && isRepresentable(micros)) return micros;
  throw new InvalidFieldError(name, "invalid_input", "Invalid date and time.");
}

/** The same as a `Date`. */
export function readDate(query: URLSearchParams, name: string): Date | undefined {
  const micros = readInstant(query, name);
  return micros === undefined ? undefined : new Date(micros / 1_000);
}

/**
 * The property filters of the parameter `properties`; undefined without any (contract: management-api 6.4, sdk-compat
 * 4.10).
 *
 * @param type default type of a filter.
 * @returns filters with the current operator names.
 * @throws {InvalidFieldError} neither a JSON list of filters nor a single filter, or a filter with an unusable operator
 * or value (contract, third round B1).
 */
export function readPropertyFilters(
  query: URLSearchParams,
  type: "event" | "person",
): JsonObject[] | undefined {
  const option = query.get("properties");
  if (!option) return undefined;
  const rejected = new InvalidFieldError(
    "properties",
    "invalid_input",
    "Properties must be a JSON list of filters.",
  );
  let parsed: unknown;
  try {
    parsed = JSON.parse(option);
  } catch {
    throw rejected;
  }
  const filters = Array.isArray(parsed) ? parsed : [parsed];
  if (!filters.every(isJsonObject) || filters.some(({ key }) => typeof key !== "string")) throw rejected;
  return filters.length === 0
    ? undefined
    : filters.map((filter) => checkedFilter(normalizeOperator({ type, ...filter })));
}

function checkedFilter(filter: JsonObject): JsonObject {
  const problem =
    filter.type === "person" || filter.type === "event" ? validateFilterValue(filter) : undefined;
  if (problem !== undefined) throw new InvalidFieldError("properties", problem.code, problem.detail);
  return filter;
}

/** The id that a list is filtered by; undefined without it. @throws {InvalidFieldError} not an integer. */
export function readIdFilter(query: URLSearchParams, field: string): number | undefined {
  const option = query.get(field);
  if (option === null || option === "") return undefined;
  if (/^\d{1,15}$/.test(option)) return Number(option);
  throw new InvalidFieldError(field, "invalid_input", "A valid integer is required.");
}

/** UUIDs, separated by commas, that a list is filtered by; undefined without them. @throws {InvalidFieldError} */
export function readUuidsFilter(query: URLSearchParams, field: string): string[] | undefined {
  const option = query.get(field);
  if (option === null || option.trim() === "") return undefined;
  return option.split(",").map((text) => {
    const uuid = canonicalUuid(text.trim());
    if (uuid === undefined) throw new InvalidFieldError(field, "invalid_input", "Enter a valid UUID.");
    return uuid;
  });
}

/** One of several values that a list is filtered by; undefined without it. @throws {InvalidFieldError} */
export function readChoice<Choice extends string>(
  query: URLSearchParams,
  field: string,
  choices: readonly Choice[],
): Choice | undefined {
  const option = query.get(field);
  if (option === null || option === "") return undefined;
  const found = choices.find((choice) => choice === option);
  if (found !== undefined) return found;
  throw new InvalidFieldError(
    field,
    "invalid_choice",
    `"${option}" is not a valid choice: ${choices.join(", ")}.`,
  );
}

/** Parses a path parameter as a positive integer; invalid values match no record. */
export function readId(params: Record<string, string | undefined>, name: string): number {
  const text = params[name] ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : -1;
}

/** A path parameter as a UUID in the stored spelling; other values are returned unchanged, for example `@current`. */
export function readUuid(params: Record<string, string | undefined>, name: string): string {
  const text = params[name] ?? "";
  return canonicalUuid(text) ?? text;
}

/** Path prefix of client URLs behind a reverse proxy; empty or without a trailing slash. */
export function prefixIn(baseUrl: string): string {
  return new URL(baseUrl).pathname.replace(/\/$/, "");
}
