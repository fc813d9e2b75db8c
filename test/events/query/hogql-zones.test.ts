/** HogQL's times in the project's zone, as PostHog computes them (contract, management-api 6.7). */

import { beforeAll, describe, expect, test } from "bun:test";
import { parseStatement } from "../../../src/events/query/parse.ts";
import { runQuery } from "../../../src/events/query/run-query.ts";
import { findColumns, withTypes } from "../../../src/events/query/views.ts";
import { stores, useStores } from "../../support/use-stores.ts";

useStores();
beforeAll(async () => {
  await stores.load(
    [
      // 22:30 of the day before in New York, 08:45 in Kathmandu.
      ["a", "2026-03-02T03:00:00Z", { $set: { tier: "gold" } }],
      ["b", "2026-03-02T16:00:00.250Z", { at: "2026-03-05", exact: "2026-03-05T00:00:00+02:00" }],
      // The two hours from 01:00 on the day on which New York's clocks go back.
      ["c", "2026-11-01T05:30:00Z", {}],
      ["d", "2026-11-01T06:30:00Z", {}],
    ].map(([event, time, properties]) => ({
      event: String(event),
      distinctId: "ann",
      time: Date.parse(String(time)),
      properties: properties as Record<string, never>,
    })),
  );
  await stores.mirror.follow();
});

async function ask(sql: string, timezone = "America/New_York") {
  const connection = await stores.database.connect();
  try {
    const sources = { people: stores.people, resultBytesMax: 1_000_000 };
    const hogql = { weekStartDay: 1 as const, timezone, placeholders: {} };
    const chunks = await runQuery(connection, sources, { projectId: 1, sql, limit: 100, hogql });
    return JSON.parse(Buffer.concat(chunks).toString()) as { results: unknown[][]; types: string[][] };
  } finally {
    connection.closeSync();
  }
}
const value = async (expression: string, event = "a", timezone?: string) =>
  (await ask(`SELECT ${expression} FROM events WHERE event = '${event}'`, timezone)).results[0]?.[0];

