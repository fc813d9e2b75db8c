/**
 * Trends: how many events, or how many users, per day or hour.
 *
 * Series, math, property filters, breakdown by a property, interval and date range; days begin in the project's time
 * zone. Source of the queries: contract, management-api 5.12.
 */

import type { DuckDBConnection } from "@duckdb/node-api";
import { isJsonObject, type Json, type JsonObject } from "../lib/json.ts";
import { wallTimeAt } from "../lib/time-zone.ts";
import { eventFilterSql, personOfEvent, propertyColumn, UnknownQuery } from "./event-filters.ts";
import { type PropertyPlace, textAt } from "./property-sql.ts";
import { quoted } from "./sql-text.ts";
import { bucketsOf, type Interval, intervals, type Range, rangeBefore, rangeOf } from "./trend-range.ts";

export interface TrendsRequest {
  projectId: number;
  /** `TrendsQuery`, or a node that wraps one as its `source`. */
  query: JsonObject;
  /** IANA name. */
  timezone: string;
  /** Milliseconds since 1970. */
  now: number;
  /** Where the properties of events `e` are; left out: in the JSON. */
  eventProperties?: PropertyPlace;
}

export const breakdownValuesMax = 25;
const seriesMax = 26;
/** How a breakdown shows events that lack the property, and the values behind the first 25. */
const noValue = "$$_posthog_breakdown_null_$$";
export const otherValues = "$$_posthog_breakdown_other_$$";

/**
 * Computes a trends query.
 *
 * @returns one object per series, or per series and breakdown value, the largest first; with `compareFilter` those of the
 *          period before behind them.
 * @throws {UnknownQuery} with a sentence about what is not known.
 */
export async function computeTrends(
  connection: DuckDBConnection,
  request: TrendsRequest,
  query: JsonObject,
): Promise<JsonObject[]> {
  const interval = intervalIn(query);
  const range = await rangeIn(connection, request, query, interval);
  const series = objectsIn(query.series);
  if (series.length === 0 || series.length > seriesMax)
    throw new UnknownQuery("A trend needs 1 to 26 series.");
  const compute = async (within: Range): Promise<JsonObject[]> => {
    const results: JsonObject[] = [];
    for (const [order, one] of series.entries()) {
      results.push(
        ...(await computeSeries(connection, { request, query, one, order, interval, range: within })),
      );
    }
    return results;
  };
  const current = await compute(range);
  if (!isJsonObject(query.compareFilter) || query.compareFilter.compare !== true) return current;
  const previous = await compute(rangeBefore(range));
  return [
    ...current.map((result) => ({ ...result, compare: true, compare_label: "current" })),
    ...previous.map((result) => ({ ...result, compare: true, compare_label: "previous" })),
  ];
}

/** The interval of a query, a day when it names none. @throws {UnknownQuery} */
export function intervalIn(query: JsonObject): Interval {
  const interval = intervals.find((name) => name === (query.interval ?? "day"));
  if (interval !== undefined) return interval;
  throw new UnknownQuery(`The interval ${JSON.stringify(query.interval)} is not known.`);
}

/** The range of a query. @throws {UnknownQuery} */
export async function rangeIn(
  connection: DuckDBConnection,
  request: TrendsRequest,
  query: JsonObject,
  interval: Interval,
): Promise<Range> {
  const dateRange = isJsonObject(query.dateRange) ? query.dateRange : {};
  const earliest = dateRange.date_from === "all" ? await earliestEvent(connection, request) : undefined;
  const range = rangeOf(dateRange, interval, { ...request, earliest });
  if (range === undefined) throw new UnknownQuery("The date range cannot be read.");
  return range;
}

/** Conditions on an event `e` and its person `p` that choose the events of a series. @throws {UnknownQuery} */
export function conditionsOf(
  { eventProperties }: TrendsRequest,
  one: JsonObject,
  query: JsonObject,
): string[] {
  const event = typeof one.event === "string" && one.event !== "" ? one.event : null;
  return [
    event === null ? "true" : `e.event = ${quoted(event)}`,
    ...[...filtersIn(one.properties), ...filtersIn(query.properties)].map((filter) =>
      eventFilterSql(filter, eventProperties),
    ),
  ];
}

/** What people call the events of a series. */
export function eventName(one: JsonObject): string {
  return typeof one.event === "string" && one.event !== "" ? one.event : "All events";
}

/**
 * SQL for events with `who` they are of and their `local_time`.
 *
 * @param range   undefined: all events up to now.
 * @param more    further columns, and conditions joined by AND, over an event `e` and its person `p`.
 */
export function foundEvents(
  { projectId, timezone }: TrendsRequest,
  range: Range | undefined,
  more: { columns: readonly string[]; conditions: readonly string[] },
): string {
  const local = `timezone(${quoted(timezone)}, timezone('UTC', e.timestamp))`;
  const within =
    range === undefined
      ? []
      : [
          // Wider than the range by a day on both sides, so that row groups are skipped before local times are worked out.
          `e.timestamp >= make_timestamp(${(range.fromMs - 86_400_000) * 1_000})`,
          `e.timestamp < make_timestamp(${(range.toMs + 86_400_000) * 1_000})`,
          `${local} >= TIMESTAMP ${quoted(range.from)}`,
          `${local} < TIMESTAMP ${quoted(range.to)}`,
        ];
  const columns = [
    `coalesce(o.person_uuid::VARCHAR, e.distinct_id) AS who`,
    `${local} AS local_time`,
    ...more.columns,
  ];
  return `SELECT ${columns.join(", ")} FROM events e ${personOfEvent}
       WHERE ${[`e.project_id = ${projectId}`, ...within, ...more.conditions].join(" AND ")}`;
}

