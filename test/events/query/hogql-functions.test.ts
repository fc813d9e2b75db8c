/** Properties, functions and syntax of HogQL, as PostHog's clients write them, over the event store. */

import { beforeAll, describe, expect, test } from "bun:test";
import { aggregates, templates } from "../../../src/events/query/hogql-functions.ts";
import { runQuery } from "../../../src/events/query/run-query.ts";
import { stores, useStores } from "../../support/use-stores.ts";
import { examples, ofAllEvents } from "./hogql-examples.ts";

useStores();
beforeAll(async () => {
  const time = Date.UTC(2026, 0, 4, 13, 7, 42);
  const common = {
    $browser: "Firefox",
    "a b": "c",
    "$feature/x-y": "on",
    nested: { deep: { er: "z" }, list: ["p", "q"] },
  };
  await stores.load([
    {
      event: "order",
      distinctId: "ann",
      time,
      properties: {
        ...common,
        plan: "pro",
        amount: 9,
        paid: true,
        $session_id: "s1",
        $set: { tier: "gold", age: 41 },
      },
    },
    {
      event: "order",
      distinctId: "ann",
      time: time + 3_600_000,
      properties: { ...common, plan: "free", amount: 10.5, paid: false, order: "first" },
    },
    {
      event: "visit",
      distinctId: "bob",
      time: time + 86_400_000,
      properties: {
        $set: { tier: "it's" },
        url: "https://u@shop.example:81/a/b?q=1",
        at: "2026-02-03T04:05:06+02:00",
        none: null,
      },
    },
  ]);
  await stores.mirror.follow();
  for (const [owner, name, type] of [
    ["event", "amount", "Numeric"],
    ["event", "paid", "Boolean"],
    ["event", "plan", "String"],
    ["person", "age", "Numeric"],
  ] as const)
    stores.people.$client
      .query("INSERT INTO property_name (project_id, owner, name, type, last_seen) VALUES (1, ?, ?, ?, 0)")
      .run(owner, name, type);
});

async function ask(sql: string, { weekStartDay = 1 as 0 | 1, placeholders = {} } = {}) {
  const connection = await stores.database.connect();
  try {
    const sources = { people: stores.people, resultBytesMax: 1_000_000 };
    const hogql = { weekStartDay, timezone: "UTC", placeholders };
    const chunks = await runQuery(connection, sources, { projectId: 1, sql, limit: 100, hogql });
    return JSON.parse(Buffer.concat(chunks).toString()) as {
      results: unknown[][];
      columns: string[];
      types: string[][];
    };
  } finally {
    connection.closeSync();
  }
}
const value = async (expression: string) =>
  (await ask(`SELECT ${expression} FROM events WHERE seq = 1`)).results[0]![0];
const count = async (condition: string) =>
  Number((await ask(`SELECT count() FROM events WHERE ${condition}`)).results[0]![0]);

describe("a property", () => {
  test.each<[string, number]>([
    ["properties.plan = 'pro'", 1],
    ["properties.plan != 'pro'", 1],
    ["properties.plan IN ('pro', 'free')", 2],
    ["properties.plan LIKE 'p%'", 1],
    ["properties.plan ILIKE 'P%'", 1],
    ["properties.plan IS NULL", 1],
    ["properties.none IS NULL", 3],
    ["properties.$browser = 'Firefox'", 2],
    ["events.properties.$browser = 'Firefox'", 2],
    ["properties['a b'] = 'c'", 2],
    ["properties.`a b` = 'c'", 2],
    ["properties.\"a b\" = 'c'", 2],
    ["properties.`$feature/x-y` = 'on'", 2],
    ["properties['$feature/x-y'] = 'on'", 2],
    ["properties.nested.deep.er = 'z'", 2],
    ["properties.nested['deep'].er = 'z'", 2],
    ["properties.order = 'first'", 1],
    ["properties.amount = 9", 1],
    ["properties.amount = '9'", 1],
    ["properties.amount > 9.5", 1],
    ["9.5 < properties.amount", 1],
    ["properties.amount IN (9, 10.5)", 2],
    ["properties.amount BETWEEN 9 AND 10", 1],
    ["properties.amount * 2 = 18", 1],
    ["properties.amount >= -1", 2],
    ["properties.amount >= '9'::int AND properties.amount < CAST(10 AS double)", 1],
    ["properties.amount > 8.5::DECIMAL(3, 1)", 2],
    ["properties.plan > 5", 0],
    ["properties.paid = true", 1],
    ["properties.paid = 'true'", 1],
    ["properties.plan = properties.plan", 2],
    ["$session_id = 's1'", 1],
    ["person.properties.tier = 'gold'", 2],
    ["events.person.properties.tier = 'gold'", 2],
    ["person.properties.tier = 'it''s'", 1],
    ["person.properties.tier = 'it\\'s'", 1],
    ["person.properties.age > 40", 2],
    ["person.properties['tier'] = 'gold'", 2],
    ["person.id = person_id", 3],
    ["person.created_at < now()", 3],
    ["created_at = received_at AND events.created_at = received_at", 3],
    ["person_id IN (SELECT id FROM persons WHERE properties.tier = 'gold')", 2],
    ["distinct_id = 'ann' AND event == 'order'", 2],
    ["NOT (properties.plan = 'pro')", 1],
    ["timestamp >= toDateTime('2026-01-05 00:00:00')", 1],
    ["timestamp > '2026-01-05'", 1],
    ["timestamp < now() - INTERVAL 1 DAY AND timestamp < now() - toIntervalDay(1)", 3],
    ["and(properties.plan = 'pro', or(equals(event, 'order'), notEquals(event, 'x')))", 1],
    ["in(properties.plan, ('pro', 'free'))", 2],
    ["in(properties.plan, tuple('pro'))", 1],
    ["notIn(event, ('order', 'x'))", 1],
    ["like(event, 'o%') and ilike(event, 'O%')", 2],
    ["event NOT LIKE 'o%'", 1],
    ["event NOT IN ('order')", 1],
    ["event = 'order' and (properties.plan = 'pro' or (properties.plan = 'x'))", 1],
  ])("%s holds for %j events", async (condition, expected) => {
    expect(await count(condition)).toBe(expected);
  });

  test("of another table, a subquery or a common table is found by its alias", async () => {
    const sql = [
      "SELECT e.properties.plan, p.properties.tier FROM events e JOIN persons p ON p.id = e.person_id ORDER BY e.seq LIMIT 1",
      "WITH x AS (SELECT properties.plan, properties.$browser FROM events) SELECT plan, $browser FROM x ORDER BY 1 DESC LIMIT 1",
      "SELECT plan, count() FROM (SELECT properties.plan FROM events) GROUP BY plan ORDER BY plan LIMIT 1",
    ];
    expect(await Promise.all(sql.map(async (one) => (await ask(one)).results))).toEqual([
      [["pro", "gold"]],
      [["pro", "Firefox"]],
      [["free", 1]],
    ]);
  });
});

