/** Finds an event's name and the id of its person. Pure. Source: contract, ingestion 5.3, 7.1, 7.2. */

import type { RawItem } from "./item-table.ts";
import { rawMember } from "./json-spans.ts";
import { firstCodePoints, withoutNul } from "./unicode.ts";

const NAME_LENGTH_MAX = 200;
const DISTINCT_ID_LENGTH_MAX = 200;

/** The name as it is stored; undefined when there is none. */
export function eventName(claimed: unknown): string | undefined {
  const name = typeof claimed === "number" || typeof claimed === "boolean" ? String(claimed) : claimed;
  if (typeof name !== "string" || name === "") return undefined;
  return firstCodePoints(withoutNul(name), NAME_LENGTH_MAX);
}

/** A distinct id, and whether it is only the beginning of what was sent. */
export interface DistinctId {
  readonly text: string;
  readonly isTruncated: boolean;
}

/**
 * The distinct id: beside the properties, else inside them.
 *
 * @returns undefined when there is none, or nothing but white space. Space around an id is kept.
 */
export function distinctId(item: RawItem): DistinctId | undefined {
  const { value } = item;
  const properties = (value.properties ?? {}) as Record<string, unknown>;
  const found =
    textOf(item, item.start, "distinct_id", value.distinct_id) ??
    textOf(item, item.start, "$distinct_id", value.$distinct_id) ??
    textOf(item, item.propertiesStart, "distinct_id", properties.distinct_id) ??
    textOf(item, item.propertiesStart, "$distinct_id", properties.$distinct_id);
  if (found === undefined) return undefined;
  const text = firstCodePoints(withoutNul(found), DISTINCT_ID_LENGTH_MAX);
  return text.trim() === "" ? undefined : { text, isTruncated: text.length < found.length };
}

/** Strings as they are, numbers in the client's own spelling, everything else as JSON. */
function textOf(item: RawItem, objectStart: number, name: string, value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (value === undefined || value === null) return undefined;
  return typeof value === "number" ? rawMember(item.text, objectStart, name) : JSON.stringify(value);
}
