/**
 * Differences between the SQL of event stores. Queries are written once, over a table `events` with the same column
 * names in each.
 */

import type { DuckDBConnection, DuckDBValue } from "@duckdb/node-api";
import { type EventColumnName, eventColumns } from "./columns.ts";
import { inTransaction } from "./duckdb/database.ts";
import { type FunnelTimes, type OrderedSteps, walkOrdered } from "./insights/ordered-funnel.ts";
import type { Interval, WeekStartDay } from "./insights/trend-range.ts";
import { streamedRows } from "./query/row-stream.ts";
import { quoted } from "./sql-text.ts";

/** What conditions on properties are written with. */
export type PropertySql = Pick<EventSql, "dialect" | "eventProperties">;

/** Queries the event store, independently of the engine. */
export interface EventSql {
  readonly dialect: SqlDialect;
  /** Location of the properties of events `e`. */
  readonly eventProperties: PropertyLocation;
  /** @param values of parameters added by `SqlDialect.bind` */
  rows(sql: string, values?: readonly DuckDBValue[]): Promise<unknown[][]>;
  /** Like `rows`, in batches. */
  portions(sql: string): AsyncIterable<unknown[][]>;
  /** Whether a project has events so large that few may be read at a time. */
  hasLongEvents(projectId: number): Promise<boolean>;
  /**
   * The name of a table with the rows of a query, computed once and cached for a minute; if absent, callers repeat the
   * query. @param key identifies the query and the state of the data
   */
  cachedTable?(key: string, sql: string): Promise<string>;
  /** Evaluates an ordered funnel; if absent, SQL does. */
  walkOrdered?(found: string, steps: OrderedSteps): Promise<FunnelTimes>;
  /** Runs several queries on one snapshot, if supported; otherwise retention may delete events in between. */
  atOneTime<Result>(ask: () => Promise<Result>): Promise<Result>;
}

/**
 * Location of properties: a column with JSON by `canonicalJson` (persons), or JSON as received (events), some of which
 * is also in separate columns.
 */
export type PropertyLocation = string | SentPropertiesLocation;

export interface SentPropertiesLocation {
  json: string;
  /** A column equal to `memberText` of the JSON in every row. */
  findColumn(name: string): string | undefined;
}

/**
 * A property as a string: strings without quotes, others as JSON; null if absent or null. Equal numbers are equal
 * strings: `12.0`, as Python sends it, and `1.2e1` become `12`.
 */
export function stringAt(dialect: SqlDialect, location: PropertyLocation, name: string): string {
  if (typeof location === "string") return dialect.sentText(location, name);
  return location.findColumn(name) ?? dialect.memberText(location.json, name);
}

/** Faster than `stringAt`, but numbers of events may end with `.0`. */
export function looseStringAt(dialect: SqlDialect, location: PropertyLocation, name: string): string {
  if (typeof location === "string") return dialect.sentText(location, name);
  return location.findColumn(name) ?? dialect.sentText(location.json, name);
}

/** The JSON that contains the properties. */
export const toJson = (location: PropertyLocation): string =>
  typeof location === "string" ? location : location.json;

/** Columns of events `e` without loss of precision; nulls are replaced as readers see them. */
export function publicColumns(dialect: SqlDialect, names: readonly EventColumnName[]): string {
  return names.map((name) => publicColumn(name, dialect.exact("e", name))).join(", ");
}

/** @param value SQL of the column */
export function publicColumn(name: EventColumnName, value: string): string {
  const { forNull } = eventColumns[name];
  return forNull === undefined ? value : `coalesce(${value}, ${quoted(forNull)})`;
}

