/** Statements read columns of materialized properties, with the results and column names that JSON gives. */

import { beforeAll, expect, test } from "bun:test";
import { parseStatement } from "../../../src/events/query/parse.ts";
import { type QueryRequest, runQuery } from "../../../src/events/query/run-query.ts";
import { createViews, findColumns, type ViewSources, withTypes } from "../../../src/events/query/views.ts";
import { stores, useStores } from "../../support/use-stores.ts";

const used: string[] = [];
let sources: ViewSources;
const hogql: QueryRequest["hogql"] = { weekStartDay: 1, timezone: "UTC", placeholders: {} };

useStores();
beforeAll(async () => {
  const values = ["pro", "free", "", "it's", null, undefined, "Köln", "x.0"];
  await stores.load(
    values.map((plan, index) => ({
      distinctId: `user-${index % 3}`,
      event: index % 2 === 0 ? "a" : "b",
      properties: {
        plan,
        $browser: plan,
        "a/b~c": plan,
        mixed: index % 2 === 0 ? 12 : "12",
        price: index / 2,
      },
    })),
  );
  await stores.mirror.follow();
  const { propertyColumns } = stores.loader;
  const connection = await stores.database.connect();
  await propertyColumns.add(connection, ["plan", "$browser", "a/b~c", "mixed", "price"]);
  while (propertyColumns.isFilling) await propertyColumns.fillChunk(connection);
  connection.closeSync();
  const types = { plan: "String", $browser: "String", "a/b~c": "String", mixed: null, price: "Numeric" };
  for (const [name, type] of Object.entries(types))
    stores.people.$client.run(
      "INSERT INTO property_name (project_id, owner, name, type, last_seen) VALUES (1, 'event', ?, ?, 0)",
      [name, type],
    );
  sources = {
    people: stores.people,
    eventProperties: propertyColumns.location("e", (name) => used.push(name)),
  };
});

async function run(from: ViewSources, sql: string, isHogql: boolean): Promise<unknown> {
  const connection = await stores.database.connect();
  try {
    const request = { projectId: 1, sql, limit: 100, hogql: isHogql ? hogql : undefined };
    const chunks = await runQuery(connection, { ...from, resultBytesMax: 1e6 }, request);
    return JSON.parse(Buffer.concat(chunks).toString());
  } finally {
    connection.closeSync();
  }
}

async function getColumns(sql: string, isHogql: boolean): Promise<string[]> {
  const connection = await stores.database.connect();
  try {
    const options = withTypes(isHogql ? hogql : undefined, sources, 1);
    const parsed = await parseStatement(connection, sql, options, findColumns(sources, 1));
    await createViews(connection, sources, { projectId: 1, ...parsed });
    return [...parsed.propertyColumns.values()];
  } finally {
    connection.closeSync();
  }
}

const reading: [sql: string, columns: number, isHogql?: boolean][] = [
  ["SELECT properties->>'plan' AS plan, count(*) AS n FROM events GROUP BY plan ORDER BY ALL", 1],
  ["SELECT properties->>'plan', count(*) FROM events GROUP BY 1 ORDER BY ALL", 1],
  ["SELECT e.properties->>'plan', count(*) FROM events e GROUP BY ALL ORDER BY ALL", 1],
  [
    "SELECT E.Properties->>'$browser', events FROM (SELECT 1 AS events), (SELECT E.properties->>'plan' AS p FROM events E)",
    0,
  ],
  [
    "SELECT properties->>'$browser' FROM events WHERE properties->>'plan' = 'pro' ORDER BY properties->>'a/b~c'",
    2,
  ],
  ["SELECT properties->>'/a~1b~0c' AS c, max(event) FROM events GROUP BY ALL HAVING c <> '' ORDER BY ALL", 1],
  ["SELECT prop('price') AS price, prop('mixed') FROM events ORDER BY ALL", 2],
  ["SELECT prop('plan') FROM events ORDER BY ALL", 1],
  ["SELECT upper(properties->>'plan') AS u FROM events ORDER BY ALL", 1],
  ["SELECT a.n FROM (SELECT count(DISTINCT properties->>'plan') AS n FROM events) a", 1],
  [
    "WITH c AS (SELECT distinct_id, properties->>'plan' AS p FROM events) SELECT p, count(*) FROM c GROUP BY ALL ORDER BY ALL",
    1,
  ],
  ["SELECT person_id IS NULL AS u, properties->>'plan' AS p FROM events ORDER BY ALL", 1],
  ["SELECT properties.plan AS p, count() AS n FROM events GROUP BY p ORDER BY p, n", 1, true],
];
const notReading = [
  "SELECT upper(properties->>'plan') FROM events ORDER BY ALL",
  "SELECT *, properties->>'plan' AS p FROM events ORDER BY seq",
  "SELECT properties->>'price' AS p, properties->>'mixed' AS m FROM events ORDER BY ALL",
  "SELECT properties->>'absent' AS p FROM events",
  `SELECT (SELECT properties->>'plan' FROM (SELECT '{"plan":"inner"}'::JSON AS properties) t) AS p FROM events`,
  "SELECT (SELECT max(properties->>'plan') FROM persons) AS p FROM events",
  `SELECT properties->>'plan' AS p FROM (SELECT '{"plan":"inner"}'::JSON AS properties)`,
  "SELECT q.properties->>'plan' AS p FROM events e JOIN events q ON q.uuid = e.uuid ORDER BY ALL",
  "SELECT e AS row, properties->>'plan' AS p FROM events e ORDER BY seq",
  "SELECT properties->>'plan' AS p FROM events e(a, b) ORDER BY ALL",
  "SELECT list_transform([1], x -> x) AS l, properties->>'plan' AS p FROM events ORDER BY ALL",
  "SELECT properties->>'$.plan' AS p FROM events ORDER BY ALL",
];

for (const [sql, count, isHogql = false] of [
  ...reading,
  ...notReading.map((sql): [string, number] => [sql, 0]),
])
  test(`${count} columns: ${sql}`, async () => {
    const fromJson = await run({ people: stores.people }, sql, isHogql).catch((error) => String(error));
    if (typeof fromJson !== "string") expect(await getColumns(sql, isHogql)).toHaveLength(count);
    expect(await run(sources, sql, isHogql).catch((error) => String(error))).toEqual(fromJson);
  });

test("statements count as uses of the properties", async () => {
  used.length = 0;
  await run(sources, "SELECT properties->>'plan' AS p, properties->>'absent' AS a FROM events", false);
  expect([...new Set(used)].sort()).toEqual(["absent", "plan"]);
});
