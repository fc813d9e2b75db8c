/** Payloads: JSON text per variant, or under `true` for boolean flags. Source: contract, management-api 4.4. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { filtersInvalid } from "./flag-invalid.ts";
import { getGroups, getVariants } from "./types.ts";

/**
 * Payloads in stored form: every value is a JSON string. Null clears them.
 *
 * @throws {FlagInvalid} not an object, a string that is not JSON, a key that is not a value of the flag.
 */
export function normalizePayloads(payloads: Json | undefined, filters: JsonObject): JsonObject {
  if (payloads === null) return {};
  if (!isJsonObject(payloads)) throw filtersInvalid("Payloads must be passed as a dictionary");
  const texts = Object.entries(payloads).map(([key, payload]): [string, string] => [key, encode(payload)]);
  checkKeys(Object.keys(payloads), filters);
  return Object.fromEntries(texts);
}

function encode(payload: Json): string {
  if (typeof payload !== "string") return JSON.stringify(payload);
  try {
    JSON.parse(payload);
  } catch {
    throw filtersInvalid("Payload value is not valid JSON");
  }
  return payload;
}

function checkKeys(keys: readonly string[], filters: JsonObject): void {
  const holdouts = new Set(holdoutVariants(filters));
  const variants = new Set(getVariants(filters).map(({ key }) => key));
  const others = keys.filter((key) => !holdouts.has(key));
  if (variants.size > 0) {
    if (others.every((key) => variants.has(key))) return;
    throw filtersInvalid("Payload keys must match a variant key for multivariate flags");
  }
  if (others.every((key) => key === "true")) return;
  throw filtersInvalid("Payload keys must be 'true' for boolean flags");
}

/** Users in a holdout get its name as their variant, so it may have a payload too. */
function holdoutVariants(filters: JsonObject): (Json | undefined)[] {
  const holdout = isJsonObject(filters.holdout) ? [`holdout-${filters.holdout.id}`] : [];
  return [...holdout, ...getGroups({ groups: filters.holdout_groups ?? [] }).map(({ variant }) => variant)];
}
