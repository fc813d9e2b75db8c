/** Kinds of columns of the metadata store. */

import { customType, integer } from "drizzle-orm/sqlite-core";
import { parseExactJson } from "../lib/json/exact.ts";

/** A time in milliseconds since 1970. */
export const instant = (name: string) => integer(name, { mode: "timestamp_ms" });
export const flagged = (name: string) => integer(name, { mode: "boolean" });
/** JSON as it was sent: a 64-bit id in a condition keeps its digits. */
const toJsonString = customType<{ data: unknown; driverData: string }>({
  dataType: () => "text",
  toDriver: (value) => JSON.stringify(value),
  fromDriver: parseExactJson,
});
export const json = <T>(name: string) => toJsonString(name).$type<T>();
