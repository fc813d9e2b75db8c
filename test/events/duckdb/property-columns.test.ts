/** Columns of single properties: the same answers with and without them, whatever the values, whenever they were filled. */

import { expect, test } from "bun:test";
import fc from "fast-check";
import { computeInsight } from "../../../src/events/api/compute-query.ts";
import { duckdbSql } from "../../../src/events/duckdb/sql-dialect.ts";
import { listEvents } from "../../../src/events/list.ts";
import type { PropertyLocation } from "../../../src/events/sql-dialect.ts";
import { exactNumber } from "../../../src/lib/json/exact.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { TestStores } from "../../support/event-store.ts";
import { temporaryFolder } from "../../support/server.ts";

const name = 'it\'s/a~"name" ü';
const { dialect: duckdb } = duckdbSql(undefined as never);
const day = 86_400_000;
const start = Date.UTC(2026, 0, 1);
const now = start + 5 * day;

const unusualValues = [
  "",
  " ",
  "null",
  "true",
  "1",
  "1.0",
  "01",
  "1e3",
  "Straße",
  "STRASSE",
  "\u0000",
  '"',
  "\\",
  "😀",
  "\ufffd",
  0,
  -0,
  1,
  1.5,
  1e21,
  1e-7,
  123456789012345680000,
  true,
  false,
  null,
  [],
  {},
  [1, "1"],
  { a: { b: null } },
  // As Python writes whole numbers that it computes with, and others.
  ...["12.0", "-0.0", "1.2e1", "1e16", "1e400", "123456789012345678901234567890"].map(exactNumber),
  [exactNumber("12.0")],
  "12.0",
  "nan",
  "1_000",
  "x".repeat(5_000),
];
const value = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...unusualValues) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 2 }) },
);
/** Some events lack the property. */
const properties = fc.oneof(
  value.map((wild) => ({ [name]: wild, other: wild })),
  value.map((wild) => ({ other: wild })),
);

const texts = ["exact", "is_not", "icontains", "not_icontains", "is_set", "is_not_set", "regex", "not_regex"];
const getFilter = (operators: readonly string[], values: readonly string[]) =>
  fc.record({
    key: fc.constant(name),
    operator: fc.constantFrom(...operators),
    value: fc.constantFrom(...values),
    type: fc.constant("event"),
  });
const filters = fc.oneof(
  getFilter(texts, ["1", "true", "null", "stra", "1.0", "x", "5", "ß"]),
  getFilter(["gt", "gte", "lt", "lte"], ["1", "1.0", "0", "-5", "1e20"]),
);

function questions(filter: JsonObject): JsonObject[] {
  const dateRange = { date_from: "2026-01-01", date_to: "2026-01-05" };
  const series = [{ event: "thing" }];
  const breakdownFilter = { breakdown: name };
  return [
    { kind: "TrendsQuery", series, dateRange, breakdownFilter },
    { kind: "TrendsQuery", series: [{ event: "thing", properties: [filter] }], dateRange },
    { kind: "TrendsQuery", series: [{ event: "thing", math: "sum", math_property: name }], dateRange },
    {
      kind: "TrendsQuery",
      series: [{ event: "thing", math: "p90", math_property: name }],
      dateRange,
      breakdownFilter,
    },
    {
      kind: "FunnelsQuery",
      series: [{ event: "thing", properties: [filter] }, { event: "thing" }],
      dateRange,
      breakdownFilter,
    },
    { kind: "RetentionQuery", properties: [filter], retentionFilter: { period: "Day", totalIntervals: 5 } },
    { kind: "LifecycleQuery", series: [{ event: "thing", properties: [filter] }], dateRange },
  ];
}

