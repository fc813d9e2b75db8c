/**
 * What the engines that keep events write differently in SQL. The questions themselves are written once, over a table
 * `events` whose columns have the same names in each.
 */

import type { DuckDBConnection, DuckDBValue } from "@duckdb/node-api";
import { type EventColumnName, eventColumns } from "./columns.ts";
import { inTransaction } from "./duckdb/database.ts";
import { type FunnelTimes, type OrderedSteps, walkOrdered } from "./insights/ordered-funnel.ts";
import type { Interval, WeekStartDay } from "./insights/trend-range.ts";
import { streamedRows } from "./query/streamed-rows.ts";
import { quoted } from "./sql-text.ts";

/** Asks the event store, whichever engine keeps it. */
export interface EventSql {
  readonly dialect: Dialect;
  /** Where the properties of events `e` are. */
  readonly eventProperties: PropertyPlace;
  /** @param values of the parameters that `Dialect.bind` has put into the statement. */
  rows(sql: string, values?: readonly DuckDBValue[]): Promise<unknown[][]>;
  /** The same in portions. */
  portions(sql: string): AsyncIterable<unknown[][]>;
  /** Whether a project has events that must not be read many at once. */
  hasLongEvents(projectId: number): Promise<boolean>;
  /** Walks through an ordered funnel; left out: the store computes it by itself. */
  walkOrdered?(found: string, steps: OrderedSteps): Promise<FunnelTimes>;
  /** Asks several questions about what is there at one moment, where the store can; else events may go by age between. */
  atOneTime<Result>(ask: () => Promise<Result>): Promise<Result>;
}

/**
 * Where properties are: a column of JSON as `canonicalJson` writes it, those of persons; or as it was sent, those of events,
 * some of them beside it in columns of their own.
 */
export type PropertyPlace = string | SentPropertiesPlace;

interface SentPropertiesPlace {
  json: string;
  /** A column that holds for every row what `memberText` gives for the JSON. */
  columnOf(name: string): string | undefined;
}

/**
 * Text of a property: strings without quotes, everything else as JSON; null when absent or null.
 *
 * Equal numbers have equal texts: `12.0`, as Python sends it, and `1.2e1` have the text `12`.
 */
export function textAt(dialect: Dialect, place: PropertyPlace, name: string): string {
  if (typeof place === "string") return dialect.sentText(place, name);
  return place.columnOf(name) ?? dialect.memberText(place.json, name);
}

/** The same, quicker, for whoever does not look at the texts of numbers: some of events may end with `.0`. */
export function roughTextAt(dialect: Dialect, place: PropertyPlace, name: string): string {
  if (typeof place === "string") return dialect.sentText(place, name);
  return place.columnOf(name) ?? dialect.sentText(place.json, name);
}

/** The JSON that properties are in. */
export const jsonOf = (place: PropertyPlace): string => (typeof place === "string" ? place : place.json);

/** Columns of events `e`, exactly as they are read; null as readers see it. */
export function shownColumns(dialect: Dialect, names: readonly EventColumnName[]): string {
  return names.map((name) => shownColumn(name, dialect.exact("e", name))).join(", ");
}

/** @param value SQL of the column */
export function shownColumn(name: EventColumnName, value: string): string {
  const { forNull } = eventColumns[name];
  return forNull === undefined ? value : `coalesce(${value}, ${quoted(forNull)})`;
}