describe("in New York", () => {
  const values: [expression: string, expected: unknown, event?: string][] = [
    ["timestamp", "2026-03-01T22:00:00.000000-05:00"],
    ["timestamp", "2026-03-02T11:00:00.250000-05:00", "b"],
    ["toDate(timestamp)", "2026-03-01"],
    ["timestamp::DATE", "2026-03-01"],
    ["toStartOfDay(timestamp)", "2026-03-01T00:00:00.000000-05:00"],
    ["dateTrunc('day', timestamp)", "2026-03-01T00:00:00.000000-05:00"],
    ["toStartOfDay(timestamp, 'UTC')", "2026-03-01T19:00:00.000000-05:00"],
    ["toStartOfDay(toTimeZone(timestamp, 'UTC'))", "2026-03-01T19:00:00.000000-05:00"],
    ["toDate(toTimeZone(timestamp, 'UTC'))", "2026-03-02"],
    ["toTimeZone(timestamp, 'Asia/Tokyo') = timestamp", true],
    ["toTimeZone(timestamp, 'Asia/Tokyo') >= '2026-03-02 12:00:00'", true],
    ["toTimeZone(timestamp, 'Asia/Tokyo') BETWEEN '2026-03-02 11:00:00' AND '2026-03-02 12:30:00'", true],
    ["toHour(addHours(toTimeZone(timestamp, 'Asia/Tokyo'), 1))", 13],
    ["formatDateTime(toStartOfHour(toTimeZone(timestamp, 'Asia/Tokyo')), '%F %R')", "2026-03-02 12:00"],
    ["toStartOfWeek(timestamp)", "2026-02-23"],
    ["toStartOfWeek(timestamp, 0)", "2026-03-01"],
    ["toStartOfWeek(timestamp, 1, 'UTC')", "2026-03-02"],
    ["toMonday(timestamp)", "2026-02-23"],
    ["toStartOfMonth(timestamp)", "2026-03-01"],
    ["toStartOfInterval(timestamp, INTERVAL 1 DAY)", "2026-03-01T00:00:00.000000-05:00"],
    ["toStartOfInterval(timestamp, toIntervalHour(6))", "2026-03-01T18:00:00.000000-05:00"],
    ["toStartOfInterval(timestamp, INTERVAL 1 DAY, 'UTC')", "2026-03-01T19:00:00.000000-05:00"],
    ["toHour(timestamp)", 22],
    ["toHour(timestamp, 'UTC')", 3],
    ["toDayOfWeek(timestamp)", 7],
    ["toDayOfWeek(toTimeZone(timestamp, 'UTC'))", 1],
    ["toYYYYMMDD(timestamp)", 20260301],
    ["formatDateTime(timestamp, '%Y-%m-%d %T')", "2026-03-01 22:00:00"],
    ["formatDateTime(timestamp, '%F', 'UTC')", "2026-03-02"],
    ["toString(timestamp)", "2026-03-01 22:00:00"],
    ["toString(toTimeZone(timestamp, 'UTC'))", "2026-03-02 03:00:00"],
    ["toString(toDate(timestamp))", "2026-03-01"],
    ["toUnixTimestamp(timestamp)", 1772420400],
    ["dateDiff('day', timestamp, toDateTime('2026-03-02 01:00:00'))", 1],
    ["dateDiff('day', timestamp, toDateTime('2026-03-02 01:00:00'), 'UTC')", 0],
    // Across the night in which the clocks go forward.
    ["timestamp + INTERVAL 8 DAY", "2026-03-09T22:00:00.000000-04:00"],
    ["addDays(timestamp, 8)", "2026-03-09T22:00:00.000000-04:00"],
    ["dateAdd('day', 8, timestamp)", "2026-03-09T22:00:00.000000-04:00"],
    ["toDateTime('2026-03-01')", "2026-03-01T00:00:00.000000-05:00"],
    ["toDateTime('2026-03-01 00:00:00', 'UTC')", "2026-02-28T19:00:00.000000-05:00"],
    ["toDateTime('2026-03-01T00:00:00Z', 'Asia/Tokyo')", "2026-02-28T19:00:00.000000-05:00"],
    ["toDateTime64('2026-03-01 00:00:00.5', 6, 'UTC')", "2026-02-28T19:00:00.500000-05:00"],
    ["toDateTime('2026-03-01T00:00:00Z')", "2026-02-28T19:00:00.000000-05:00"],
    ["toDateTime(1772420400)", "2026-03-01T22:00:00.000000-05:00"],
    ["fromUnixTimestamp(1772420400)", "2026-03-01T22:00:00.000000-05:00"],
    ["toDateTime(properties.at)", "2026-03-05T00:00:00.000000-05:00", "b"],
    ["toDateTime(properties.exact)", "2026-03-04T17:00:00.000000-05:00", "b"],
    ["TIMESTAMP '2026-03-01 10:00:00'", "2026-03-01T10:00:00.000000-05:00"],
    ["toStartOfHour(timestamp)", "2026-11-01T01:00:00.000000-04:00", "c"],
    ["toStartOfHour(timestamp)", "2026-11-01T01:00:00.000000-05:00", "d"],
    ["toStartOfFifteenMinutes(timestamp)", "2026-11-01T01:30:00.000000-04:00", "c"],
    ["[timestamp]", ["2026-03-01T22:00:00.000000-05:00"]],
    ["person.created_at = (SELECT min(created_at) FROM persons)", true],
  ];
  const ofEvents = values.map(
    ([expression, expected, event = "a"]) => [expression, event, expected] as const,
  );
  test.each(ofEvents)("%s of %s is %j", async (expression, event, expected) => {
    expect(await value(expression, event)).toEqual(expected);
  });

  test.each([
    ["timestamp >= '2026-03-02'", ["b", "c", "d"]],
    ["'2026-03-02' <= timestamp", ["b", "c", "d"]],
    ["timestamp < '2026-03-02'", ["a"]],
    ["timestamp >= '2026-03-02T03:00:00Z'", ["a", "b", "c", "d"]],
    ["timestamp >= toDate('2026-03-02')", ["b", "c", "d"]],
    ["timestamp >= toDateTime('2026-03-02')", ["b", "c", "d"]],
    ["timestamp BETWEEN '2026-03-01' AND '2026-03-02'", ["a"]],
    ["toDate(timestamp) = '2026-03-01'", ["a"]],
    ["timestamp = toDateTime('2026-03-01 22:00:00')", ["a"]],
    ["timestamp > now()", ["c", "d"].filter(() => Date.now() < Date.UTC(2026, 10, 1))],
    ["NOT timestamp < now() + INTERVAL 100 YEAR", []],
    ["toStartOfDay(timestamp) = (SELECT min(toStartOfDay(timestamp)) FROM events)", ["a"]],
  ])("%s is of %j", async (condition, expected) => {
    const { results } = await ask(`SELECT event FROM events WHERE ${condition} ORDER BY event`);
    expect(results.flat()).toEqual(expected);
    const joined = `SELECT e.event FROM events e JOIN persons p ON p.id = e.person_id WHERE ${condition.replaceAll("timestamp", "e.timestamp").replaceAll("(e.timestamp)) FROM events)", "(timestamp)) FROM events)")}`;
    expect((await ask(`${joined} ORDER BY 1`)).results.flat()).toEqual(expected);
  });

  test("today and yesterday are those of the zone", async () => {
    const today = (zone: string) => new Intl.DateTimeFormat("en-CA", { timeZone: zone }).format(Date.now());
    for (const zone of ["Pacific/Kiritimati", "Pacific/Pago_Pago"]) {
      const before = today(zone);
      const { results } = await ask("SELECT today(), toDate(now()), yesterday() + 1, current_date", zone);
      expect([[before, before, before, before].join(), Array(4).fill(today(zone)).join()]).toContain(
        String(results[0]),
      );
    }
  });

  test("columns of times name the zone, and days group by its clock", async () => {
    const { results, types } = await ask(
      "SELECT toStartOfDay(timestamp) AS day, count() FROM events GROUP BY day ORDER BY day LIMIT 2",
    );
    expect(results).toEqual([
      ["2026-03-01T00:00:00.000000-05:00", 1],
      ["2026-03-02T00:00:00.000000-05:00", 1],
    ]);
    expect(types[0]).toEqual(["day", "DateTime64(6, 'America/New_York')"]);
  });
});

