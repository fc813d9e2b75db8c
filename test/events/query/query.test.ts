import { describe, expect, test } from "bun:test";
import { StatementFailedError, StatementRejectedError } from "../../../src/events/duckdb/statement-errors.ts";
import type { HogqlOptions } from "../../../src/events/query/parse.ts";
import { type QueryResult, runQuery } from "../../../src/events/query/run-query.ts";
import { TestStores } from "../../support/event-store.ts";

const time = Date.UTC(2026, 0, 2, 3, 4, 5);

async function filled(): Promise<TestStores> {
  const stores = await TestStores.open();
  await stores.load([
    { event: "signup", distinctId: "ann", time, properties: { $set: { plan: "pro" }, n: 1 } },
    { event: "order", distinctId: "ann", time: time + 1_000, properties: { total: 2.5 } },
    {
      event: "$groupidentify",
      distinctId: "ann",
      time,
      properties: { $group_type: "company", $group_key: "acme", $group_set: { size: 3 } },
    },
    { project: 2, event: "secret", distinctId: "bob", time, properties: { $set: { plan: "hidden" } } },
    {
      project: 2,
      event: "$groupidentify",
      distinctId: "bob",
      time,
      properties: { $group_type: "company", $group_key: "hidden-inc" },
    },
  ]);
  await stores.mirror.follow();
  return stores;
}

async function ask(
  stores: TestStores,
  sql: string,
  limit = 1_000,
  resultBytesMax = 1_000_000,
  hogql?: HogqlOptions,
): Promise<QueryResult> {
  const connection = await stores.database.connect();
  try {
    const sources = { people: stores.people, resultBytesMax };
    const answer = await runQuery(connection, sources, { projectId: 1, sql, limit, hogql });
    return JSON.parse(Buffer.concat(answer).toString());
  } finally {
    connection.closeSync();
  }
}

/** Whatever reads, writes or tells something that is not in the views of the project. */
const hostile = [
  "SELECT * FROM main.events",
  "SELECT * FROM events.main.events",
  "SELECT * FROM temp.main.events",
  "SELECT * FROM person",
  "SELECT * FROM person_distinct_id",
  "SELECT * FROM load_cursor",
  "SELECT * FROM schema_migration",
  "SELECT (SELECT max(seq) FROM load_cursor)",
  "SELECT 1 WHERE EXISTS (SELECT * FROM person)",
  "WITH person AS (SELECT * FROM person) SELECT * FROM person",
  "WITH RECURSIVE person AS (SELECT * FROM person) SELECT * FROM person",
  "SELECT * FROM (WITH person AS (SELECT 1) SELECT * FROM person) a, person",
  "WITH a AS (SELECT * FROM person), person AS (SELECT 1) SELECT * FROM a",
  "WITH RECURSIVE person AS (SELECT * FROM person UNION ALL SELECT * FROM person) SELECT * FROM person",
  "SELECT * FROM events UNION ALL SELECT * FROM person",
  "SELECT * FROM '/etc/passwd'",
  "SELECT * FROM 'x.csv'",
  'SELECT * FROM "x.parquet"',
  'SELECT * FROM (WITH "x.csv" AS (SELECT 1) SELECT * FROM "x.csv"), \'x.csv\'',
  "SELECT * FROM read_csv('/etc/passwd')",
  "SELECT * FROM read_text('/etc/passwd')",
  "SELECT * FROM read_blob('/etc/passwd')",
  "SELECT * FROM read_ndjson('x')",
  "SELECT * FROM read_json_auto('x')",
  "SELECT * FROM read_parquet('x')",
  "SELECT * FROM parquet_scan('x')",
  "SELECT * FROM parquet_schema('x')",
  "SELECT * FROM glob('/*')",
  "SELECT * FROM sniff_csv('/etc/passwd')",
  "SELECT * FROM query('SELECT * FROM person')",
  "SELECT * FROM query_table('person')",
  "SELECT * FROM json_execute_serialized_sql('{}')",
  "SELECT * FROM duckdb_settings()",
  "SELECT * FROM duckdb_tables",
  "SELECT * FROM duckdb_secrets()",
  "SELECT * FROM information_schema.tables",
  "SELECT * FROM pg_catalog.pg_class",
  "SELECT * FROM pg_class",
  "SELECT * FROM sqlite_master",
  "SELECT * FROM pragma_storage_info('events')",
  "SELECT * FROM checkpoint()",
  "SELECT current_setting('temp_directory')",
  "SELECT getvariable('x')",
  "SELECT current_database()",
  "SELECT pg_sleep(100)",
  "SELECT sleep_ms(100000)",
  "SELECT nextval('x')",
  "SELECT write_log('x')",
  "SELECT json_serialize_sql('SELECT 1')",
  "SELECT list_transform([1], lambda x: (SELECT max(seq) FROM load_cursor))",
  "SHOW TABLES",
  "DESCRIBE person",
  "SUMMARIZE person",
  "SELECT * FROM (DESCRIBE person)",
  "PRAGMA database_list",
  "SET memory_limit = '1GB'",
  "RESET memory_limit",
  "ATTACH 'x.db'",
  "DETACH events",
  "USE temp",
  "INSTALL httpfs",
  "LOAD httpfs",
  "COPY events TO 'x.csv'",
  "COPY (SELECT 1) TO 'x.csv'",
  "EXPORT DATABASE 'x'",
  "IMPORT DATABASE 'x'",
  "CREATE TABLE x (a INT)",
  "CREATE MACRO f() AS 1",
  "CREATE TABLE x AS SELECT 1",
  "INSERT INTO events SELECT * FROM events",
  "UPDATE events SET event = 'x'",
  "DELETE FROM events",
  "DROP TABLE person",
  "ALTER TABLE person ADD COLUMN x INT",
  "TRUNCATE person",
  "VACUUM",
  "CHECKPOINT",
  "BEGIN TRANSACTION",
  "EXPLAIN ANALYZE SELECT * FROM person",
  "CALL duckdb_settings()",
  "PREPARE q AS SELECT 1",
  "EXECUTE q",
  "SELECT 1; SELECT 2",
  "SELECT 1; DROP TABLE person",
  "WITH x AS (DELETE FROM person RETURNING *) SELECT * FROM x",
  "SELECT $1",
  "FROM events SELECT getenv('HOME')",
  "not SQL at all",
  "",
];