/** Pieces of SQL; every argument but values is SQL itself. */
export interface Dialect {
  /** A string literal. */
  text(value: string): string;
  /** A value as a parameter or, where statements take none, as a literal. */
  bind(values: DuckDBValue[], value: string | number): string;
  /** Whether a JSON object has a member, which may be null. */
  hasMember(json: string, name: string): string;
  /** The JSON text of a member; null when absent. */
  memberJson(json: string, name: string): string;
  /** Text of a member, as `textAt`. */
  memberText(json: string, name: string): string;
  /** The same; numbers that are written with a fraction or an exponent may end with `.0`. */
  sentText(json: string, name: string): string;
  /** A number, or null when the text is none: neither are those that are not finite, which sums would be lost in. */
  number(text: string): string;
  contains(text: string, part: string): string;
  lower(text: string): string;
  /** Whether a pattern is found; its dot matches no line break. */
  matches(text: string, pattern: string): string;
  /** When an event happened, and a moment to compare that with. */
  time(event: string): string;
  moment(micros: number | string): string;
  /** Such a time as epoch microseconds. */
  micros(time: string): string;
  /** What a column of events holds, as `EventColumnKind` says it is read. */
  exact(event: string, column: EventColumnName): string;
  /** Wall time of an event in a zone. */
  wallTime(event: string, timezone: string): string;
  /** The same where the clock is so many microseconds ahead of UTC. */
  wallTimeAhead(event: string, micros: string): string;
  /** `2026-11-21 00:00:00` as wall time. */
  wallMoment(text: string): string;
  /** The start of the interval that contains a wall time. */
  startOf(interval: Interval, wallTime: string, weekStartDay: WeekStartDay): string;
  /** `2026-11-21 00:00:00` */
  wallText(wallTime: string): string;
  /** `2026-11-21` */
  dayText(wallTime: string): string;
  /** Exact, between two values in proportion. */
  quantile(level: number, value: string): string;
  /** The value in the row where another one is smallest, null when that row has none. */
  valueAtLeast(value: string, by: string): string;
  /** A number, as text, that depends on every byte of the texts of all rows, in whatever order. */
  sumOfBytes(text: string): string;
  /** The same value in a type that has null, which windows give where there is no row. */
  orNull(value: string): string;
  /** Whether a window's range may be as long as two numbers can be apart. */
  readonly hasLongRanges: boolean;
  /** Begins a named part of a statement that is used several times. */
  readonly madeOnce: string;
  /** A tuple of three whole numbers that is ordered by the first difference, and its greatest in an aggregate's window. */
  triple(first: string, second: string, third: string): string;
  /** The nth member of such a tuple, from 1. */
  ofTriple(triple: string, place: 1 | 2 | 3): string;
  uuid(text: string): string;
  /** What is behind `IN`. */
  uuids(values: readonly string[]): string;
  /** Joins the person `p` and the owner `o` of the distinct id of an event `e` of a project, if any. */
  personOfEvent(projectId: number): string;
  /** The same without the person `p`. */
  ownerOfEvent(projectId: number): string;
  /** Who an event `e` with such an owner is of: to be compared only. */
  readonly who: string;
  /** Tables of the persons and of the owners of distinct ids of a project, with no row of others. */
  persons(projectId: number): string;
  owners(projectId: number): string;
  /** A person's place in a rollout, 0 to 1, by SHA-1 of a text; `bucketing.ts` says how. */
  hashPlace(text: string): string;
}

/** The properties of events `e`, none of them in a column of its own. */
export const sentWithEvents: PropertyPlace = { json: "e.properties", columnOf: () => undefined };

/** Questions over one connection to DuckDB. */
export function duckdbSql(
  connection: DuckDBConnection,
  eventProperties: PropertyPlace = sentWithEvents,
): EventSql {
  return {
    dialect: duckdb,
    eventProperties,
    rows: async (sql, values = []) =>
      (await connection.runAndReadAll(sql, values.length === 0 ? undefined : [...values])).getRows(),
    async *portions(sql) {
      const { chunks } = await streamedRows(connection, sql);
      for await (const chunk of chunks) yield chunk.getRows();
    },
    async hasLongEvents(projectId) {
      // They are followed by fillers, which is seen without reading any.
      const found = await connection.runAndReadAll(
        `SELECT 1 FROM events WHERE project_id = ${-projectId} LIMIT 1`,
      );
      return found.currentRowCount > 0;
    },
    walkOrdered: (found, steps) => walkOrdered(connection, found, steps),
    atOneTime: (ask) => inTransaction(connection, ask),
  };
}

/** 2^60, as in `bucketing.ts`. */
const places = "1152921504606846976.0";

/** The texts of several members as a list, in DuckDB; the JSON is read once for all of them. */
export function textsAt(json: string, names: readonly string[]): string {
  // Of JSON texts only numbers end so.
  return `list_transform(json_extract(${json}, [${names.map(pointer).join(", ")}]), lambda j:
    CASE WHEN suffix(j::VARCHAR, '.0') THEN left(j::VARCHAR, -2) ELSE json_extract_string(j, '$') END)`;
}