test("zones with half hours, and UTC", async () => {
  expect(await value("toStartOfHour(timestamp)", "a", "Asia/Kathmandu")).toBe(
    "2026-03-02T08:00:00.000000+05:45",
  );
  expect(await value("toStartOfDay(timestamp)", "a", "UTC")).toBe("2026-03-02T00:00:00.000000Z");
});

test("a comparison with the time of events uses the stored column", async () => {
  const connection = await stores.database.connect();
  try {
    const sources = { people: stores.people };
    const hogql = withTypes({ weekStartDay: 1, timezone: "America/New_York", placeholders: {} }, sources, 1);
    const plan = async (sql: string) =>
      (await parseStatement(connection, sql, hogql, findColumns(sources, 1))).sql;
    expect(await plan("SELECT event FROM events e WHERE e.timestamp >= '2026-03-02'")).toContain(
      "(e.flagkeep_timestamp >= timezone('UTC', CAST('2026-03-02' AS TIMESTAMP WITH TIME ZONE)))",
    );
    // Otherwise it would be a column of the result.
    expect(await plan("SELECT * FROM events WHERE timestamp >= '2026-03-02'")).not.toContain("flagkeep_t");
  } finally {
    connection.closeSync();
  }
});

test("statements in SQL keep UTC", async () => {
  const connection = await stores.database.connect();
  try {
    const sources = { people: stores.people, resultBytesMax: 1_000_000 };
    const sql = "SELECT timestamp, timestamp::DATE AS day FROM events WHERE event = 'a'";
    const chunks = await runQuery(connection, sources, { projectId: 1, sql, limit: 1 });
    const { rows } = JSON.parse(Buffer.concat(chunks).toString());
    expect(rows).toEqual([{ timestamp: "2026-03-02T03:00:00.000000Z", day: "2026-03-02" }]);
  } finally {
    connection.closeSync();
  }
});
