/**
 * Insight queries for printing as SQL over the documented views `events` and `persons`, which users open, change and
 * save. Filters, breakdowns and starts of periods come from the functions that compute insights.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { viewSql } from "../duckdb/sql-dialect.ts";
import { propertyColumn, UnknownQueryError } from "../event-filters.ts";
import { type Interval, stringAt } from "../sql-dialect.ts";
import { quoted } from "../sql-text.ts";
import { isActiveUsers } from "./active-days.ts";
import {
  getConditions,
  getEntity,
  intervalIn,
  objectsIn,
  readsPersons,
  type TrendsRequest,
} from "./event-source.ts";
import { getRange, weekStartDefault } from "./trend-range.ts";

const { dialect } = viewSql;
const plainMaths: ReadonlySet<string> = new Set(["total", "dau", "unique_session"]);
const numberMaths = /^(sum|avg|min|max|median|p\d\d)$/;

/** A query that is printed, with the parts that several kinds share. */
export interface ViewQuery {
  request: TrendsRequest;
  query: JsonObject;
  series: readonly ViewSeries[];
  interval: Interval;
  breakdowns: readonly { name: string; sql: string }[];
  /** Bounds of the events, as SQL of wall times. */
  bounds: { from?: string; until: string };
  /** A join of persons as `p`, if a filter or breakdown reads them. */
  personJoin: string;
}

export interface ViewSeries {
  /** Empty for all events. */
  event: string;
  math: string;
  /** SQL of the number that is measured; null without one. */
  number: string | null;
  conditions: readonly string[];
}

/** A number in a result: its series or step, period and value. */
export interface Figure {
  /** Index of the series or step. */
  series: number;
  /** Start of its period as in the response: `2026-11-21` or `2026-11-21 05:00:00`. */
  day?: string | undefined;
  /** One value per property of the breakdown. */
  breakdown?: readonly string[] | undefined;
  /** Retention: number of periods until the return. */
  later?: number | undefined;
  /** Lifecycle: `new`, `returning`, `resurrecting` or `dormant`. */
  status?: string | undefined;
  /** Times to convert: bounds in seconds. */
  seconds?: readonly number[] | undefined;
}

export const personJoin = "\nLEFT JOIN persons p ON p.id = e.person_id";
export const who = "coalesce(e.person_id::VARCHAR, e.distinct_id)";
export const identifier = (name: string) => `"${name.replaceAll('"', '""')}"`;
export const part = (query: JsonObject, name: string): JsonObject => {
  const found = query[name];
  return isJsonObject(found) ? found : {};
};

/** The query that a node wraps. */
export function unwrapped(node: JsonObject): JsonObject {
  return isJsonObject(node.source) ? unwrapped(node.source) : node;
}

/** @throws {UnknownQueryError} names what cannot be printed */
export function readQuery(request: TrendsRequest, query: JsonObject): ViewQuery {
  const series = objectsIn(query.series);
  return {
    request,
    query,
    series: series.map((node) => readSeries(node, query)),
    interval: intervalIn(query),
    breakdowns: readBreakdowns(query),
    bounds: getBounds(request, query),
    personJoin: readsPersons(query, series) ? personJoin : "",
  };
}

function readSeries(node: JsonObject, query: JsonObject): ViewSeries {
  const math = typeof node.math === "string" && node.math !== "" ? node.math : "total";
  const event = typeof node.event === "string" ? node.event : "";
  const conditions = getSqlConditions(node, query);
  if (plainMaths.has(math) || isActiveUsers(math)) return { event, math, number: null, conditions };
  const { math_property: name, math_property_type: type = "event_properties" } = node;
  if (!numberMaths.test(math) || typeof name !== "string" || type !== "event_properties")
    throw new UnknownQueryError(`The math ${math} cannot be printed as SQL.`);
  const number = `try_cast(${stringAt(dialect, propertyColumn(viewSql, "event"), name)} AS DOUBLE)`;
  return { event, math, number, conditions };
}

/** Without `true` for all events. */
const getSqlConditions = (node: JsonObject, query: JsonObject) =>
  getConditions(viewSql, node, query).filter((condition) => condition !== "true");