async function answers(stores: TestStores, filter: JsonObject, eventProperties?: PropertyLocation) {
  return await stores.ask(async (store) => {
    const computed = [];
    for (const query of questions(filter)) {
      computed.push(await computeInsight(store, { projectId: 1, timezone: "Europe/Berlin", now, query }));
    }
    const page = await listEvents(store, { projectId: 1, order: "seq", limit: 100, properties: [filter] });
    return { computed, listed: page.events };
  }, eventProperties);
}

const getEvents = (all: readonly JsonObject[]) =>
  all.map((each, index) => ({
    distinctId: `user ${index % 3}`,
    time: start + (index % 4) * day,
    properties: each,
  }));

async function withConnection(
  stores: TestStores,
  work: (connection: never) => Promise<unknown>,
): Promise<void> {
  const connection = await stores.database.connect();
  try {
    await work(connection as never);
  } finally {
    connection.closeSync();
  }
}

async function fillAll(stores: TestStores): Promise<void> {
  const columns = stores.loader.propertyColumns;
  while (columns.isFilling) await withConnection(stores, (connection) => columns.fillChunk(connection));
}

test("the same question has the same answer with and without a column, for old and new events", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(properties, { minLength: 1, maxLength: 12 }),
      fc.array(properties, { maxLength: 12 }),
      filters,
      async (old, fresh, filter) => {
        await using stores = await TestStores.open();
        await stores.load(getEvents(old as JsonObject[]));
        const columns = stores.loader.propertyColumns;
        await withConnection(stores, (connection) => columns.add(connection, [name, "other"]));
        if (fresh.length > 0) await stores.load(getEvents(fresh as JsonObject[]));
        await fillAll(stores);
        const used: string[] = [];
        const location = columns.location("e", (each) => used.push(each));
        expect(location).toMatchObject({ json: "e.properties" });
        const plain = await answers(stores, filter);
        expect(await answers(stores, filter, location)).toEqual(plain);
        expect(used).toContain(name);
        // What stands in the column is what the JSON says, row by row.
        const column = typeof location === "string" ? undefined : location.findColumn(name);
        expect(column).toStartWith("e.property_");
        const wrong = await stores.rows(
          `SELECT count(*) FROM events e WHERE ${column} IS DISTINCT FROM (${duckdb.memberText("e.properties", name)})`,
        );
        expect(wrong).toEqual([[0n]]);
      },
    ),
    { numRuns: 12 },
  );
});

test("a column is not used before it is full, and filling continues where it was after a restart", async () => {
  const folder = temporaryFolder();
  const first = await TestStores.open({ folder });
  await first.rows(insertMany(100_000));
  let columns = first.loader.propertyColumns;
  await withConnection(first, (connection) => columns.add(connection, ["plan"]));
  await withConnection(first, (connection) => columns.fillChunk(connection));
  expect(columns.list()).toEqual([{ name: "plan", filled: 1 - (100_000 - 40_960) / 100_000 }]);
  expect(getColumn(first, "plan")).toBeUndefined();
  first.close();

  await using stores = await TestStores.open({ folder });
  columns = stores.loader.propertyColumns;
  expect(columns.isFilling).toBe(true);
  await stores.load([{ properties: { plan: "new" } }]);
  await fillAll(stores);
  const column = getColumn(stores, "plan");
  expect(column).toBeDefined();
  expect(await stores.rows(`SELECT count(${column}), count(DISTINCT ${column}) FROM events e`)).toEqual([
    [100_001n, 6n],
  ]);
});

test("columns of a version with other texts of numbers are filled again", async () => {
  const folder = temporaryFolder();
  const before = await TestStores.open({ folder });
  await before.load([{ properties: { plan: exactNumber("12.0") } }, { properties: { plan: "12.0" } }]);
  await withConnection(before, (connection) => before.loader.propertyColumns.add(connection, ["plan"]));
  await fillAll(before);
  await before.rows(`UPDATE events AS e SET ${getColumn(before, "plan")!.slice(2)} = '12.0'`);
  await before.rows("DELETE FROM schema_migration WHERE version > 5");
  before.close();

  await using stores = await TestStores.open({ folder });
  expect(getColumn(stores, "plan")).toBeUndefined();
  await fillAll(stores);
  expect(await stores.rows(`SELECT ${getColumn(stores, "plan")} FROM events e ORDER BY seq`)).toEqual([
    ["12"],
    ["12.0"],
  ]);
});

