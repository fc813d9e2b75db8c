/**
 * Shared parts of insights: request, range, and SQL for the events. Days are in the project's time zone. Source of the
 * queries: contract, management-api 5.12.
 */

import type { WebGoal } from "../../accounts/project-settings.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { dayMs } from "../../lib/time.ts";
import { type OffsetPeriod, offsetsBetween, wallTimeAt } from "../../lib/time-zone.ts";
import { eventFilterSql, isAboutPerson, UnknownQueryError } from "../event-filters.ts";
import {
  type EventSql,
  type Interval,
  intervals,
  type PropertySql,
  type SqlDialect,
  type WeekStartDay,
  weekStartDays,
} from "../sql-dialect.ts";
import { getRange, type Range } from "./trend-range.ts";

/** A list, depending on the kind of query; an object for a funnel's times, and for web analytics, with `results`. */
export type InsightResults = JsonObject[] | JsonObject[][] | JsonObject;

export interface TrendsRequest {
  projectId: number;
  /** `TrendsQuery`, or a node that wraps one as its `source`. */
  query: JsonObject;
  /** IANA name. */
  timezone: string;
  /** Milliseconds since 1970. */
  now: number;
  /** First day of the project's weeks; `weekStartDefault` if absent or null. */
  weekStartDay?: WeekStartDay | null;
  /** Settings of web analytics. */
  web?: WebSettings;
}

export interface WebSettings {
  goals: readonly WebGoal[];
  /** Whether `$screen` counts as a page view. */
  countsScreens: boolean;
}

/** The interval of a query; default: day. @throws {UnknownQueryError} */
export function intervalIn(query: JsonObject): Interval {
  const interval = intervals.find((name) => name === (query.interval ?? "day"));
  if (interval !== undefined) return interval;
  throw new UnknownQueryError(`Unknown interval ${JSON.stringify(query.interval)}.`);
}

/** The request with the query's `weekStartDay`, if any, instead of the project's. @throws {UnknownQueryError} */
export function withOwnWeeks(
  request: TrendsRequest,
  { weekStartDay: written = null }: JsonObject,
): TrendsRequest {
  if (written === null) return request;
  const weekStartDay = weekStartDays.find((day) => day === written);
  if (weekStartDay !== undefined) return { ...request, weekStartDay };
  throw new UnknownQueryError(
    `The weekStartDay ${JSON.stringify(written)} is not valid: weeks start on 0 (Sunday) or 1 (Monday).`,
  );
}

/** The range of a query; of any length if it has no interval. @throws {UnknownQueryError} */
export async function rangeIn(
  store: EventSql,
  request: TrendsRequest,
  query: JsonObject,
  interval: Interval | null,
): Promise<Range> {
  const dateRange = isJsonObject(query.dateRange) ? query.dateRange : {};
  const earliest = dateRange.date_from === "all" ? await earliestEvent(store, request) : undefined;
  const range = getRange(dateRange, interval, { ...request, earliest });
  if (range === undefined) throw new UnknownQueryError("Invalid date range.");
  return range;
}

/** Conditions on an event `e` and its person `p` that select the events of a series. @throws {UnknownQueryError} */
export function getConditions(store: PropertySql, node: JsonObject, query: JsonObject): string[] {
  const event = typeof node.event === "string" && node.event !== "" ? node.event : null;
  return [
    event === null ? "true" : `e.event = ${store.dialect.text(event)}`,
    ...getFilters(node, query).map((filter) => eventFilterSql(store, filter)),
  ];
}

/** Display name of the events of a series. */
export function eventName(node: JsonObject): string {
  return typeof node.event === "string" && node.event !== "" ? node.event : "All events";
}

/**
 * SQL for events with `who` (the person) and `local_time`.
 * @param range undefined: all events up to now
 * @param more further columns, and conditions joined by AND, over an event `e` and its person `p`
 */
export function eventSource(
  dialect: SqlDialect,
  { projectId, ...clock }: Pick<TrendsRequest, "projectId" | "timezone" | "now">,
  range: Range | undefined,
  more: { columns: readonly string[]; conditions: readonly string[]; reads?: PersonDeps },
): string {
  const { local, within } = rangeSql(dialect, range, clock);
  const { who = true, person = true } = more.reads ?? {};
  const columns = [...(who ? [`${dialect.who} AS who`] : []), `${local} AS local_time`, ...more.columns];
  const joins = person ? dialect.personOfEvent(projectId) : who ? dialect.ownerOfEvent(projectId) : "";
  return `SELECT ${columns.join(", ")} FROM events e ${joins}
       WHERE ${[`e.project_id = ${projectId}`, ...within, ...more.conditions].join(" AND ")}`;
}

/** Person data that a query reads; unnecessary joins are omitted. */
export interface PersonDeps {
  /** The person's identity. */
  who?: boolean;
  /** The person `p` with properties. */
  person?: boolean;
}

