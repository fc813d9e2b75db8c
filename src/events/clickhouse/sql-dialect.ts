/** ClickHouse's SQL for the event store's queries. */

import { eventColumns } from "../columns.ts";
import { type EventSql, type PropertyLocation, type SqlDialect, sentWithEvents } from "../sql-dialect.ts";
import type { ClickHouseConnection, ClickHouseRequestOptions } from "./connection.ts";

/** A string literal with backslash escapes. NUL becomes U+FFFD, as in DuckDB. */
function text(value: string): string {
  return `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\0", "\ufffd")}'`;
}

const raw = (json: string, name: string) => `JSONExtractRaw(${json}, ${text(name)})`;

function sentJson(json: string, name: string): string {
  const value = raw(json, name);
  return `if(${value} IN ('', 'null'), NULL, if(startsWith(${value}, '"'), JSONExtractString(${value}), ${value}))`;
}

const instant = (micros: string) => `fromUnixTimestamp64Micro(${micros}, 'UTC')`;

/** The latest version of each person, or of each distinct ID's owner. */
const persons = (projectId: number) =>
  `(SELECT uuid, properties, main_distinct_id FROM persons FINAL WHERE project_id = ${projectId})`;
const owners = (projectId: number) =>
  `(SELECT distinct_id, person_uuid FROM person_distinct_ids FINAL WHERE project_id = ${projectId})`;

const ownerOfEvent = (projectId: number) => `
  LEFT JOIN ${owners(projectId)} o ON o.distinct_id = e.distinct_id`;

export const clickhouse: SqlDialect = {
  text,
  // Parameters would be part of the request's URL, whose length is limited.
  bind: (_, value) => (typeof value === "number" ? String(value) : text(value)),
  hasMember: (json, name) => `coalesce(JSONHas(${json}, ${text(name)}), 0)`,
  memberJson: (json, name) => `nullIf(${raw(json, name)}, '')`,
  // ClickHouse normalizes numbers: none ends with `.0`.
  memberText: sentJson,
  memberTexts: (json, names) => names.map((name) => sentJson(json, name)),
  sentText: sentJson,
  number(value) {
    const number = `toFloat64OrNull(trimBoth(${value}))`;
    return `if(isFinite(${number}), ${number}, NULL)`;
  },
  contains: (value, part) => `position(${value}, ${text(part)}) > 0`,
  lower: (value) => `lowerUTF8(${value})`,
  matches: (value, pattern) => `match(${value}, ${text(`(?-s)${pattern}`)})`,
  time: (event) => `${event}.time`,
  timestamp: String,
  micros: (time) => time,
  exact(event, column) {
    const { kind, clickhouse: stored = column } = eventColumns[column];
    return `${event}.${stored}${kind === "uuid" ? "::VARCHAR" : ""}`;
  },
  wallTime(event, timezone) {
    const time = `${event}.time`;
    if (timezone === "UTC") return instant(time);
    const offset = `timezoneOffset(toTimeZone(${instant(time)}, ${text(timezone)}))`;
    return instant(`${time} + ${offset} * 1000000`);
  },
  wallTimeAhead: (event, micros) => instant(`toInt64(${event}.time + ${micros})`),
  wallMoment: (value) => `toDateTime64(${text(value)}, 6, 'UTC')`,
  startOf(interval, wallTime, weekStartDay) {
    const truncated = (time: string) => `toDateTime64(date_trunc('${interval}', ${time}), 6, 'UTC')`;
    if (interval !== "week" || weekStartDay === 1) return truncated(wallTime);
    return `addDays(${truncated(`addDays(${wallTime}, 1)`)}, -1)`;
  },
  wallText: (wallTime) => `formatDateTime(${wallTime}, '%Y-%m-%d %H:%i:%S')`,
  dayText: (wallTime) => `formatDateTime(${wallTime}, '%Y-%m-%d')`,
  quantile: (level, value) => `quantileExactInclusive(${level})(${value})`,
  // Otherwise rows with a null value would be skipped.
  valueAtLeast: (value, by) => `tupleElement(argMin(tuple(${value}), ${by}), 1)`,
  before: (value, separator) => `substringIndex(${value}, ${text(separator)}, 1)`,
  nullText: "CAST(NULL AS Nullable(String))",
  pairs: (rows) =>
    `(SELECT * FROM values('name String, value String', ${rows.map((row) => `(${row.map(text).join(", ")})`).join(", ")}))`,
  sumOfBytes: (value) => `toString(sum(reinterpretAsUInt64(substring(MD5(${value}), 9, 8)) % 4294967296))`,
  orNull: (value) => `toNullable(${value})`,
  // At most 32 bits.
  hasLongRanges: false,
  asMaterialized: "AS",
  triple: (first, second, third) => `tuple(toInt64(${first}), toInt64(${second}), toInt64(${third}))`,
  ofTriple: (triple, index) => `tupleElement(${triple}, ${index})`,
  uuid: (value) => `toUUID(${value})`,
  uuids: (values) => `(${values.map(text).join(", ")})`,
  ownerOfEvent,
  who: "coalesce(toString(o.person_uuid), e.distinct_id)",
  personOfEvent: (projectId) => `${ownerOfEvent(projectId)}
  LEFT JOIN ${persons(projectId)} p ON p.uuid = o.person_uuid`,
  persons,
  owners,
  hashPosition: (value) =>
    `reinterpretAsUInt64(reverse(unhex(concat('0', substring(hex(SHA1(${value})), 1, 15))))) / 1152921504606846976`,
};

/** Queries on one connection to ClickHouse. */
export function clickhouseSql(
  connection: ClickHouseConnection,
  asking: ClickHouseRequestOptions,
  eventProperties: PropertyLocation = sentWithEvents,
): EventSql {
  return {
    dialect: clickhouse,
    eventProperties,
    rows: (sql) => connection.rows(sql, asking),
    portions: (sql) => connection.portions(sql, asking),
    // ClickHouse reads one event at a time, whatever its size.
    hasLongEvents: async () => true,
    atOneTime: (ask) => ask(),
  };
}