/** The same in the syntax that only HogQL has. */
const hostileHogql = [
  "SELECT * FROM `person`",
  "SELECT * FROM `main`.`events`",
  "SELECT * FROM `/etc/passwd`",
  "SELECT * FROM '/etc\\x/passwd'",
  "SELECT 'a\\'' FROM events; DROP TABLE events; --'",
  "SELECT `a\\`` FROM person --`",
  "SELECT getenv(1)('HOME')",
  "SELECT `getenv`('HOME')",
  "SELECT arrayMap(x -> getenv(x), ['HOME'])",
  "SELECT toString(getenv('HOME'))",
  "SELECT multiIf(true, getenv('HOME'), '')",
  "SELECT anyIf(getenv('HOME'), true)",
  "SELECT sumIf(1, (SELECT count() FROM person) > 0)",
  "SELECT `in`(1, (SELECT 1 FROM person))",
  "SELECT in(event, (SELECT uuid FROM person)) FROM events",
  "SELECT read_text(1)('/etc/passwd')",
  "SELECT toStartOfInterval(now(), (SELECT 1 FROM load_cursor))",
  "SELECT JSONExtractString(getenv('HOME'), 'a')",
  "SELECT JSONHas(properties, getenv('HOME')) FROM events",
  "SELECT _1 FROM person",
  "SELECT {secret} FROM events",
];

test("refuses what is not a SELECT over the project's views", async () => {
  await using stores = await filled();
  const before = await stores.rows("SELECT count(*) FROM events");
  const passed: string[] = [];
  const hogql = { weekStartDay: 1, timezone: "UTC", placeholders: {} } as const;
  for (const sql of hostile) {
    for (const options of [undefined, hogql]) {
      const result = await ask(stores, sql, undefined, undefined, options).catch((error: unknown) => error);
      if (!(result instanceof StatementRejectedError)) passed.push(`${sql} -> ${String(result)}`);
    }
  }
  for (const sql of hostileHogql) {
    const result = await ask(stores, sql, undefined, undefined, hogql).catch((error: unknown) => error);
    if (!(result instanceof StatementRejectedError)) passed.push(`${sql} -> ${String(result)}`);
  }
  expect(passed).toEqual([]);
  expect(await stores.rows("SELECT count(*) FROM events")).toEqual(before);
}, 60_000);

