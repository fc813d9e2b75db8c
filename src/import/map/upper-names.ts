/** Snowflake writes the names of columns in capitals. Pure. */

import type { JsonObject } from "../../lib/json.ts";
import { objectFrom } from "../read/json-text.ts";

/** Whether all names of a record are in capitals. */
export function hasUpperNames(record: JsonObject): boolean {
  const names = Object.keys(record);
  const isUpper = (name: string) => name === name.toUpperCase();
  return names.every(isUpper) && names.some((name) => name !== name.toLowerCase());
}

/** The record with its names in lower case; unchanged if some are in lower case already. */
export function withLowerNames(record: JsonObject): JsonObject {
  if (!hasUpperNames(record)) return record;
  return objectFrom(Object.entries(record).map(([name, value]) => [name.toLowerCase(), value]));
}
