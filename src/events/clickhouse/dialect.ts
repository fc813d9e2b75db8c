/** The event store's questions in ClickHouse's SQL. */

import { eventColumns } from "../columns.ts";
import { type Dialect, type EventSql, type PropertyPlace, sentWithEvents } from "../dialect.ts";
import type { Asking, ClickHouseConnection } from "./connection.ts";

/** A string literal, in which a backslash escapes. A NUL becomes U+FFFD, as it does in DuckDB's. */
function text(value: string): string {
  return `'${value.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\0", "\ufffd")}'`;
}

const raw = (json: string, name: string) => `JSONExtractRaw(${json}, ${text(name)})`;

function sentText(json: string, name: string): string {
  const value = raw(json, name);
  return `if(${value} IN ('', 'null'), NULL, if(startsWith(${value}, '"'), JSONExtractString(${value}), ${value}))`;
}

const instant = (micros: string) => `fromUnixTimestamp64Micro(${micros}, 'UTC')`;

/** The newest copy of each person, and of each owner of a distinct id. */
const persons = (projectId: number) =>
  `(SELECT uuid, properties, main_distinct_id FROM persons FINAL WHERE project_id = ${projectId})`;
const owners = (projectId: number) =>
  `(SELECT distinct_id, person_uuid FROM person_distinct_ids FINAL WHERE project_id = ${projectId})`;

const ownerOfEvent = (projectId: number) => `
  LEFT JOIN ${owners(projectId)} o ON o.distinct_id = e.distinct_id`;

export const clickhouse: Dialect = {
  text,
  // Parameters would go into the address of the request, which is short.
  bind: (_, value) => (typeof value === "number" ? String(value) : text(value)),
  hasMember: (json, name) => `coalesce(JSONHas(${json}, ${text(name)}), 0)`,
  memberJson: (json, name) => `nullIf(${raw(json, name)}, '')`,
  // ClickHouse writes numbers anew: none ends with `.0`.
  memberText: sentText,
  sentText,
  number(value) {
    const number = `toFloat64OrNull(trimBoth(${value}))`;
    return `if(isFinite(${number}), ${number}, NULL)`;
  },
  contains: (value, part) => `position(${value}, ${text(part)}) > 0`,
  lower: (value) => `lowerUTF8(${value})`,
  matches: (value, pattern) => `match(${value}, ${text(`(?-s)${pattern}`)})`,
  time: (event) => `${event}.time`,
  moment: String,
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
  // Else rows whose value is null would be passed over.
  valueAtLeast: (value, by) => `tupleElement(argMin(tuple(${value}), ${by}), 1)`,
  sumOfBytes: (value) => `toString(sum(reinterpretAsUInt64(substring(MD5(${value}), 9, 8)) % 4294967296))`,
  orNull: (value) => `toNullable(${value})`,
  // Not longer than 32 bits.
  hasLongRanges: false,
  madeOnce: "AS",
  triple: (first, second, third) => `tuple(toInt64(${first}), toInt64(${second}), toInt64(${third}))`,
  ofTriple: (triple, place) => `tupleElement(${triple}, ${place})`,
  uuid: (value) => `toUUID(${value})`,
  uuids: (values) => `(${values.map(text).join(", ")})`,
  ownerOfEvent,
  who: "coalesce(toString(o.person_uuid), e.distinct_id)",
  personOfEvent: (projectId) => `${ownerOfEvent(projectId)}
  LEFT JOIN ${persons(projectId)} p ON p.uuid = o.person_uuid`,
  persons,
  owners,
  hashPlace: (value) =>
    `reinterpretAsUInt64(reverse(unhex(concat('0', substring(hex(SHA1(${value})), 1, 15))))) / 1152921504606846976`,
};

/** Questions over one connection to ClickHouse. */
export function clickhouseSql(
  connection: ClickHouseConnection,
  asking: Asking,
  eventProperties: PropertyPlace = sentWithEvents,
): EventSql {
  return {
    dialect: clickhouse,
    eventProperties,
    rows: (sql) => connection.rows(sql, asking),
    portions: (sql) => connection.portions(sql, asking),
    // One at a time is read there, whatever it weighs.
    hasLongEvents: async () => true,
    atOneTime: (ask) => ask(),
  };
}
