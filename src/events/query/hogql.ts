/** `HogQLQuery` objects: an operator's statement in the form that PostHog clients send and save. */

import { InvalidFieldError } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { getRange, type RangeClock, weekStartDefault } from "../insights/trend-range.ts";
import { quoted } from "../sql-text.ts";
import type { HogqlOptions } from "./parse.ts";

/** Wrapping nodes describe the display; a few levels are enough. */
const wrappersMax = 5;

/**
 * The statement of a `HogQLQuery`, directly or as the `source` of a node such as `DataVisualizationNode`; undefined for
 * other kinds of queries.
 */
export function toStatement(query: Json): Json | undefined {
  const node = findHogql(query);
  return node === undefined ? undefined : (node.query ?? null);
}

function findHogql(query: Json): JsonObject | undefined {
  let node: Json | undefined = query;
  for (let depth = 0; depth <= wrappersMax && isJsonObject(node); depth++) {
    const each: JsonObject = node;
    if (each.kind === "HogQLQuery") return each;
    node = each.source;
  }
  return undefined;
}

/** How the statement of a `HogQLQuery` is read; undefined for other kinds of queries. */
export function toHogqlOptions(query: Json, clock: RangeClock): HogqlOptions | undefined {
  const node = findHogql(query);
  if (node === undefined) return undefined;
  const placeholders: Record<string, string> = { filters: toFilter(node.filters, clock) };
  for (const [name, value] of Object.entries(isJsonObject(node.values) ? node.values : {}))
    placeholders[name] = toLiteral(value);
  for (const variable of Object.values(isJsonObject(node.variables) ? node.variables : {})) {
    if (!isJsonObject(variable) || typeof variable.code_name !== "string") continue;
    placeholders[`variables.${variable.code_name}`] = toLiteral(variable.value ?? null);
  }
  return { weekStartDay: clock.weekStartDay ?? weekStartDefault, timezone: clock.timezone, placeholders };
}

/** The condition of `filters: {dateRange}`; others do not apply. */
function toFilter(filters: Json | undefined, clock: RangeClock): string {
  const range = isJsonObject(filters) && isJsonObject(filters.dateRange) ? filters.dateRange : undefined;
  if (range === undefined || (range.date_from ?? range.date_to ?? null) === null) return "true";
  const { date_from = "all" } = range;
  const found = getRange({ ...range, date_from: date_from ?? "all" }, null, { ...clock, earliest: 0 });
  if (found === undefined)
    throw new InvalidFieldError("query", "invalid_input", "`dateRange` is not a range of dates.");
  const [from, to] = [found.from, found.to].map(
    (time) => `timezone(${quoted(clock.timezone)}, TIMESTAMP ${quoted(time)})`,
  );
  return `(timestamp >= ${from} AND timestamp < ${to})`;
}

function toLiteral(value: Json): string {
  if (Array.isArray(value)) return `(${value.map(toLiteral).join(", ")})`;
  if (typeof value === "number" || typeof value === "boolean" || value === null) return JSON.stringify(value);
  return quoted(typeof value === "string" ? value : JSON.stringify(value));
}