/** SQL fragments; all arguments except values are SQL. */
export interface SqlDialect {
  /** A string literal. */
  text(value: string): string;
  /** A value as a parameter, or as a literal if statements take no parameters. */
  bind(values: DuckDBValue[], value: string | number): string;
  /** Whether a JSON object has a member, possibly null. */
  hasMember(json: string, name: string): string;
  /** The JSON of a member; null if absent. */
  memberJson(json: string, name: string): string;
  /** A member as a string, as defined by `stringAt`. */
  memberText(json: string, name: string): string;
  /** `memberText` of several members: faster together, if one query reads all of them. */
  memberTexts(json: string, names: readonly string[]): string[];
  /** Like `memberText`, but numbers sent with a fraction or an exponent may end with `.0`. */
  sentText(json: string, name: string): string;
  /** A number; null if invalid or not finite, because sums would become useless. */
  number(text: string): string;
  contains(text: string, part: string): string;
  lower(text: string): string;
  /** Whether a pattern matches; its dot matches no line break. */
  matches(text: string, pattern: string): string;
  /** The time of an event, and a value to compare it with. */
  time(event: string): string;
  timestamp(micros: number | string): string;
  /** Such a time as epoch microseconds. */
  micros(time: string): string;
  /** A column of events without loss, in the form defined by `EventColumnKind`. */
  exact(event: string, column: EventColumnName): string;
  /** Wall time of an event in a time zone. */
  wallTime(event: string, timezone: string): string;
  /** Wall time at a fixed offset from UTC in microseconds. */
  wallTimeAhead(event: string, micros: string): string;
  /** `2026-11-21 00:00:00` as wall time. */
  wallMoment(text: string): string;
  /** The start of the interval that contains a wall time. */
  startOf(interval: Interval, wallTime: string, weekStartDay: WeekStartDay): string;
  /** `2026-11-21 00:00:00` */
  wallText(wallTime: string): string;
  /** `2026-11-21` */
  dayText(wallTime: string): string;
  /** Exact, with linear interpolation. */
  quantile(level: number, value: string): string;
  /** The value in the row with the smallest `by`; null if that value is null. Rows without `by` are skipped. */
  valueAtLeast(value: string, by: string): string;
  /** The text before the first separator. */
  before(text: string, separator: string): string;
  /** A null string. */
  readonly nullText: string;
  /** A table of pairs of strings, with the columns `name` and `value`. */
  pairs(rows: readonly (readonly [string, string])[]): string;
  /** A number, as a string, that depends on every byte of the strings of all rows but not on their order. */
  sumOfBytes(text: string): string;
  /** The value as a nullable type, for windows without a row. */
  orNull(value: string): string;
  /** Whether a window's range may span any two numbers. */
  readonly hasLongRanges: boolean;
  /** Starts a CTE that is used several times. */
  readonly asMaterialized: string;
  /** A tuple of three integers, and its maximum as a window aggregate; ordered by the first difference. */
  triple(first: string, second: string, third: string): string;
  /** The nth member of such a tuple, from 1. */
  ofTriple(triple: string, location: 1 | 2 | 3): string;
  uuid(text: string): string;
  /** The right side of `IN`. */
  uuids(values: readonly string[]): string;
  /** Joins the person `p` and the owner `o` of the distinct ID of event `e`, if any. */
  personOfEvent(projectId: number): string;
  /** Joins only the owner `o`. */
  ownerOfEvent(projectId: number): string;
  /** Identifies the person of an event `e` with such an owner; only for comparisons. */
  readonly who: string;
  /** Tables of a project's persons and distinct ID owners. */
  persons(projectId: number): string;
  owners(projectId: number): string;
  /** A person's hash position in a rollout, 0 to 1, by SHA-1; see `bucketing.ts`. */
  hashPosition(text: string): string;
}

/** Properties of events `e`, without separate columns. */
export const sentWithEvents: PropertyLocation = { json: "e.properties", findColumn: () => undefined };

