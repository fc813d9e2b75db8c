/** The SQL of DuckDB, and queries on one of its connections. */

import type { DuckDBConnection } from "@duckdb/node-api";
import { eventColumns } from "../columns.ts";
import {
  type EventSql,
  type PropertyLocation,
  type PropertySql,
  type SqlDialect,
  sentWithEvents,
} from "../sql-dialect.ts";
import { quoted } from "../sql-text.ts";
import { inTransaction } from "./database.ts";
import { walkOrdered } from "./ordered-funnel.ts";
import { streamedRows } from "./row-stream.ts";

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
    const parameter = `$${values.push(typeof value === "number" ? BigInt(value) : value)}`;
    return typeof value === "number" ? `${parameter}::BIGINT` : parameter;
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
  ofTriple: (triple, position) => `${triple}.${"abc"[position - 1]}`,
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
