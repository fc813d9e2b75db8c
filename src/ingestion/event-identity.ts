/** Finds an event's name and the id of its person. Pure. Source: contract, ingestion 5.3, 7.1, 7.2; decisions 4, 21. */

import { storableText } from "../lib/unicode.ts";
import type { RawItem } from "./item-table.ts";
import { memberSource } from "./json-spans.ts";

/**
 * The name as it is stored, of any length, numbers in the client's own spelling.
 *
 * @param nameOfNameless stands for a name that is absent or null.
 * @returns undefined when there is none, or nothing but white space.
 */
export function eventName(item: RawItem, nameOfNameless: string | undefined): string | undefined {
  const claimed = item.value.event ?? nameOfNameless;
  const isScalar = typeof claimed === "number" || typeof claimed === "boolean";
  const name = isScalar ? textOf(item, item.start, "event", claimed) : claimed;
  if (typeof name !== "string" || name.trim() === "") return undefined;
  return storableText(name);
}

/**
 * The distinct id, of any length: beside the properties, else inside them.
 *
 * @returns undefined when there is none, or nothing but white space. Space around an id is kept.
 */
export function distinctId(item: RawItem): string | undefined {
  const { value } = item;
  const properties = (value.properties ?? {}) as Record<string, unknown>;
  const found =
    textOf(item, item.start, "distinct_id", value.distinct_id) ??
    textOf(item, item.start, "$distinct_id", value.$distinct_id) ??
    textOf(item, item.propertiesStart, "distinct_id", properties.distinct_id) ??
    textOf(item, item.propertiesStart, "$distinct_id", properties.$distinct_id);
  if (found === undefined) return undefined;
  return found.trim() === "" ? undefined : storableText(found);
}

/** Strings as they are, numbers in the client's own spelling, everything else as JSON. */
function textOf(item: RawItem, objectStart: number, name: string, value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return undefined;
  return typeof value === "number" ? memberSource(item.text, objectStart, name) : JSON.stringify(value);
}