/** Whether a query reads properties of persons. */
export function readsPersons(query: JsonObject, series: readonly JsonObject[]): boolean {
  const isOfPerson = ({ type }: JsonObject) => type === "person";
  const filter = isJsonObject(query.breakdownFilter) ? query.breakdownFilter : {};
  return (
    series.some((node) => getFilters(node, query).some(isAboutPerson)) ||
    [...objectsIn(filter.breakdowns), { type: filter.breakdown_type ?? null }].some(isOfPerson)
  );
}

/** Longer ranges have too many offset changes for literal SQL. */
const writtenRangeMs = 20 * 366 * dayMs;
/** From then on, offsets change only at whole minutes. */
const writtenFromMs = Date.UTC(1974);

const wallMs = (text: string) => Date.parse(`${text.replace(" ", "T")}Z`);

/** SQL for the wall time of an event `e`, and for whether it is in the range. */
export function rangeSql(
  dialect: SqlDialect,
  range: Range | undefined,
  clock: { timezone: string; now: number },
): { local: string; within: string[] } {
  if (range === undefined) return { local: localAtAnyTime(dialect, clock), within: [] };
  const { timezone } = clock;
  // In whole seconds, like the strings.
  const fromMs = wallMs(range.from);
  const toMs = wallMs(range.to);
  const between = (from: number, to: number) => betweenInstants(dialect, from, to);
  const wallWithin = (local: string) => [
    // A day wider on both sides, so that row groups are skipped before wall times are computed.
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
  // If the offset does not change near the range's ends, they are instants.
  const first = periods[0]!;
  const last = periods.at(-1)!;
  const lastChange = periods.at(-2)?.untilMs ?? Number.NEGATIVE_INFINITY;
  const isClear = first.untilMs > fromMs + dayMs && lastChange < toMs - dayMs;
  return {
    local,
    within: isClear ? between(fromMs - first.offsetMs, toMs - last.offsetMs) : wallWithin(local),
  };
}

function betweenInstants(dialect: SqlDialect, fromMs: number, toMs: number): string[] {
  const time = dialect.time("e");
  return [`${time} >= ${instant(dialect, fromMs)}`, `${time} < ${instant(dialect, toMs)}`];
}

const instant = (dialect: SqlDialect, ms: number) => dialect.timestamp(ms * 1_000);

/** SQL for wall time by offset periods; ten times faster than a zone conversion per event. */
function localIn(dialect: SqlDialect, periods: readonly OffsetPeriod[]): string {
  const micros = ({ offsetMs }: OffsetPeriod) => `${offsetMs * 1_000}`;
  // Newest first: it matches most events.
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
 * Like `localIn`, for events of any time. The last twenty years use the runtime's time zone data, so that all queries
 * agree on days: the stores have other versions, and ClickHouse is a day off if a zone has crossed the date line.
 */
function localAtAnyTime(dialect: SqlDialect, { timezone, now }: { timezone: string; now: number }): string {
  const toMs = now + 366 * dayMs;
  const fromMs = Math.max(writtenFromMs, toMs - writtenRangeMs);
  const isWritten = betweenInstants(dialect, fromMs, toMs).join(" AND ");
  const local = localIn(dialect, offsetsBetween(fromMs, toMs, timezone));
  return `CASE WHEN ${isWritten} THEN ${local} ELSE ${dialect.wallTime("e", timezone)} END`;
}

/** Wall time of a project's first event; now if it has none. */
async function earliestEvent(store: EventSql, { projectId, timezone, now }: TrendsRequest): Promise<number> {
  const { dialect } = store;
  const [row] = await store.rows(
    `SELECT count(*), ${dialect.micros(`min(${dialect.time("e")})`)} FROM events e WHERE e.project_id = ${projectId}`,
  );
  const earliest = Number(row![0]) === 0 ? now : Math.floor(Number(row![1]) / 1_000);
  return wallTimeAt(earliest, timezone);
}

/** The filters of a series; PostHog's UI hides `fixedProperties`. */
function getFilters(node: JsonObject, query: JsonObject): JsonObject[] {
  return [node.properties, node.fixedProperties, query.properties].flatMap(filtersIn);
}

/** Filters are a list, or groups of lists joined by AND. @throws {UnknownQueryError} */
export function filtersIn(properties: Json | undefined): JsonObject[] {
  if (Array.isArray(properties)) return objectsIn(properties);
  if (!isJsonObject(properties)) return [];
  if (properties.type === "OR") throw new UnknownQueryError("Filters can be joined by AND only.");
  return objectsIn(properties.values).flatMap((value) => ("values" in value ? filtersIn(value) : [value]));
}

/** The objects in a list sent by a client; other items are ignored. */
export function objectsIn(list: Json | undefined): JsonObject[] {
  return Array.isArray(list) ? list.filter(isJsonObject) : [];
}

/** Converts an entity of retention to the form of a series. */
export function getEntity(entity: Json | undefined): JsonObject {
  if (entity === undefined || entity === null) return {};
  if (!isJsonObject(entity) || (entity.type ?? "events") !== "events") {
    throw new UnknownQueryError("Retention supports events only.");
  }
  return { ...entity, event: entity.event ?? entity.id ?? null };
}
