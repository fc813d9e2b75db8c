/**
 * What every kind of insight shares: its request, its range, and SQL for the events it looks at. Days begin in the project's
 * time zone. Source of the queries: contract, management-api 5.12.
 */

import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { dayMs } from "../../lib/time.ts";
import { type OffsetPeriod, offsetsBetween, wallTimeAt } from "../../lib/time-zone.ts";
import { type Dialect, type EventSql, textAt } from "../dialect.ts";
import { eventFilterSql, isAboutPerson, propertyColumn, UnknownQuery } from "../event-filters.ts";
import {
  type Interval,
  intervals,
  type Range,
  rangeOf,
  type WeekStartDay,
  weekStartDays,
} from "./trend-range.ts";

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
  /** Where the project's weeks start; `weekStartDefault` when absent or null. */
  weekStartDay?: WeekStartDay | null;
}

/** The interval of a query, a day when it names none. @throws {UnknownQuery} */
export function intervalIn(query: JsonObject): Interval {
  const interval = intervals.find((name) => name === (query.interval ?? "day"));
  if (interval !== undefined) return interval;
  throw new UnknownQuery(`The interval ${JSON.stringify(query.interval)} is not known.`);
}

/** The request with the `weekStartDay` of its query instead of the project's, if it names one. @throws {UnknownQuery} */
export function withOwnWeeks(
  request: TrendsRequest,
  { weekStartDay: written = null }: JsonObject,
): TrendsRequest {
  if (written === null) return request;
  const weekStartDay = weekStartDays.find((day) => day === written);
  if (weekStartDay !== undefined) return { ...request, weekStartDay };
  throw new UnknownQuery(
    `The weekStartDay ${JSON.stringify(written)} is not valid: weeks start on 0 (Sunday) or 1 (Monday).`,
  );
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

/** The objects of a list that somebody has sent; what is none of them is passed over. */
export function objectsIn(list: Json | undefined): JsonObject[] {
  return Array.isArray(list) ? list.filter(isJsonObject) : [];
}
