/** The parameters of an address. */

import { InvalidField } from "../lib/errors.ts";
import { isJsonObject, type JsonObject } from "../lib/json.ts";
import { testFault } from "../lib/operator-values.ts";
import { withPresentOperator } from "../lib/operators.ts";
import { isRepresentable, parseInstant } from "../lib/timestamp.ts";

/** Of a parameter that is repeated, the last one counts (contract: management-api 5.1). */
export class Query extends URLSearchParams {
  override get(name: string): string | null {
    return this.getAll(name).at(-1) ?? null;
  }
}

const trueWords = new Set(["true", "1", "yes", "on"]);
const falseWords = new Set(["false", "0", "no", "off"]);

/**
 * A filter that is true or false, in any case; undefined when it is absent or empty.
 *
 * @throws {InvalidField} any other word. Source: decision 23.
 */
export function readBoolean(query: URLSearchParams, name: string): boolean | undefined {
  const word = query.get(name)?.trim().toLowerCase() ?? "";
  if (word === "") return undefined;
  if (trueWords.has(word)) return true;
  if (falseWords.has(word)) return false;
  throw new InvalidField(name, "invalid_input", "Must be a valid boolean: true or false.");
}

/**
 * A time in epoch microseconds, UTC where it names no zone; undefined when it is absent or empty.
 *
 * @throws {InvalidField} it is none.
 */
export function readInstant(query: URLSearchParams, name: string): number | undefined {
  const given = query.get(name);
  if (!given) return undefined;
  const micros = parseInstant(given);
  if (micros !== undefined && isRepresentable(micros)) return micros;
  throw new InvalidField(name, "invalid_input", "It is not a date and time that can be read.");
}

/**
 * The filters on properties of the parameter `properties`; undefined without any (contract: management-api 6.4, sdk-compat 4.10).
 *
 * @param type what a filter is about that does not say it.
 * @returns with present names of operators.
 * @throws {InvalidField} neither a JSON list of filters nor one filter, or one with an operator or a value that cannot
 *                        be used (contract, third round B1).
 */
export function readPropertyFilters(
  query: URLSearchParams,
  type: "event" | "person",
): JsonObject[] | undefined {
  const given = query.get("properties");
  if (!given) return undefined;
  const refused = new InvalidField(
    "properties",
    "invalid_input",
    "Properties must be a JSON list of filters.",
  );
  let parsed: unknown;
  try {
    parsed = JSON.parse(given);
  } catch {
    throw refused;
  }
  const filters = Array.isArray(parsed) ? parsed : [parsed];
  if (!filters.every(isJsonObject) || filters.some(({ key }) => typeof key !== "string")) throw refused;
  return filters.length === 0
    ? undefined
    : filters.map((filter) => checkedFilter(withPresentOperator({ type, ...filter })));
}

function checkedFilter(filter: JsonObject): JsonObject {
  const fault = filter.type === "person" || filter.type === "event" ? testFault(filter) : undefined;
  if (fault !== undefined) throw new InvalidField("properties", fault.code, fault.detail);
  return filter;
}
