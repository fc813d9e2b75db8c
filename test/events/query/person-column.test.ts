/** Statements that do not read persons do not pay for the join; all others have the column. */

import { beforeAll, expect, test } from "bun:test";
import type { DuckDBConnection } from "@duckdb/node-api";
import { parseStatement } from "../../../src/events/query/parse.ts";
import { createViews } from "../../../src/events/query/views.ts";
import { stores, useStores } from "../../support/use-stores.ts";

let connection: DuckDBConnection;
useStores();
beforeAll(async () => {
  const events = ["a", "b"].map((distinctId) => ({ distinctId, properties: { $set: { x: 1 } } }));
  await stores.load(events);
  await stores.mirror.follow();
});

/** The plan of a statement over the views that it gets. */
async function getPlan(sql: string): Promise<string> {
  connection = await stores.database.connect();
  try {
    const parsed = await parseStatement(connection, sql);
    const sources = { people: stores.people };
    await createViews(connection, sources, { projectId: 1, ...parsed });
    const rows = await connection.runAndReadAll(`EXPLAIN ${parsed.sql}`);
    return String(rows.getRows()[0]![1]);
  } finally {
    connection.closeSync();
  }
}

for (const sql of [
  "SELECT count(*) FROM events",
  "SELECT event, count(*) AS n, count(DISTINCT distinct_id) FROM events GROUP BY ALL ORDER BY n DESC",
  "SELECT date_trunc('day', timestamp) AS day, properties->>'x' AS x FROM events e WHERE e.event = 'a'",
  "WITH a AS (SELECT event FROM events) SELECT count(*) FROM a",
])
  test(`no join: ${sql}`, async () => {
    expect(await getPlan(sql)).not.toContain("JOIN");
  });

for (const sql of [
  "SELECT * FROM events",
  "FROM events",
  "TABLE events",
  "SELECT e.* FROM events e",
  "SELECT COLUMNS('person.*') FROM events",
  "SELECT max(COLUMNS(*)) FROM events",
  "SELECT PERSON_ID FROM events",
  "SELECT e FROM events e",
  "SELECT events FROM events",
  "SELECT to_json(e) FROM events AS e",
  "SELECT #10 FROM events",
  "SELECT count(DISTINCT person_id) FROM events",
  "SELECT p.id FROM persons p JOIN events e ON e.person_id = p.id",
  "SELECT count(*) FROM events a JOIN events b USING (person_id)",
  "SELECT count(*) FROM events a NATURAL JOIN (SELECT person_id FROM events) b",
  "SELECT j FROM events e(a, b, c, d, e, f, g, h, i, j)",
])
  test(`with the person: ${sql}`, async () => {
    expect(await getPlan(sql)).toContain("JOIN");
  });
