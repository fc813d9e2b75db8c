/** Filters on properties as lists take them in their address (contract: management-api 6.4, sdk-compat 4.10). */

import { InvalidField } from "../../accounts/errors.ts";
import { isJsonObject, type JsonObject } from "../../lib/json.ts";

/**
 * The filters of the parameter `properties`; undefined without any.
 *
 * @param type what a filter is about that does not say it.
 * @throws {InvalidField} neither a JSON list of filters nor one filter.
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
  return filters.length === 0 ? undefined : filters.map((filter) => ({ type, ...filter }));
}