/** Wall time of a project's first event, or now when there is none. */
async function earliestEvent(
  connection: DuckDBConnection,
  { projectId, timezone, now }: TrendsRequest,
): Promise<number> {
  const rows = await connection.runAndReadAll(
    "SELECT epoch_ms(min(timestamp)) FROM events WHERE project_id = $1",
    [projectId],
  );
  return wallTimeAt(Number(rows.getRows()[0]![0] ?? now), timezone);
}

interface Series {
  request: TrendsRequest;
  query: JsonObject;
  one: JsonObject;
  order: number;
  interval: Interval;
  range: Range;
}

async function computeSeries(connection: DuckDBConnection, series: Series): Promise<JsonObject[]> {
  const { request, query, one, interval, range } = series;
  const breakdown = breakdownOf(request, query);
  const aggregate = aggregateOf(one, request.eventProperties ?? "e.properties");
  const grouping = breakdown === undefined ? "NULL" : breakdown;
  const rows = await connection.runAndReadAll(
    `WITH found AS (
       ${foundEvents(request, range, {
         columns: [
           `date_trunc('${interval}', local_time) AS bucket`,
           `${grouping} AS value`,
           `${aggregate.input} AS measured`,
         ],
         conditions: conditionsOf(request, one, query),
       })}
     ), ranked AS (
       SELECT value, row_number() OVER (ORDER BY count(*) DESC, value) AS place FROM found GROUP BY value
     )
     SELECT CASE WHEN place <= ${breakdownValuesMax} THEN f.value ELSE ${quoted(otherValues)} END AS shown,
       strftime(bucket, '%Y-%m-%d %H:%M:%S'), ${aggregate.output}
     FROM found f JOIN ranked r ON f.value IS NOT DISTINCT FROM r.value
     GROUP BY ALL ORDER BY ALL`,
  );
  return resultsOf(
    series,
    breakdown !== undefined,
    rows.getRows() as [string | null, string, number | bigint][],
  );
}

function resultsOf(
  series: Series,
  hasBreakdown: boolean,
  rows: [string | null, string, number | bigint][],
): JsonObject[] {
  const { one, order, interval, range } = series;
  const buckets = bucketsOf(range, interval);
  const byValue = new Map<string | null, Map<string, number>>();
  if (!hasBreakdown) byValue.set(null, new Map());
  for (const [value, bucket, amount] of rows) {
    const amounts = byValue.get(value) ?? new Map<string, number>();
    byValue.set(value, amounts.set(bucket, Number(amount)));
  }
  const name = eventName(one);
  const action = {
    id: one.event ?? null,
    type: "events",
    order,
    name,
    custom_name: one.custom_name ?? null,
    math: one.math ?? "total",
  };
  const results = [...byValue].map(([value, amounts]) => {
    const data = buckets.map(({ bucket }) => amounts.get(bucket) ?? 0);
    const count = data.reduce((sum, amount) => sum + amount, 0);
    const label = typeof one.custom_name === "string" ? one.custom_name : name;
    const result: JsonObject = {
      action,
      label: hasBreakdown ? (value ?? "None") : label,
      count,
      data,
      labels: buckets.map((bucket) => bucket.label),
      days: buckets.map((bucket) => bucket.day),
    };
    if (hasBreakdown) result.breakdown_value = value ?? noValue;
    return result;
  });
  return results.sort((a, b) => (b.count as number) - (a.count as number));
}

/** What is added up: SQL for one event, and for a bucket of them. */
function aggregateOf(one: JsonObject, properties: PropertyPlace): { input: string; output: string } {
  const math = String(one.math ?? "total");
  if (math === "total") return { input: "NULL", output: "count(*)" };
  if (math === "dau") return { input: "NULL", output: "count(DISTINCT who)" };
  if (math === "unique_session")
    return { input: textAt(properties, "$session_id"), output: "count(DISTINCT measured)" };
  const property = one.math_property;
  const summary = summaries[math];
  if (summary === undefined || typeof property !== "string") {
    throw new UnknownQuery(`The math ${JSON.stringify(math)} cannot be computed.`);
  }
  return {
    input: `try_cast(${textAt(properties, property)} AS DOUBLE)`,
    output: `coalesce(${summary}, 0)`,
  };
}

const summaries: Record<string, string> = {
  sum: "sum(measured)",
  avg: "avg(measured)",
  min: "min(measured)",
  max: "max(measured)",
  median: "median(measured)",
  p90: "quantile_cont(measured, 0.9)",
  p95: "quantile_cont(measured, 0.95)",
  p99: "quantile_cont(measured, 0.99)",
};

/** SQL for the value that events are told apart by. */
export function breakdownOf({ eventProperties }: TrendsRequest, query: JsonObject): string | undefined {
  const filter = isJsonObject(query.breakdownFilter) ? query.breakdownFilter : {};
  const [first] = objectsIn(filter.breakdowns);
  const property = first?.property ?? filter.breakdown;
  const type = first?.type ?? filter.breakdown_type ?? "event";
  if (property === undefined || property === null) return undefined;
  if (typeof property !== "string") throw new UnknownQuery("A breakdown is by one property.");
  return textAt(propertyColumn(type, eventProperties), property);
}

/** Filters are a list, or groups of lists joined by AND. */
function filtersIn(properties: Json | undefined): JsonObject[] {
  if (Array.isArray(properties)) return objectsIn(properties);
  if (!isJsonObject(properties)) return [];
  if (properties.type === "OR") throw new UnknownQuery("Filters can be joined by AND only.");
  return objectsIn(properties.values).flatMap((value) => ("values" in value ? filtersIn(value) : [value]));
}

export function objectsIn(list: Json | undefined): JsonObject[] {
  return Array.isArray(list) ? list.filter(isJsonObject) : [];
}
