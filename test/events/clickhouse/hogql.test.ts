/** HogQL means here what ClickHouse, for which PostHog translates it, makes of the same rows. */

import { afterAll, beforeAll, expect } from "bun:test";
import { runQuery } from "../../../src/events/query/run-query.ts";
import { hasClickHouse, TestClickHouse, testWithClickHouse } from "../../support/clickhouse.ts";
import { TestStores } from "../../support/event-store.ts";

const test = testWithClickHouse("HogQL is what ClickHouse computes");
const timezone = "America/New_York";

let stores: TestStores;
let server: TestClickHouse;
// Around midnight in UTC and New York, the ends of weeks and years, and both changes of the clock.
const times = [
  "2025-12-29T03:30:00Z",
  "2026-01-01T02:00:00Z",
  "2026-01-01T06:10:20Z",
  "2026-03-08T06:59:59Z",
  "2026-03-08T07:00:00Z",
  "2026-03-09T03:59:59Z",
  "2026-06-30T23:30:00Z",
  "2026-07-01T04:00:00Z",
  "2026-11-01T04:30:00Z",
  "2026-11-01T05:30:00Z",
  "2026-11-01T06:30:00Z",
  "2026-11-01T07:30:00Z",
];

beforeAll(async () => {
  if (!hasClickHouse) return;
  stores = await TestStores.open();
  const events = times.map((time, index) => ({
    event: ["a", "b", "c"][index % 3]!,
    distinctId: "ann",
    time: Date.parse(time),
    properties: index % 2 === 0 ? { n: index } : {},
  }));
  await stores.load(events);
  await stores.mirror.follow();
  server = await TestClickHouse.start();
  const rows = events.map(
    ({ event, time, properties: { n } }, index) =>
      `(${index + 1}, '${event}', fromUnixTimestamp64Milli(${time}, '${timezone}'), ${n ?? "NULL"})`,
  );
  await server.run(
    `CREATE TABLE default.events (seq Int32, event String, timestamp DateTime64(6, '${timezone}'), n Nullable(Int32))
     ENGINE = MergeTree ORDER BY seq`,
  );
  await server.run(`INSERT INTO default.events VALUES ${rows.join(", ")}`);
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  await stores?.[Symbol.asyncDispose]();
});

async function ours(sql: string): Promise<unknown[][]> {
  const connection = await stores.database.connect();
  try {
    const sources = { people: stores.people, resultBytesMax: 1_000_000 };
    const hogql = { weekStartDay: 1 as const, timezone, placeholders: {} };
    const chunks = await runQuery(connection, sources, { projectId: 1, sql, limit: 100, hogql });
    return (JSON.parse(Buffer.concat(chunks).toString()) as { results: unknown[][] }).results;
  } finally {
    connection.closeSync();
  }
}

/** Expressions of each event; the second form is ClickHouse's, as PostHog prints it. */
const expressions: [hogql: string, clickhouse?: string][] = [
  ...["second", "minute", "hour", "day"].map((unit): [string, string] => {
    const name = `toStartOf${unit[0]!.toUpperCase()}${unit.slice(1)}(timestamp)`;
    return [`toUnixTimestamp(${name})`, `toUnixTimestamp(${name})`];
  }),
  ["toUnixTimestamp(toStartOfFifteenMinutes(timestamp))"],
  ["toString(toStartOfWeek(timestamp, 1))"],
  ["toString(toStartOfWeek(timestamp, 0))"],
  ["toString(toMonday(timestamp))"],
  ["toString(toStartOfMonth(timestamp))"],
  ["toString(toStartOfQuarter(timestamp))"],
  ["toString(toStartOfYear(timestamp))"],
  ["toString(toLastDayOfMonth(timestamp))"],
  ["toString(toDate(timestamp))"],
  ["toUnixTimestamp(toStartOfInterval(timestamp, INTERVAL 30 MINUTE))"],
  ["toUnixTimestamp(toDateTime(toStartOfInterval(timestamp, INTERVAL 1 DAY)))"],
  ["toUnixTimestamp(dateTrunc('day', timestamp))"],
  ["formatDateTime(timestamp, '%Y-%m-%d %H:%i:%S')"],
  ["formatDateTime(toTimeZone(timestamp, 'Asia/Kathmandu'), '%Y-%m-%d %H:%i:%S')"],
  ["toString(toDate(toTimeZone(timestamp, 'Asia/Tokyo')))"],
  ["toHour(timestamp) * 100 + toMinute(timestamp)"],
  ["toDayOfWeek(timestamp) + 10 * toISOWeek(timestamp) + 1000 * toDayOfYear(timestamp)"],
  ["toYYYYMMDD(timestamp) + toMonth(timestamp)"],
  ["toUnixTimestamp(timestamp + INTERVAL 1 DAY)"],
  ["toUnixTimestamp(addHours(timestamp, 24))"],
  ["toUnixTimestamp(subtractMonths(timestamp, 1))"],
  ["dateDiff('day', timestamp, toDateTime('2026-06-30 12:00:00', 'America/New_York'))"],
  ["timestamp >= '2026-03-08'", "timestamp >= toDateTime64('2026-03-08 00:00:00', 6, 'America/New_York')"],
  ["timestamp >= toDate('2026-03-08')"],
  [
    "event = 'a' ? 'first' : event = 'b' ? 'second' : 'third'",
    "multiIf(event = 'a', 'first', event = 'b', 'second', 'third')",
  ],
  ["event = 'a' OR event = 'b' ? 1 : 0"],
  ["properties.n ?? -1", "ifNull(n, -1)"],
  ["(properties.n ?? 0) > 3 ? 'many' : 'few'", "ifNull(n, 0) > 3 ? 'many' : 'few'"],
];

const pairs = expressions.map(([hogql, clickhouse = hogql]): [string, string] => [hogql, clickhouse]);
test.each(pairs)("of every event: %s", async (hogql, other) => {
  const expected = await server.run(`SELECT seq, ${other} AS x FROM default.events ORDER BY seq`);
  const found = await ours(`SELECT seq, ${hogql} AS x FROM events ORDER BY seq`);
  const plain = (rows: unknown[][]) =>
    rows.map(([seq, x]) => `${seq}: ${typeof x === "boolean" ? Number(x) : x}`);
  expect(plain(found)).toEqual(plain(expected));
  expect(found).toHaveLength(times.length);
});

test.each([
  "SELECT event, seq FROM events ORDER BY seq LIMIT 1 BY event",
  "SELECT event, seq FROM events ORDER BY seq DESC LIMIT 2 BY event LIMIT 4",
  "SELECT event, seq FROM events ORDER BY event, seq LIMIT 1 OFFSET 2 BY event",
  "SELECT event, seq FROM events ORDER BY event, seq LIMIT 1, 2 BY event LIMIT 1 OFFSET 3",
  "SELECT event, seq FROM events ORDER BY 2 DESC LIMIT 1 BY 1",
  "SELECT event AS e, max(seq) AS last FROM events GROUP BY event, seq % 2 ORDER BY last DESC LIMIT 1 BY e",
  "SELECT toString(toDate(timestamp)) AS day, count() AS times FROM events GROUP BY day ORDER BY times DESC, day",
  "SELECT count() FROM (SELECT event FROM events LIMIT 2 BY event)",
])("%s", async (sql) => {
  const expected = await server.run(sql.replaceAll("FROM events", "FROM default.events"));
  const plain = (rows: unknown[][]) => rows.map((row) => row.map(String));
  expect(plain(await ours(sql))).toEqual(plain(expected));
});
