/** The statement that runs is a print of ours: it answers what the written one does. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { DuckDBConnection } from "@duckdb/node-api";
import { parseStatement } from "../../../src/events/query/parse.ts";
import { createViews } from "../../../src/events/query/views.ts";
import { TestStores } from "../../support/event-store.ts";

let stores: TestStores;
let connection: DuckDBConnection;
beforeAll(async () => {
  stores = await TestStores.open();
  await stores.load(
    Array.from({ length: 40 }, (_, n) => ({
      event: ["signup", "order", 'It\'s "odd"\n'][n % 3],
      distinctId: `u${n % 7}`,
      time: Date.UTC(2026, 0, 1 + n),
      properties: {
        n,
        $browser: n % 2 ? "Firefox" : "Safari",
        "$feature/a~b": n,
        nested: { list: [1, { x: n }] },
        $set: { plan: n % 2 ? "pro" : "free" },
      },
    })),
  );
  await stores.mirror.follow();
  connection = await stores.database.connect();
  const all = { projectId: 1, views: new Set(["events", "persons", "groups"] as const), readsPersonId: true };
  await createViews(connection, { people: stores.people }, all);
  for (const view of ["events", "persons", "groups"]) {
    await connection.run(`CREATE TEMP VIEW ${view} AS SELECT * FROM temp.main.flagkeep_${view}`);
  }
});
afterAll(async () => {
  connection.closeSync();
  await stores[Symbol.asyncDispose]();
});

async function getAnswer(sql: string): Promise<unknown> {
  const rows = await connection.runAndReadAll(sql);
  return { types: rows.columnTypes().map(String), rows: rows.getRowsJson() };
}

/** Each ends in an order, or has one row. */
const same = [
  "SELECT event, count(*) FROM events GROUP BY ALL ORDER BY ALL",
  "SELECT DISTINCT ON (event) event, seq FROM events ORDER BY event, seq",
  "FROM events SELECT seq ORDER BY seq LIMIT 10% OFFSET 2",
  "SELECT seq FROM events QUALIFY row_number() OVER (PARTITION BY event ORDER BY seq DESC) = 1 ORDER BY 1",
  "SELECT e.event, p.properties->>'plan' FROM events e JOIN persons p ON p.id = e.person_id ORDER BY e.seq",
  "SELECT events.event, events.seq FROM events WHERE events.seq IN (SELECT seq FROM events WHERE seq > 30) ORDER BY ALL",
  "WITH a AS (SELECT event, seq FROM events), b(x, y) AS (SELECT * FROM a WHERE seq % 2 = 0) SELECT a.seq, b.y FROM a JOIN b ON a.seq = b.y ORDER BY ALL",
  "WITH events AS (SELECT 1 AS seq) SELECT * FROM events",
  "WITH Events AS (SELECT seq + 1 AS seq FROM events) SELECT max(seq) FROM eVENTS",
  "WITH a AS MATERIALIZED (SELECT 1 AS x), b AS NOT MATERIALIZED (SELECT x FROM a) SELECT * FROM a, b",
  "WITH a AS (SELECT 1 AS x) SELECT (WITH a AS (SELECT 2 AS x) SELECT x FROM a), x FROM a",
  'WITH "ÄÖ ü" AS (SELECT 1 AS "Straße") SELECT "ÄÖ ü"."Straße" FROM "ÄÖ ü"',
  "WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT list(n ORDER BY n) FROM c",
  "WITH RECURSIVE c(n, m) AS (SELECT 1, 'a' UNION SELECT n + 1, m || 'b' FROM c WHERE n < 5) SELECT * FROM c ORDER BY n",
  "WITH RECURSIVE a AS (SELECT 1 AS x), c AS (SELECT x FROM a UNION ALL SELECT c.x + 1 FROM c, a WHERE c.x < 3) SELECT sum(x) FROM c",
  "SELECT count(*) FILTER (WHERE seq > 3), quantile_cont(seq, 0.5), first(event ORDER BY seq DESC), string_agg(DISTINCT event, '|' ORDER BY event) FROM events",
  "SELECT event, grouping(event), count(*) FROM events GROUP BY GROUPING SETS ((event), ()) ORDER BY ALL",
  "SELECT event, distinct_id, count(*) FROM events GROUP BY ROLLUP (event, distinct_id) ORDER BY ALL",
  "SELECT seq, sum(seq) OVER (ORDER BY seq ROWS BETWEEN 2 PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM events ORDER BY seq",
  "SELECT seq, lag(event, 1, 'none') OVER w, last_value(event IGNORE NULLS) OVER w FROM events WINDOW w AS (PARTITION BY distinct_id ORDER BY seq) ORDER BY seq",
  "SELECT seq, avg(seq) OVER (ORDER BY timestamp RANGE BETWEEN INTERVAL 3 DAYS PRECEDING AND INTERVAL 1 DAY FOLLOWING) FROM events ORDER BY seq",
  "SELECT * EXCLUDE (properties, received_at, uuid, person_id) REPLACE (seq + 1 AS seq) FROM events ORDER BY seq",
  "SELECT * LIKE 'dist%' FROM events ORDER BY ALL",
  "SELECT COLUMNS('s.q') + 1 FROM events ORDER BY ALL",
  "SELECT COLUMNS(c -> c LIKE 'se%') FROM events ORDER BY ALL",
  "SELECT * RENAME (event AS what) FROM (SELECT event, seq FROM events) ORDER BY ALL",
  "SELECT list_transform([1, 2, 3], lambda x: x * 2), list_filter([1, 2], x -> x > 1), [x * 2 FOR x IN [1, 2, 3] IF x > 1], list_reduce([1, 2, 3], lambda a, b: a + b)",
  "SELECT {'a': 1, 'b': {'c': [1, 2]}}.b.c[2], MAP {'k': 1}['k'], [1, 2, 3][1:2], [1, 2, 3][-1], ROW(1, 'x'), struct_pack(a := 1)",
  "SELECT * FROM range(3) AS r(i), LATERAL (SELECT i * 2 AS j) ORDER BY ALL",
  "SELECT * FROM unnest([1, 2, 3]) WITH ORDINALITY AS t(a, b) ORDER BY ALL",
  "SELECT unnest({'a': 1, 'b': {'c': 2}}, recursive := true)",
  'SELECT key, value FROM json_each(\'{"a": 1, "b": [2]}\') ORDER BY ALL',
  "SELECT CASE seq WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'more' END, CASE WHEN seq > 3 THEN 1 END FROM events ORDER BY seq",
  "SELECT 9007199254740993, -9223372036854775808, 123456789012345678901234567890, 1.10, 0.1::FLOAT, 1e30, 99999999999999999999.5, 1_000, 0x1F",
  "SELECT 'it''s', E'a\\nb\\'c', $$dollar$quoted$$, $t$x$t$, 'é\"\\', '\\xAA'::BLOB, '1010'::BIT, U&'x' FROM (VALUES (1)) AS v(\"U\")".replace(
    ", U&'x' FROM (VALUES (1)) AS v(\"U\")",
    "",
  ),
  "SELECT DATE '2026-01-02', TIMESTAMP '2026-01-02 03:04:05.123456', INTERVAL '1 year 2 days', INTERVAL 3 HOURS, TIME '01:02:03', '2026-01-02T00:00:00Z'::TIMESTAMPTZ AT TIME ZONE 'UTC'",
  "SELECT extract(YEAR FROM timestamp), date_trunc('month', timestamp), timestamp::DATE, strftime(timestamp, '%Y') FROM events ORDER BY seq",
  "SELECT 1 BETWEEN 0 AND 2, 1 NOT BETWEEN 0 AND 2, 1 IN (1, 2), 1 NOT IN (2), NULL IS NULL, 1 IS NOT NULL, 1 IS DISTINCT FROM NULL, NOT true, true AND NOT false OR false",
  "SELECT 'abc' LIKE 'a%', 'abc' NOT LIKE 'b%', 'ABC' ILIKE 'a%', 'abc' SIMILAR TO 'a.c', 'abc' GLOB 'a*', 'abc' ~ 'a.c', 'a_c' LIKE 'a\\_c' ESCAPE '\\', 'abc' ^@ 'a'",
  "SELECT -1, - -1, +1, ~1, 2 ** 3, 7 // 2, 7 % 3, 5 & 3, 5 | 3, 1 << 3, 4!, 2 ^ 3, 1 + 2 * 3 - 4 / 5, (1 + 2) * 3, -(2 + 3) ** 2",
  "SELECT CAST('1' AS INTEGER), TRY_CAST('x' AS INTEGER), '1'::DECIMAL(5, 2), [1]::BIGINT[], '[1,2]'::JSON, {'a': 1}::STRUCT(a BIGINT), 'a'::ENUM('a', 'b'), [1, 2]::INT[2]",
  "SELECT 'a' COLLATE NOCASE = 'A', TRY(1 / 0), coalesce(NULL, 1), ifnull(NULL, 2), nullif(1, 1), greatest(1, 2), if(true, 1, 2)",
  "SELECT EXISTS (SELECT 1 FROM events), 1 = ANY (SELECT 1), 5 > ALL (SELECT 1), ARRAY(SELECT seq FROM events ORDER BY seq LIMIT 2), (SELECT max(seq) FROM events)",
  "SELECT seq FROM events UNION ALL SELECT -seq FROM events EXCEPT SELECT 3 ORDER BY 1",
  "SELECT seq FROM events INTERSECT SELECT seq + 1 FROM events ORDER BY 1 LIMIT 3",
  "SELECT 1 AS a, 'x' AS b UNION ALL BY NAME SELECT 'y' AS b, 2 AS a ORDER BY a",
  "(SELECT 1 AS x ORDER BY x LIMIT 1) UNION ALL (SELECT 2 ORDER BY 1) ORDER BY x",
  "VALUES (1, 'a'), (2, NULL) ORDER BY 1",
  "SELECT a.seq FROM events a LEFT JOIN events b ON a.seq = b.seq + 1 WHERE b.seq IS NULL",
  "SELECT count(*) FROM events a FULL JOIN (SELECT 100 AS seq) b USING (seq)",
  "SELECT count(*) FROM events a SEMI JOIN (SELECT 3 AS seq) b USING (seq)",
  "SELECT count(*) FROM events a ANTI JOIN (SELECT 3 AS seq) b ON a.seq = b.seq",
  "SELECT a.x, b.y FROM (VALUES (1), (5)) a(x) ASOF JOIN (VALUES (0), (4)) b(y) ON a.x >= b.y ORDER BY ALL",
  "SELECT * FROM (VALUES (1), (2)) a(x) POSITIONAL JOIN (VALUES (3), (4)) b(y) ORDER BY ALL",
  "SELECT count(*) FROM (SELECT event FROM events) NATURAL JOIN (SELECT 'order' AS event)",
  "SELECT total: count(*), n: max(seq) FROM events",
  'SELECT "select", "from"."a b" FROM (SELECT 1 AS "select", {\'a b\': 2} AS "from")',
  'SELECT seq AS "Seq", event AS \'text alias\' FROM events ORDER BY "Seq" DESC NULLS LAST LIMIT 3',
  "SELECT event FROM events ORDER BY seq ASC NULLS FIRST, event DESC LIMIT 2 OFFSET 1",
  "SELECT json_object('a', 1), json_array(1, 'x'), to_json([1]), json_extract('{\"a\": [1]}', '$.a[0]'), '{\"a\": {\"b\": 2}}'::JSON->'a'->>'b', json_extract('{\"a\":1,\"b\":2}', ['$.a', '/b'])",
  "SELECT regexp_extract('ab12', '(\\d+)', 1), regexp_replace('aa', 'a', 'b', 'g'), split_part('a,b', ',', 2), format('{:>5}|{}', 'x', 1), printf('%05d', 7)",
  "SELECT approx_count_distinct(distinct_id) > 0, histogram(event), arg_max(event, seq), mode(event), median(seq) FROM events",
  "SELECT #2, #1 FROM (SELECT 1, 2)",
  "SELECT count(*) FROM events TABLESAMPLE 100%",
  "SELECT event /* said */ FROM events -- why\n ORDER BY seq LIMIT 1",
  "SELECT current_date = today(), length(uuid()::VARCHAR)",
];

