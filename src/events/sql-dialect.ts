/**
 * Differences between the SQL of event stores. Queries are written once, over a table `events` with the same column
 * names in each.
 */

import type { DuckDBValue } from "@duckdb/node-api";
import { type EventColumnName, eventColumns } from "./columns.ts";
import { quoted } from "./sql-text.ts";

/** What conditions on properties are written with. */
export type PropertySql = Pick<EventSql, "dialect" | "eventProperties">;

/** Microseconds since the previous step, for each person who reached the step. */
export type StepTimes = number[];

/** Times per step by breakdown value; null if the value is absent or there is no breakdown. */
export type FunnelTimes = Map<string | null, StepTimes[]>;

export interface OrderedSteps {
  /** At most 30. */
  count: number;
  windowMicros: number;
  /** Whether there is a breakdown. */
  hasValues: boolean;
}

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

export const intervals = ["hour", "day", "week", "month"] as const;
export type Interval = (typeof intervals)[number];

/** First days of the week by PostHog's numbers: Sunday and Monday. */
export const weekStartDays = [0, 1] as const;
export type WeekStartDay = (typeof weekStartDays)[number];

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
  ofTriple(triple: string, position: 1 | 2 | 3): string;
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
