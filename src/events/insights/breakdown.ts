/** Breakdown of an insight by one property or, for trends, by several. */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { propertyColumn, UnknownQueryError } from "../event-filters.ts";
import { type PropertySql, stringAt } from "../sql-dialect.ts";
import { noValue, otherValues } from "./breakdown-values.ts";
import { objectsIn } from "./event-source.ts";

/** PostHog's limit. */
const breakdownsMax = 3;

export interface Breakdown {
  /** The value of an event as a string: with several properties, that of all of them together. */
  sql: string;
  /** The `breakdown_value` of such a string: with several properties, a list. */
  parse(value: string | null): Json;
  /** The label of such a string. */
  label(value: string | null): string;
}

/** @throws {UnknownQueryError} */
export function getBreakdown(store: PropertySql, query: JsonObject): Breakdown | undefined {
  const filter = isJsonObject(query.breakdownFilter) ? query.breakdownFilter : {};
  const sent = objectsIn(filter.breakdowns);
  const single = [{ property: filter.breakdown ?? null, type: filter.breakdown_type ?? null }];
  const breakdowns = (sent.length > 0 ? sent : single).filter(({ property }) => (property ?? null) !== null);
  if (breakdowns.length > breakdownsMax)
    throw new UnknownQueryError(`A breakdown has at most ${breakdownsMax} properties.`);
  const columns = breakdowns.map(({ property, type }) => {
    if (typeof property !== "string") throw new UnknownQueryError("A breakdown has exactly one property.");
    return stringAt(store.dialect, propertyColumn(store, type ?? "event"), property);
  });
  if (columns.length === 0) return undefined;
  if (columns.length === 1) {
    return { sql: columns[0]!, parse: (value) => value ?? noValue, label: (value) => value ?? "None" };
  }
  const parse = (value: string | null) => getValues(value, columns.length);
  return {
    sql: columns.map((column) => `coalesce(hex(${column}), '${absent}')`).join(` || '${separator}' || `),
    parse,
    label: (value) =>
      parse(value)
        .map((value) => (value === noValue ? "None" : value))
        .join("::"),
  };
}

/** Neither mark occurs in hexadecimal digits, which keep values with any characters apart. */
const absent = "-";
const separator = ",";

function getValues(joined: string | null, count: number): string[] {
  // As in PostHog, each value of the combined rest is the placeholder.
  if (joined === null || joined === otherValues) return Array.from({ length: count }, () => otherValues);
  return joined
    .split(separator)
    .map((value) => (value === absent ? noValue : Buffer.from(value, "hex").toString("utf8")));
}