/** Queries on one connection to DuckDB. */
export function duckdbSql(
  connection: DuckDBConnection,
  eventProperties: PropertyLocation = sentWithEvents,
  cachedTable?: EventSql["cachedTable"],
): EventSql {
  return {
    dialect: duckdb,
    eventProperties,
    cachedTable,
    rows: async (sql, values = []) =>
      (await connection.runAndReadAll(sql, values.length === 0 ? undefined : [...values])).getRows(),
    async *portions(sql) {
      const { chunks } = await streamedRows(connection, sql);
      for await (const chunk of chunks) yield chunk.getRows();
    },
    async hasLongEvents(projectId) {
      // Long events are followed by fillers, which the query finds without reading events.
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
const positions = "1152921504606846976.0";

/** Several members as a list of strings, in DuckDB; parses the JSON only once. */
export function stringsAt(json: string, names: readonly string[]): string {
  // Only numbers end like this in JSON.
  return `list_transform(json_extract(${json}, [${names.map(pointer).join(", ")}]), lambda j:
    CASE WHEN suffix(j::VARCHAR, '.0') THEN left(j::VARCHAR, -2) ELSE json_extract_string(j, '$') END)`;
}

/** `/name`, a JSON pointer. */
const pointer = (name: string) => quoted(`/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`);

const sentJson = (json: string, name: string) => `json_extract_string(${json}, ${pointer(name)})`;

const ownerOfEvent = `
  LEFT JOIN person_distinct_id o ON o.project_id = e.project_id AND o.distinct_id = e.distinct_id`;

const duckdb: SqlDialect = {
  text: quoted,
  bind: (values, value) => {
    const location = `$${values.push(typeof value === "number" ? BigInt(value) : value)}`;
    return typeof value === "number" ? `${location}::BIGINT` : location;
  },
  hasMember: (json, name) => `json_extract(${json}, ${pointer(name)}) IS NOT NULL`,
  memberJson: (json, name) => `json_extract(${json}, ${pointer(name)})::VARCHAR`,
  memberText(json, name) {
    const text = sentJson(json, name);
    const isNumber = `json_type(${json}, ${pointer(name)}) = 'DOUBLE'`;
    return `CASE WHEN suffix(${text}, '.0') AND ${isNumber} THEN left(${text}, -2) ELSE ${text} END`;
  },
  memberTexts(json, names) {
    // The list is a common subexpression, which DuckDB computes once.
    const list = stringsAt(json, names);
    return names.map((_, index) => `(${list})[${index + 1}]`);
  },
  sentText: sentJson,
  number(text) {
    // DuckDB parses 1_000 as a thousand.
    const number = `try_cast(replace(${text}, '_', 'x') AS DOUBLE)`;
    return `CASE WHEN isfinite(${number}) THEN ${number} END`;
  },
  contains: (text, part) => `contains(${text}, ${quoted(part)})`,
  lower: (text) => `lower(${text})`,
  matches: (text, pattern) => `regexp_matches(${text}, ${quoted(pattern)})`,
  time: (event) => `${event}.timestamp`,
  timestamp: (micros) => `make_timestamp(${micros})`,
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
  before: (text, separator) => `split_part(${text}, ${quoted(separator)}, 1)`,
  nullText: "NULL::VARCHAR",
  pairs: (rows) =>
    `(SELECT * FROM (VALUES ${rows.map((row) => `(${row.map(quoted).join(", ")})`).join(", ")}) AS t(name, value))`,
  sumOfBytes: (text) => `sum(md5_number_lower(${text}) % 4294967296)::VARCHAR`,
  orNull: (value) => value,
  hasLongRanges: true,
  asMaterialized: "AS MATERIALIZED",
  triple: (first, second, third) => `{'a': ${first}, 'b': ${second}, 'c': ${third}}`,
  ofTriple: (triple, location) => `${triple}.${"abc"[location - 1]}`,
  uuid: (text) => `${text}::UUID`,
  // One string: DuckDB parses it in a quarter of the time of a list of strings.
  uuids: (values) => `(SELECT unnest(string_split(${quoted(values.join(","))}, ','))::UUID)`,
  ownerOfEvent: () => ownerOfEvent,
  // 16-byte values compare faster than strings: IDs without a person are represented by a hash.
  who: "coalesce(o.person_uuid, md5(e.distinct_id)::UUID)",
  personOfEvent: () => `${ownerOfEvent}
  LEFT JOIN person p ON p.project_id = o.project_id AND p.uuid = o.person_uuid`,
  persons: (projectId) => `(SELECT * FROM person WHERE project_id = ${projectId})`,
  owners: (projectId) => `(SELECT * FROM person_distinct_id WHERE project_id = ${projectId})`,
  hashPosition: (text) => `('0x' || substr(sha1(${text}), 1, 15))::UBIGINT::DOUBLE / ${positions}`,
};

const propertyOfView = (json: string, name: string) => `prop(${json}, ${quoted(name)})`;

/** SQL over the documented views `events` and `persons`, for statements that users read and change. */
export const viewSql: PropertySql = {
  dialect: {
    ...duckdb,
    memberText: propertyOfView,
    sentText: propertyOfView,
    number: (text) => `try_cast(${text} AS DOUBLE)`,
  },
  eventProperties: sentWithEvents,
};
