/**
 * Trends: how many events, or how many users, per day or hour.
 *
 * Series, math, property filters, breakdown by a property, interval and date range; days begin in the project's time
 * zone. Source of the queries: contract, management-api 5.12.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { type OffsetPeriod, offsetsBetween, wallTimeAt } from "../../lib/time-zone.ts";
import { type Dialect, type EventSql, roughTextAt, textAt } from "../dialect.ts";
import { eventFilterSql, isAboutPerson, propertyColumn, UnknownQuery } from "../event-filters.ts";
import { breakdownLimit } from "./known-parts.ts";
import { bucketsOf, type Interval, intervals, type Range, rangeBefore, rangeOf } from "./trend-range.ts";

/** A list per kind of query; of a funnel's times one object. */
export type InsightResults = JsonObject[] | JsonObject[][] | JsonObject;

export interface TrendsRequest {
  projectId: number;
  /** `TrendsQuery`, or a node that wraps one as its `source`. */
  query: JsonObject;
  /** IANA name. */
  timezone: string;
  /** Milliseconds since 1970. */
  now: number;
}

const seriesMax = 26;
/** How a breakdown shows events that lack the property, and the values behind the first. */
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
  store: EventSql,
  request: TrendsRequest,
  query: JsonObject,
): Promise<JsonObject[]> {
  const interval = intervalIn(query);
  const range = await rangeIn(store, request, query, interval);
  const series = objectsIn(query.series);
  if (series.length === 0 || series.length > seriesMax)
    throw new UnknownQuery("A trend needs 1 to 26 series.");
  const compute = async (within: Range): Promise<JsonObject[]> => {
    const results: JsonObject[] = [];
    for (const [order, one] of series.entries()) {
      results.push(...(await computeSeries(store, { request, query, one, order, interval, range: within })));
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

/** The range of a query, of any length when it has no interval. @throws {UnknownQuery} */
export async function rangeIn(
  store: EventSql,
  request: TrendsRequest,
  query: JsonObject,
  interval: Interval | null,
): Promise<Range> {
  const dateRange = isJsonObject(query.dateRange) ? query.dateRange : {};
  const earliest = dateRange.date_from === "all" ? await earliestEvent(store, request) : undefined;
  const range = rangeOf(dateRange, interval, { ...request, earliest });
  if (range === undefined) throw new UnknownQuery("The date range cannot be read.");
  return range;
}

/** Conditions on an event `e` and its person `p` that choose the events of a series. @throws {UnknownQuery} */
export function conditionsOf(store: EventSql, one: JsonObject, query: JsonObject): string[] {
  const event = typeof one.event === "string" && one.event !== "" ? one.event : null;
  return [
    event === null ? "true" : `e.event = ${store.dialect.text(event)}`,
    ...filtersOf(one, query).map((filter) => eventFilterSql(store, filter)),
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
  dialect: Dialect,
  { projectId, ...clock }: Pick<TrendsRequest, "projectId" | "timezone" | "now">,
  range: Range | undefined,
  more: { columns: readonly string[]; conditions: readonly string[]; reads?: PersonParts },
): string {
  const { local, within } = rangeSql(dialect, range, clock);
  const { who = true, person = true } = more.reads ?? {};
  const columns = [...(who ? [`${dialect.who} AS who`] : []), `${local} AS local_time`, ...more.columns];
  const joins = person ? dialect.personOfEvent(projectId) : who ? dialect.ownerOfEvent(projectId) : "";
  return `SELECT ${columns.join(", ")} FROM events e ${joins}
       WHERE ${[`e.project_id = ${projectId}`, ...within, ...more.conditions].join(" AND ")}`;
}

/** What of an event's person a query reads; joins that are not needed are left out. */
export interface PersonParts {
  /** Who it is. */
  who?: boolean;
  /** The person `p` with its properties. */
  person?: boolean;
}

/** Whether a query looks at properties of persons. */
export function readsPersons(query: JsonObject, series: readonly JsonObject[]): boolean {
  const isOfPerson = ({ type }: JsonObject) => type === "person";
  const filter = isJsonObject(query.breakdownFilter) ? query.breakdownFilter : {};
  return (
    series.some((one) => filtersOf(one, query).some(isAboutPerson)) ||
    [...objectsIn(filter.breakdowns), { type: filter.breakdown_type ?? null }].some(isOfPerson)
  );
}

const dayMs = 86_400_000;
/** Longer ranges have too many changes to write down. */
const writtenRangeMs = 20 * 366 * dayMs;
/** From here on offsets are known to change at whole minutes. */
const writtenFromMs = Date.UTC(1974);

const wallMs = (text: string) => Date.parse(`${text.replace(" ", "T")}Z`);

/** SQL for what the project's clock showed at an event `e`, and whether that is in the range. */
function rangeSql(
  dialect: Dialect,
  range: Range | undefined,
  clock: { timezone: string; now: number },
): { local: string; within: string[] } {
  if (range === undefined) return { local: localAtAnyTime(dialect, clock), within: [] };
  const { timezone } = clock;
  // Of whole seconds, as the texts are.
  const [fromMs, toMs] = [wallMs(range.from), wallMs(range.to)];
  const between = (from: number, to: number) => betweenInstants(dialect, from, to);
  const wallWithin = (local: string) => [
    // Wider than the range by a day on both sides, so that row groups are skipped before local times are worked out.
    ...between(fromMs - dayMs, toMs + dayMs),
    `${local} >= ${dialect.wallMoment(range.from)}`,
    `${local} < ${dialect.wallMoment(range.to)}`,
  ];
  const isWritten = fromMs > writtenFromMs && toMs - fromMs < writtenRangeMs;
  if (!isWritten) {
    const local = localAtAnyTime(dialect, clock);
    return { local, within: wallWithin(local) };
  }
  const periods = offsetsBetween(fromMs - 2 * dayMs, toMs + 2 * dayMs, timezone);
  const local = localIn(dialect, periods);
  // Where the clock does not change near the range's ends, they are instants.
  const [first, last] = [periods[0]!, periods.at(-1)!];
  const lastChange = periods.at(-2)?.untilMs ?? Number.NEGATIVE_INFINITY;
  const isClear = first.untilMs > fromMs + dayMs && lastChange < toMs - dayMs;
  return {
    local,
    within: isClear ? between(fromMs - first.offsetMs, toMs - last.offsetMs) : wallWithin(local),
  };
}

function betweenInstants(dialect: Dialect, fromMs: number, toMs: number): string[] {
  const time = dialect.time("e");
  return [`${time} >= ${instant(dialect, fromMs)}`, `${time} < ${instant(dialect, toMs)}`];
}

const instant = (dialect: Dialect, ms: number) => dialect.moment(ms * 1_000);

/** SQL for the wall time of an event within these periods; ten times quicker than asking for the zone at each event. */
function localIn(dialect: Dialect, periods: readonly OffsetPeriod[]): string {
  const micros = ({ offsetMs }: OffsetPeriod) => `${offsetMs * 1_000}`;
  // The newest first: most events are.
  const later = periods
    .slice(1)
    .map((period, index) => {
      const from = instant(dialect, periods[index]!.untilMs);
      return `WHEN ${dialect.time("e")} >= ${from} THEN ${micros(period)}`;
    })
    .reverse();
  const first = micros(periods[0]!);
  return dialect.wallTimeAhead("e", later.length === 0 ? first : `CASE ${later.join(" ")} ELSE ${first} END`);
}

/**
 * The same for events of any time. The last twenty years are by the runtime's own zones, so that every question tells days
 * apart alike: the stores have zones of other years, and ClickHouse is a day off where a zone has crossed the date line.
 */
function localAtAnyTime(dialect: Dialect, { timezone, now }: { timezone: string; now: number }): string {
  const toMs = now + 366 * dayMs;
  const fromMs = Math.max(writtenFromMs, toMs - writtenRangeMs);
  const isWritten = betweenInstants(dialect, fromMs, toMs).join(" AND ");
  const local = localIn(dialect, offsetsBetween(fromMs, toMs, timezone));
  return `CASE WHEN ${isWritten} THEN ${local} ELSE ${dialect.wallTime("e", timezone)} END`;
}

/** Wall time of a project's first event, or now when there is none. */
async function earliestEvent(store: EventSql, { projectId, timezone, now }: TrendsRequest): Promise<number> {
  const { dialect } = store;
  const [row] = await store.rows(
    `SELECT count(*), ${dialect.micros(`min(${dialect.time("e")})`)} FROM events e WHERE e.project_id = ${projectId}`,
  );
  const earliest = Number(row![0]) === 0 ? now : Math.floor(Number(row![1]) / 1_000);
  return wallTimeAt(earliest, timezone);
}

interface Series {
  request: TrendsRequest;
  query: JsonObject;
  one: JsonObject;
  order: number;
  interval: Interval;
  range: Range;
}

async function computeSeries(store: EventSql, series: Series): Promise<JsonObject[]> {
  const { request, query, one, interval, range } = series;
  const { dialect } = store;
  const breakdown = breakdownOf(store, query);
  const { input, output, readsWho = false } = aggregateOf(store, one);
  const found = foundEvents(dialect, request, range, {
    columns: [
      `${dialect.startOf(interval, "local_time")} AS bucket`,
      ...(breakdown === undefined ? [] : [`${breakdown} AS value`]),
      ...(input === undefined ? [] : [`${input} AS measured`]),
    ],
    conditions: conditionsOf(store, one, query),
    reads: { who: readsWho, person: readsPersons(query, [one]) },
  });
  const rows = await store.rows(
    breakdown === undefined
      ? `SELECT NULL AS shown, ${dialect.wallText("bucket")} AS at, ${output} AS amount FROM (${found}) AS f
         GROUP BY bucket ORDER BY bucket`
      : byValueSql(dialect, { found, output, limit: breakdownLimit(query) }),
  );
  return resultsOf(series, breakdown !== undefined, rows as [string | null, string, number | bigint][]);
}

/** The values with most events, each for itself, and the others together. */
function byValueSql(
  dialect: Dialect,
  { found, output, limit }: { found: string; output: string; limit: number },
): string {
  const shown = `CASE WHEN place <= ${limit} THEN f.value ELSE ${dialect.text(otherValues)} END`;
  const ranked = (counted: string, count: string) =>
    `ranked AS (SELECT value, row_number() OVER (ORDER BY ${count} DESC, value) AS place FROM ${counted} GROUP BY value)`;
  const at = dialect.wallText("bucket");
  // Counts of events can be added up, so the events need not be looked at twice.
  if (output === countOfEvents) {
    return `WITH counted ${dialect.madeOnce} (
       SELECT value, bucket, count(*) AS times FROM (${found}) AS found GROUP BY value, bucket
     ), ${ranked("counted", "sum(times)")}
     SELECT ${shown} AS shown, ${at} AS at, sum(f.times)::DOUBLE AS amount
     FROM counted f JOIN ranked r ON f.value IS NOT DISTINCT FROM r.value GROUP BY ALL ORDER BY ALL`;
  }
  return `WITH found ${dialect.madeOnce} (${found}), ${ranked("found", "count(*)")}
     SELECT ${shown} AS shown, ${at} AS at, ${output} AS amount
     FROM found f JOIN ranked r ON f.value IS NOT DISTINCT FROM r.value GROUP BY ALL ORDER BY ALL`;
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

interface Aggregate {
  input?: string;
  output: string;
  readsWho?: boolean;
}

const countOfEvents = "count(*)";

/** What is added up: SQL for one event, and for a bucket of them. */
function aggregateOf(store: EventSql, one: JsonObject): Aggregate {
  const { dialect, eventProperties } = store;
  const math = String(one.math ?? "total");
  if (math === "total") return { output: countOfEvents };
  if (math === "dau") return { output: "count(DISTINCT who)", readsWho: true };
  if (math === "unique_session")
    return { input: textAt(dialect, eventProperties, "$session_id"), output: "count(DISTINCT measured)" };
  const property = one.math_property;
  const summary = summaryOf(dialect, math);
  if (summary === undefined || typeof property !== "string") {
    throw new UnknownQuery(`The math ${JSON.stringify(math)} cannot be computed.`);
  }
  return {
    input: dialect.number(roughTextAt(dialect, eventProperties, property)),
    output: `coalesce(${summary}, 0)`,
  };
}

const summaries = ["sum", "avg", "min", "max"];
const quantiles: Record<string, number> = { median: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 };

function summaryOf(dialect: Dialect, math: string): string | undefined {
  if (summaries.includes(math)) return `${math}(measured)`;
  const level = quantiles[math];
  return level === undefined ? undefined : dialect.quantile(level, "measured");
}

/** SQL for the value that events are told apart by. */
export function breakdownOf(store: EventSql, query: JsonObject): string | undefined {
  const filter = isJsonObject(query.breakdownFilter) ? query.breakdownFilter : {};
  const [first] = objectsIn(filter.breakdowns);
  const property = first?.property ?? filter.breakdown;
  const type = first?.type ?? filter.breakdown_type ?? "event";
  if (property === undefined || property === null) return undefined;
  if (typeof property !== "string") throw new UnknownQuery("A breakdown is by one property.");
  return textAt(store.dialect, propertyColumn(store, type), property);
}

/** The filters of a series; `fixedProperties` are those that PostHog's interface does not show. */
function filtersOf(one: JsonObject, query: JsonObject): JsonObject[] {
  return [one.properties, one.fixedProperties, query.properties].flatMap(filtersIn);
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