/** `/name`, a JSON pointer. */
const pointer = (name: string) => quoted(`/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);

const sentText = (json: string, name: string) => `json_extract_string(${json}, ${pointer(name)})`;

const ownerOfEvent = `
  LEFT JOIN person_distinct_id o ON o.project_id = e.project_id AND o.distinct_id = e.distinct_id`;

const duckdb: Dialect = {
  text: quoted,
  bind: (values, value) => {
    const place = `$${values.push(typeof value === "number" ? BigInt(value) : value)}`;
    return typeof value === "number" ? `${place}::BIGINT` : place;
  },
  hasMember: (json, name) => `json_extract(${json}, ${pointer(name)}) IS NOT NULL`,
  memberJson: (json, name) => `json_extract(${json}, ${pointer(name)})::VARCHAR`,
  memberText(json, name) {
    const text = sentText(json, name);
    const isNumber = `json_type(${json}, ${pointer(name)}) = 'DOUBLE'`;
    return `CASE WHEN suffix(${text}, '.0') AND ${isNumber} THEN left(${text}, -2) ELSE ${text} END`;
  },
  sentText,
  number(text) {
    // DuckDB reads 1_000 as a thousand.
    const number = `try_cast(replace(${text}, '_', 'x') AS DOUBLE)`;
    return `CASE WHEN isfinite(${number}) THEN ${number} END`;
  },
  contains: (text, part) => `contains(${text}, ${quoted(part)})`,
  lower: (text) => `lower(${text})`,
  matches: (text, pattern) => `regexp_matches(${text}, ${quoted(pattern)})`,
  time: (event) => `${event}.timestamp`,
  moment: (micros) => `make_timestamp(${micros})`,
  micros: (time) => `epoch_us(${time})`,
  exact(event, column) {
    const { kind } = eventColumns[column];
    const value = `${event}.${column}`;
    if (kind === "instant") return `epoch_us(${value})`;
    return kind === "uuid" || kind === "json" ? `${value}::VARCHAR` : value;
  },
  wallTime: (event, timezone) => `timezone(${quoted(timezone)}, timezone('UTC', ${event}.timestamp))`,
  wallTimeAhead: (event, micros) => `make_timestamp(epoch_us(${event}.timestamp) + ${micros})`,
  wallMoment: (text) => `TIMESTAMP ${quoted(text)}`,
  startOf(interval, wallTime, weekStartDay) {
    if (interval !== "week" || weekStartDay === 1) return `date_trunc('${interval}', ${wallTime})`;
    return `date_trunc('week', ${wallTime} + INTERVAL 1 DAY) - INTERVAL 1 DAY`;
  },
  wallText: (wallTime) => `strftime(${wallTime}, '%Y-%m-%d %H:%M:%S')`,
  dayText: (wallTime) => `strftime(${wallTime}, '%Y-%m-%d')`,
  quantile: (level, value) => `quantile_cont(${value}, ${level})`,
  valueAtLeast: (value, by) => `arg_min_null(${value}, ${by})`,
  sumOfBytes: (text) => `sum(md5_number_lower(${text}) % 4294967296)::VARCHAR`,
  orNull: (value) => value,
  hasLongRanges: true,
  madeOnce: "AS MATERIALIZED",
  triple: (first, second, third) => `{'a': ${first}, 'b': ${second}, 'c': ${third}}`,
  ofTriple: (triple, place) => `${triple}.${"abc"[place - 1]}`,
  uuid: (text) => `${text}::UUID`,
  // One text: DuckDB takes a quarter of the time to read it that it takes for a list of texts.
  uuids: (values) => `(SELECT unnest(string_split(${quoted(values.join(","))}, ','))::UUID)`,
  ownerOfEvent: () => ownerOfEvent,
  // Sixteen bytes are compared quicker than texts: a hash stands for ids of nobody.
  who: "coalesce(o.person_uuid, md5(e.distinct_id)::UUID)",
  personOfEvent: () => `${ownerOfEvent}
  LEFT JOIN person p ON p.project_id = o.project_id AND p.uuid = o.person_uuid`,
  persons: (projectId) => `(SELECT * FROM person WHERE project_id = ${projectId})`,
  owners: (projectId) => `(SELECT * FROM person_distinct_id WHERE project_id = ${projectId})`,
  hashPlace: (text) => `('0x' || substr(sha1(${text}), 1, 15))::UBIGINT::DOUBLE / ${places}`,
};
