/** Determines an event's name and distinct ID. Pure. Source: contract, ingestion 5.3, 7.1, 7.2; decisions 4, 21. */

import { sanitizeString } from "../lib/json/canonical.ts";
import { memberSource } from "../lib/json/spans.ts";
import type { RawItem } from "./item-table.ts";

/**
 * The stored name, of any length, numbers in the client's spelling.
 *
 * @param nameOfNameless replaces an absent or null name.
 * @returns undefined when the name is absent or only whitespace.
 */
export function eventName(item: RawItem, nameOfNameless: string | undefined): string | undefined {
  const claimed = item.value.event ?? nameOfNameless;
  const isScalar = typeof claimed === "number" || typeof claimed === "boolean";
  const name = isScalar ? toDisplayString(item, item.start, "event", claimed) : claimed;
  if (typeof name !== "string" || name.trim() === "") return undefined;
  return sanitizeString(name);
}

/**
 * The distinct ID, of any length: next to the properties, else inside them.
 *
 * @returns undefined when it is absent or only whitespace. Whitespace around an ID is preserved.
 */
export function distinctId(item: RawItem): string | undefined {
  const { value } = item;
  const properties = (value.properties ?? {}) as Record<string, unknown>;
  const found =
    toDisplayString(item, item.start, "distinct_id", value.distinct_id) ??
    toDisplayString(item, item.start, "$distinct_id", value.$distinct_id) ??
    toDisplayString(item, item.propertiesStart, "distinct_id", properties.distinct_id) ??
    toDisplayString(item, item.propertiesStart, "$distinct_id", properties.$distinct_id);
  if (found === undefined) return undefined;
  return found.trim() === "" ? undefined : sanitizeString(found);
}

/** Strings unchanged, numbers in the client's spelling, everything else as JSON. */
function toDisplayString(
  item: RawItem,
  objectStart: number,
  name: string,
  value: unknown,
): string | undefined {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return undefined;
  return typeof value === "number" ? memberSource(item.text, objectStart, name) : JSON.stringify(value);
}