test("rows that go while a column is filled leave no gap", async () => {
  await using stores = await TestStores.open();
  await stores.rows(insertMany(300_000));
  await stores.rows("CHECKPOINT");
  const columns = stores.loader.propertyColumns;
  await withConnection(stores, (connection) => columns.add(connection, ["plan"]));
  await withConnection(stores, (connection) => columns.fillChunk(connection));
  // Whole row groups go, and the row numbers behind them fall.
  await stores.rows("DELETE FROM events WHERE seq <= 150000");
  await stores.rows("CHECKPOINT");
  await fillAll(stores);
  expect(await stores.rows(`SELECT count(*), count(${getColumn(stores, "plan")}) FROM events e`)).toEqual([
    [150_000n, 150_000n],
  ]);
});

test("a retired column is not used any more, and stays as long as a question may be using it", async () => {
  await using stores = await TestStores.open();
  await stores.load([{ properties: { plan: "pro" } }]);
  const columns = stores.loader.propertyColumns;
  await withConnection(stores, (connection) => columns.add(connection, ["plan"]));
  await fillAll(stores);
  columns.retire("plan", performance.now() + 3_600_000);
  expect(getColumn(stores, "plan")).toBeUndefined();
  expect(columns.list()).toEqual([]);
  await withConnection(stores, (connection) => columns.dropRetired(connection));
  expect(await propertyColumnsIn(stores)).toHaveLength(1);
});

test("a dropped column can be added again", async () => {
  await using stores = await TestStores.open();
  await stores.load([{ properties: { plan: "pro" } }]);
  const columns = stores.loader.propertyColumns;
  for (let time = 0; time < 2; time++) {
    await withConnection(stores, (connection) => columns.add(connection, ["plan"]));
    await fillAll(stores);
    const column = getColumn(stores, "plan");
    expect(await stores.rows(`SELECT DISTINCT ${column} FROM events e`)).toEqual([["pro"]]);
    columns.retire("plan", 0);
    await withConnection(stores, (connection) => columns.dropRetired(connection));
    expect(await propertyColumnsIn(stores)).toEqual([]);
    expect(await stores.rows("SELECT count(*) FROM property_column")).toEqual([[0n]]);
    await stores.load([{ properties: { plan: "pro" } }]);
  }
});

test("values that are too long for a column are reported", async () => {
  await using stores = await TestStores.open();
  await stores.load([{ properties: { html: "x".repeat(5_000), plan: "pro" } }]);
  const columns = stores.loader.propertyColumns;
  await withConnection(stores, async (connection) => {
    await columns.add(connection, ["html", "plan"]);
    expect(await columns.fillChunk(connection)).toEqual(["html"]);
  });
});

function getColumn(stores: TestStores, property: string): string | undefined {
  const location = stores.loader.propertyColumns.location("e");
  return typeof location === "string" ? undefined : location.findColumn(property);
}

const propertyColumnsIn = (stores: TestStores) =>
  stores.rows(
    "SELECT column_name FROM duckdb_columns() WHERE column_name LIKE 'property\\_%' ESCAPE '\\' AND table_name = 'events'",
  );

const insertMany = (count: number) =>
  `INSERT INTO events (project_id, historical, seq, uuid, uuid_time, event, distinct_id, timestamp, received_at, mode,
     elements_chain, properties)
     SELECT 1, false, i + 1, uuid(), NULL, 'thing', 'user', make_timestamp(${start * 1_000}),
     make_timestamp(${start * 1_000}), 'full', NULL, '{"plan":"' || (i % 5) || '"}' FROM range(${count}) t(i)`;