/** The condition of an entity of retention. */
export const entityCondition = (entity: Json | undefined, query: JsonObject) =>
  getSqlConditions(getEntity(entity), query).join(" AND ") || "true";

function readBreakdowns(query: JsonObject): ViewQuery["breakdowns"] {
  const filter = part(query, "breakdownFilter");
  const sent = objectsIn(filter.breakdowns);
  const single = [{ property: filter.breakdown ?? null, type: filter.breakdown_type ?? null }];
  return (sent.length > 0 ? sent : single).flatMap(({ property, type }) =>
    typeof property === "string" && property !== ""
      ? [{ name: property, sql: stringAt(dialect, propertyColumn(viewSql, type ?? "event"), property) }]
      : [],
  );
}

/** SQL for the wall time of an event. */
export const localTime = ({ timezone }: TrendsRequest) =>
  timezone === "UTC" ? dialect.time("e") : dialect.wallTime("e", timezone);

/** SQL for the present wall time. */
export const nowIn = ({ timezone }: TrendsRequest) => `timezone(${quoted(timezone)}, now())`;

/** SQL for the start of the interval that contains a wall time. */
export function startOf(interval: Interval, wallTime: string, { weekStartDay }: TrendsRequest): string {
  const start = dialect.startOf(interval, wallTime, weekStartDay ?? weekStartDefault);
  return start.startsWith("date_trunc(") && start.endsWith(")") ? start : `(${start})`;
}

/** SQL for the start of a period. @throws {UnknownQueryError} */
export function moment(day = ""): string {
  if (!/^\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d)?$/.test(day))
    throw new UnknownQueryError(`Invalid day ${JSON.stringify(day)}: expected, for example, 2026-11-21.`);
  return dialect.wallMoment(day.length === 10 ? `${day} 00:00:00` : day);
}

/** A relative start such as `-30d`, which stays relative in the statement. */
export function relativeStart({ date_from: from = "-7d", date_to: to = null }: JsonObject) {
  const [, count, letter] = /^-(\d{1,5})([hd])$/.exec(String(from ?? "-7d")) ?? [];
  if (count === undefined || to !== null) return undefined;
  return { count: Number(count), unit: letter === "h" ? ("hour" as const) : ("day" as const) };
}

/** The same bounds as those of the computed query. @throws {UnknownQueryError} */
function getBounds(request: TrendsRequest, query: JsonObject): ViewQuery["bounds"] {
  const dates = part(query, "dateRange");
  const isByPeriod = query.kind === "TrendsQuery" || part(query, "funnelsFilter").funnelVizType === "trends";
  const unit = isByPeriod && query.interval === "hour" ? "hour" : "day";
  const now = nowIn(request);
  const until = `date_trunc('${unit}', ${now}) + INTERVAL 1 ${unit}`;
  if (dates.date_from === "all" && (dates.date_to ?? null) === null) return { until };
  const relative = relativeStart(dates);
  if (relative !== undefined) {
    const { count, unit: fromUnit } = relative;
    return { from: `date_trunc('${fromUnit}', ${now}) - INTERVAL ${count} ${fromUnit}`, until };
  }
  const range = fixedRange(request, dates);
  return { from: moment(range.from), until: moment(range.to) };
}

/** @throws {UnknownQueryError} */
export function fixedRange(request: TrendsRequest, dates: JsonObject) {
  const range = dates.date_from === "all" ? undefined : getRange(dates, null, request);
  if (range === undefined) throw new UnknownQueryError("Invalid date range.");
  return range;
}

export function rangeConditions({ request, bounds: { from, until } }: ViewQuery): string[] {
  const local = localTime(request);
  return [...(from === undefined ? [] : [`${local} >= ${from}`]), `${local} < ${until}`];
}

/** FROM and WHERE for the events of a series. */
export function getEvents(
  view: ViewQuery,
  series: ViewSeries,
  {
    more = [],
    withPersons = false,
    range = rangeConditions(view),
  }: { more?: readonly string[]; withPersons?: boolean; range?: readonly string[] } = {},
): string {
  return `FROM events e${withPersons ? personJoin : view.personJoin}
WHERE ${[...series.conditions, ...range, ...more].join("\n  AND ")}`;
}