describe("means the same", () => {
  for (const sql of same)
    test(sql, async () => {
      const parsed = await parseStatement(connection, sql);
      expect(await getAnswer(parsed.sql)).toEqual(await getAnswer(sql));
    });
});

/** What DuckDB rejects or reads otherwise, and what it stands for. */
const repaired: readonly [written: string, meant: string][] = [
  ["properties->>'$browser' = 'Safari'", "(properties->>'/$browser') = 'Safari'"],
  ["properties->'$browser' = '\"Safari\"'", "(properties->'/$browser') = '\"Safari\"'"],
  ["prop('$browser') = 'Safari'", "(properties->>'/$browser') = 'Safari'"],
  ["prop('$feature/a~b') = '3'", "(properties->>'/$feature~1a~0b') = '3'"],
  ["PROP(e.properties, 'n') = '3'", "(e.properties->>'n') = '3'"],
  ["prop('{\"n\": 12.0}', 'n') = '12'", "true"],
  ["prop('{\"n\": \"12.0\"}', 'n') = '12.0'", "true"],
  ["prop('{\"n\": null}', 'n') IS NULL", "true"],
  ["properties->>'$feature/a~b' = '3'", "(properties->>'/$feature~1a~0b') = '3'"],
  ["json_extract_string(properties, '$browser') = 'Safari'", "(properties->>'/$browser') = 'Safari'"],
  ["json_extract(properties, ['$browser', 'n'])[2] = 3", "(properties->'n') = 3"],
  ["json_exists(properties, '$none')", "false"],
  ["properties->>'$.n' = '3'", "(properties->>'n') = '3'"],
  ["properties->>'$' IS NULL", "false"],
  ["event = 'signup' OR properties->>'n' = '4'", "event = 'signup' OR (properties->>'n') = '4'"],
  [
    "event = 'x' OR e.properties->>'n' = '4' AND seq > 1",
    "event = 'x' OR ((e.properties->>'n') = '4' AND seq > 1)",
  ],
  ["NOT properties->>'n' = '4'", "NOT ((properties->>'n') = '4')"],
  ["properties->>'n'::INT > 30", "(properties->>'n')::INT > 30"],
  ["1 + properties->>'n'::INT > 30", "1 + (properties->>'n')::INT > 30"],
  ["seq > 3 AND properties->>'n' IN ('4', '9')", "seq > 3 AND (properties->>'n') IN ('4', '9')"],
  [
    "seq > 3 AND properties->'nested'->'list'->1->>'x' = '9'",
    "seq > 3 AND properties.nested.list[1].x = '9'",
  ],
  ["seq > 3 AND properties->>'n' LIKE '1%'", "seq > 3 AND (properties->>'n') LIKE '1%'"],
  ["seq = 3 OR properties->>'none' IS NULL", "true"],
  ["'a' || properties->>'n' = 'a4'", "'a' || (properties->>'n') = 'a4'"],
  [
    "seq = 1 OR lower(properties->>'$browser') = 'safari'",
    "seq = 1 OR (properties->>'/$browser') = 'Safari'",
  ],
  ["seq = 1 OR properties::JSON->>'n' = '4'", "seq = 1 OR (properties->>'n') = '4'"],
  ["seq = 1 OR (properties)->>('n') = '4'", "seq = 1 OR (properties->>'n') = '4'"],
  ["seq = 1 OR json_object('a', seq)->>'a' = '4'", "seq IN (1, 4)"],
  ["list_filter([1, 2], x -> x > 1) = [2]", "true"],
  ["list_transform(['a'], x -> 'b' || x) = ['ba']", "true"],
];

describe("is read as people mean it", () => {
  for (const [written, meant] of repaired)
    test(written, async () => {
      const parsed = await parseStatement(
        connection,
        `SELECT seq FROM events e WHERE ${written} ORDER BY seq`,
      );
      const path = meant.replace(
        "properties.nested.list[1].x",
        "json_extract_string(properties, '/nested/list/1/x')",
      );
      expect(await getAnswer(parsed.sql)).toEqual(
        await getAnswer(`SELECT seq FROM events e WHERE ${path} ORDER BY seq`),
      );
    });

  test("columns have the names of the properties", async () => {
    const { sql } = await parseStatement(
      connection,
      "SELECT properties->>'$browser', prop('n'), prop('x') AS y FROM events",
    );
    const rows = await connection.runAndReadAll(sql);
    expect(rows.columnNames()).toEqual(["$browser", "n", "y"]);
  });
});