/** By function: expressions over the first event, and their values. */

describe("a function", () => {
  test.each(examples)("%s is %j", async (expression, expected) => {
    expect(await value(expression)).toEqual(expected as never);
  });

  test.each(ofAllEvents)("over all events, %s is %j", async (expression, expected) => {
    expect((await ask(`SELECT ${expression} FROM events`)).results).toEqual([[expected]] as never);
  });

  test("that has a translation has an example, a variant's own aside", () => {
    const written = [...examples, ...ofAllEvents].map(([text]) => text.toLowerCase()).join("\n");
    const bare = (name: string) => name.replace(/(?:8|16|32|64)?(?:or(?:null|zero|default))?$/, "");
    const missing = Object.keys(templates).filter(
      (name) => !written.includes(`${bare(name)}`) && !sameAsNamed.test(name),
    );
    const others = "covar|var|uniqhll12|uniqcombined|uniqtheta|sumdistinct|anylast|stddev";
    const aggregatesMissing = Object.keys(aggregates).filter(
      (name) => !written.includes(`${name}(`) && !new RegExp(others).test(name),
    );
    expect([missing, aggregatesMissing]).toEqual([[], []]);
  });

  test("starts a week on the project's first day", async () => {
    const sql = "SELECT toStartOfWeek(timestamp) FROM events WHERE seq = 1";
    expect((await ask(sql, { weekStartDay: 0 })).results).toEqual([["2026-01-04"]]);
  });

  test("that HogQL does not have, or that reads more than the views, is rejected", async () => {
    for (const sql of [
      "SELECT sleepy(1)",
      "SELECT getenv('HOME')",
      "SELECT file('x')",
      "SELECT readTextIf('x', true)",
      "SELECT * FROM url('x')",
    ])
      await expect(ask(sql)).rejects.toThrow(/not allowed|does not exist/);
  });
});
const sameAsNamed = /^equals|notequals$/;

