/**
 * Detects reports: totals per day, page or campaign, as the interfaces of analytics products export them. Their records
 * are not events (contract, import 1.9). Pure.
 */

import { isJsonObject, type JsonObject } from "../../lib/json/value.ts";

/** Totals that no event has, in lower case: of Plausible's, GA4's and Umami's interfaces. */
const totals = new Set([
  "visitors",
  "visits",
  "pageviews",
  "page views",
  "views",
  "sessions",
  "users",
  "bounces",
  "bounce_rate",
  "bounce rate",
  "visit_duration",
  "views_per_visit",
  "totaltime",
  "active users",
  "new users",
  "total users",
  "returning users",
  "event count",
  "engaged sessions",
  "engagement rate",
  "key events",
  "total revenue",
  "unique_conversions",
  "total_conversions",
  "unique_entrances",
  "total_entrances",
  "unique_exits",
  "total_exits",
  "exit_rate",
  "uniques",
  "unique users",
  "total events",
]);
/** Columns of a report by time, which has any other numbers. */
const days = new Set(["date", "day", "week", "month", "nth day", "nth week", "nth month", "date range"]);
/** Totals in a report by time. */
const values = new Set(["value", "count", "total"]);
const dayForm = /^\d{4}-\d\d-\d\d(?:[T ].*)?$/;
/** A row about one user or device is no total. */
const idForm = /(?:^|[\W_])(?:id|uuid|user|user ?name|email|device|client|customer|visitor|account|person)$/i;
/** Members of Mixpanel's reports. */
const reports: readonly (readonly string[])[] = [
  ["computed_at", "series"],
  ["legend_size", "data"],
  ["date_range", "series"],
];

/** @param record of no known format. */
export function isTotals(record: JsonObject): boolean {
  const names = Object.keys(record);
  if (reports.some((members) => members.every((name) => Object.hasOwn(record, name)))) return true;
  if (isByDay(names) || (isJsonObject(record.data) && isByDay(Object.keys(record.data)))) return true;
  // Umami's API.
  if (names.length > 0 && names.every((name) => name === "x" || name === "y" || name === "t")) return true;
  if (names.some((name) => idForm.test(name))) return false;
  const lower = names.map((name) => name.trim().toLowerCase());
  if (lower.some((name) => totals.has(name))) return true;
  const others = names.filter((_, at) => !days.has(lower[at]!));
  if (others.length === names.length || others.length === 0) return false;
  return lower.some((name) => values.has(name)) || others.every((name) => isNumber(record[name]));
}

/** Whether the columns of a table are days. */
function isByDay(names: readonly string[]): boolean {
  return names.some((name) => dayForm.test(name));
}

function isNumber(value: unknown): boolean {
  return typeof value === "number" || (typeof value === "string" && /^-?[\d.,]+%?$/.test(value));
}