describe("answers from the project's own data", () => {
  test.each([
    ["SELECT count(*) AS n FROM events WHERE properties.plan = 'pro'", 0],
    ["SELECT count(*) AS n FROM persons WHERE properties.plan = 'pro'", 1],
    ["SELECT count(*) AS n FROM persons p WHERE 'pro' = p.properties.plan", 1],
    ["SELECT count(*) AS n FROM persons WHERE properties['plan'] IN ('pro', 'free')", 1],
    ["SELECT count(*) AS n FROM persons WHERE properties.plan NOT IN ('free')", 1],
    ["SELECT count(*) AS n FROM persons WHERE properties.plan <> 'free'", 1],
    ["SELECT count(*) AS n FROM persons WHERE properties.plan = '\"pro\"'", 1],
    ["SELECT count(*) AS n FROM events WHERE properties.n = '1'", 1],
    ["SELECT count(*) AS n FROM events properties WHERE properties.event = 'signup'", 1],
  ])("%s is %j", async (sql, n) => {
    await using stores = await filled();
    expect((await ask(stores, sql)).rows).toEqual([{ n }]);
  });

  const cases: { sql: string; rows: unknown[] }[] = [
    {
      sql: "SELECT event, distinct_id, timestamp FROM events WHERE event = 'order'",
      rows: [{ event: "order", distinct_id: "ann", timestamp: "2026-01-02T03:04:06.000000Z" }],
    },
    { sql: "SELECT count(*) AS n FROM events", rows: [{ n: 3 }] },
    { sql: "SELECT count(*) AS n FROM Events e JOIN persons p ON p.id = e.person_id", rows: [{ n: 3 }] },
    {
      sql: "SELECT distinct_ids, {plan: properties->>'plan'} AS properties FROM persons",
      rows: [{ distinct_ids: ["ann"], properties: { plan: "pro" } }],
    },
    { sql: "SELECT properties->>'plan' AS plan FROM persons", rows: [{ plan: "pro" }] },
    {
      sql: "SELECT type, type_index, key, properties FROM groups",
      rows: [{ type: "company", type_index: 0, key: "acme", properties: { size: 3 } }],
    },
    { sql: "WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS x FROM a) SELECT * FROM b", rows: [{ x: 2 }] },
    {
      sql: "WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 3) SELECT max(n) AS n FROM c",
      rows: [{ n: 3 }],
    },
    { sql: "SELECT * FROM range(2) AS r(i)", rows: [{ i: 0 }, { i: 1 }] },
    { sql: "SELECT unnest([1, 2]) AS u", rows: [{ u: 1 }, { u: 2 }] },
    {
      sql: "FROM (VALUES (1.5, NULL, DATE '2026-01-01')) t(a, b, c)",
      rows: [{ a: 1.5, b: null, c: "2026-01-01" }],
    },
    {
      sql: "SELECT 9007199254740993 AS big, {'a': [1]} AS s",
      rows: [{ big: "9007199254740993", s: { a: [1] } }],
    },
    {
      sql: "SELECT event, row_number() OVER (ORDER BY seq) AS n FROM events ORDER BY seq LIMIT 1",
      rows: [{ event: "signup", n: 1 }],
    },
    {
      sql: "SELECT date_trunc('day', timestamp) AS day FROM events LIMIT 1",
      rows: [{ day: "2026-01-02T00:00:00.000000Z" }],
    },
    {
      sql: "SELECT coalesce(NULL, upper('a')) || 'b' AS t, sum(1) FILTER (WHERE true) AS s -- said",
      rows: [{ t: "Ab", s: 1 }],
    },
  ];
  for (const { sql, rows } of cases) {
    test(sql, async () => {
      await using stores = await filled();
      expect((await ask(stores, sql)).rows).toEqual(rows as never);
    });
  }

  test("the ids of a person begin with the main one; the others follow by time of joining", async () => {
    await using stores = await filled();
    const ids = ["zoe", "eve", "mia"];
    for (const id of ids)
      await stores.load([
        { event: "$identify", distinctId: "ann", time, properties: { $anon_distinct_id: id } },
      ]);
    await stores.mirror.follow();
    const { rows } = await ask(stores, "SELECT distinct_ids FROM persons");
    expect(rows).toEqual([{ distinct_ids: ["ann", ...ids] }]);
    const alias = { event: "$create_alias", distinctId: "ann", time, properties: { alias: "mia" } };
    await stores.load([alias]);
    await stores.mirror.follow();
    const changed = await ask(stores, "SELECT distinct_ids FROM persons");
    expect(changed.rows).toEqual([{ distinct_ids: ["mia", "ann", "zoe", "eve"] }]);
  });

  test("reports that there are more rows than requested", async () => {
    await using stores = await filled();
    const result = await ask(stores, "SELECT * FROM range(100000)", 5);
    expect(result.rows).toHaveLength(5);
    expect(result.truncated).toBe(true);
  });

  test("a failure after many rows is reported, not taken for the end", async () => {
    await using stores = await filled();
    const failing = (rows: number) =>
      `SELECT n, CAST(CASE WHEN n = ${rows} THEN 'x' ELSE '1' END AS INTEGER) AS one FROM (SELECT range AS n FROM range(3000000))`;
    await expect(ask(stores, failing(2_000_000), 3_000_000, 1e9)).rejects.toThrow(/convert string 'x'/);
    expect((await ask(stores, failing(2_000_000), 10)).truncated).toBe(true);
    expect((await ask(stores, failing(-1), 3_000_000, 1e9)).rows).toHaveLength(3_000_000);
  });

  test("an unknown column is reported with DuckDB's message", async () => {
    await using stores = await filled();
    await expect(ask(stores, "SELECT nothing FROM events")).rejects.toThrow(StatementFailedError);
    await expect(ask(stores, "SELECT nothing FROM events")).rejects.toThrow("nothing");
  });
});