describe("a property of one type", () => {
  test.each<[string, unknown[][]]>([
    [
      "SELECT properties.amount, properties.paid, properties.plan FROM events WHERE seq = 1",
      [[9, true, "pro"]],
    ],
    ["SELECT max(properties.amount), min(properties.amount) FROM events", [[10.5, 9]]],
    [
      "SELECT argMax(event, properties.amount), maxIf(properties.amount, properties.paid = true) FROM events",
      [["order", 9]],
    ],
    [
      "SELECT seq FROM events WHERE properties.amount IS NOT NULL ORDER BY properties.amount DESC",
      [[2], [1]],
    ],
    [
      "SELECT properties.amount AS n, count() FROM events GROUP BY properties.amount ORDER BY n LIMIT 1",
      [[9, 1]],
    ],
    ["SELECT properties.paid, count() FROM events GROUP BY properties.paid ORDER BY 1 LIMIT 1", [[false, 1]]],
    ["SELECT person.properties.age FROM events WHERE seq = 1", [[41]]],
    ["SELECT properties.age FROM persons WHERE properties.tier = 'gold'", [[41]]],
    [
      "SELECT e.properties.amount, p.properties.age FROM events e JOIN persons p ON p.id = e.person_id WHERE e.seq = 1",
      [[9, 41]],
    ],
    ["SELECT n FROM (SELECT properties.amount AS n FROM events) WHERE n = '9'", [[9]]],
    ["SELECT properties.amount AS n FROM events WHERE n > 9", [[10.5]]],
    [
      "SELECT groupArray(1)(properties.amount), quantiles(0, 1)(properties.amount) FROM events",
      [[[9], [9, 10.5]]],
    ],
    [
      "SELECT lower(properties.amount), concat(properties.amount, 'x') FROM events WHERE seq = 1",
      [["9", "9x"]],
    ],
    ["SELECT ifNull(properties.nope, 0), coalesce(properties.amount, 0) FROM events WHERE seq = 1", [[0, 9]]],
    [
      "SELECT least(properties.amount, 5), greatest(properties.amount, 50), nullIf(properties.amount, 9) FROM events WHERE seq = 1",
      [[5, 50, null]],
    ],
    [
      "SELECT if(seq = 1, properties.amount, 0), multiIf(seq = 1, properties.amount, NULL) FROM events WHERE seq = 1",
      [[9, "9"]],
    ],
    [
      "SELECT if(seq = 1, properties.plan, 'none'), coalesce(properties.paid, false) FROM events WHERE seq = 1",
      [["pro", true]],
    ],
    [
      "SELECT coalesce(properties.amount, 0) > properties.nope, coalesce(properties.amount, 0) > 5 FROM events WHERE seq = 1",
      [[null, true]],
    ],
    ["SELECT coalesce(properties.amount, 'none') FROM events WHERE seq = 3", [["none"]]],
    ["SELECT DISTINCT properties.amount FROM events WHERE properties.amount < 10", [[9]]],
  ])("%s returns %j", async (sql, expected) => {
    expect((await ask(sql)).results).toEqual(expected);
  });
});

test("columns have the names that PostHog gives them", async () => {
  const { columns } = await ask(
    "SELECT DISTINCT event, count(), toStartOfDay(timestamp), properties.$browser, properties['a b'], count() AS n, e.properties.plan, person.properties.tier, person.id, $session_id, created_at FROM events e GROUP BY ALL",
  );
  expect(columns).toEqual([
    "event",
    "count()",
    "toStartOfDay(timestamp)",
    "$browser",
    "a b",
    "n",
    "plan",
    "tier",
    "id",
    "$session_id",
    "created_at",
  ]);
});

test("a typical statement of a client: groups, orders, limits", async () => {
  const { results, types } = await ask(`
    -- by day
    SELECT toStartOfDay(timestamp) AS day, uniq(person_id) AS users, countIf(properties.plan = 'pro') AS pro
    FROM events WHERE timestamp >= toDateTime('2026-01-01') AND event IN ('order', 'visit')
    GROUP BY day HAVING users > 0 ORDER BY day DESC LIMIT 10`);
  expect(results.map(([, ...rest]) => rest)).toEqual([
    [1, 0],
    [1, 1],
  ]);
  expect(types.map(([, type]) => type)).toEqual(["DateTime64(6, 'UTC')", "Int64", "Int64"]);
});

test("placeholders are replaced, and unknown ones rejected", async () => {
  const sql = "SELECT count() FROM events WHERE {filters} AND event = {event} AND seq IN {variables.ids}";
  const placeholders = { filters: "true", event: "'order'", "variables.ids": "(1, 2)" };
  expect((await ask(sql, { placeholders })).results).toEqual([[2]]);
  await expect(ask("SELECT {x}")).rejects.toThrow("{x}");
  expect((await ask("SELECT {'a': 1} AS s")).results).toEqual([[{ a: 1 }]]);
});

test.each([
  ["terms", `SELECT ${Array(30_000).fill("1").join("+")}`],
  ["properties", `SELECT ${Array(4_000).fill("properties.a").join("+")}`],
  ["calls", `SELECT ${"toString(".repeat(190)}1${")".repeat(190)}`],
  ["parameters", `SELECT ${"f(1)(".repeat(190)}1${")".repeat(190)}`],
  ["names", `SELECT properties.${Array(99).fill("a").join(".")}`],
  ["a half string", "SELECT 'a\\'"],
  ["half brackets", "SELECT f(1)("],
  ["a half name", "SELECT `a"],
])("a statement of many %s ends with rows or a named error", async (_, sql) => {
  const error = await ask(sql).then(
    () => undefined,
    (reason: Error & { code?: string }) => reason.code,
  );
  expect([undefined, "statement_refused", "statement_failed"]).toContain(error);
});

test("numbers keep their digits", async () => {
  expect(await value("[toString(12345678901234567890123), toString(1.10)]")).toEqual([
    "12345678901234567890123",
    "1.10",
  ]);
  expect(await value("arraySum(arrayFilter(x -> x > 0.10, [1.10]))")).toBe(1.1);
});
