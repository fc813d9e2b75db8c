/** Every function that statements may call takes a property as an argument, as it takes any other text. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import type { DuckDBConnection } from "@duckdb/node-api";
import fc from "fast-check";
import { allowedFunctions, pathFunctions } from "../../../src/events/query/functions.ts";
import { parseStatement } from "../../../src/events/query/parse.ts";
import { createViews } from "../../../src/events/query/views.ts";
import { TestStores } from "../../support/event-store.ts";

let stores: TestStores;
let connection: DuckDBConnection;
/** What DuckDB has, with the number of arguments of each form. */
let forms: { name: string; count: number }[];
beforeAll(async () => {
  stores = await TestStores.open();
  await stores.load([
    { event: "order", distinctId: "ann", time: Date.UTC(2026, 0, 2), properties: { $plan: "a,b", x: "a,b" } },
  ]);
  connection = await stores.database.connect();
  const views = { projectId: 1, views: new Set(["events"] as const), readsPersonId: false };
  await createViews(connection, { people: stores.people }, views);
  const rows = await connection.runAndReadAll(
    "SELECT DISTINCT function_name, len(parameters) FROM duckdb_functions() WHERE function_type IN ('scalar', 'macro', 'aggregate')",
  );
  forms = (rows.getRows() as [string, bigint][])
    .map(([name, count]) => ({ name, count: Number(count) }))
    .filter(({ name, count }) => /^[a-z]\w*$/.test(name) && count > 0 && count < 5)
    .filter(({ name }) => allowedFunctions.has(name) && !pathFunctions.has(name));
});
afterAll(async () => {
  connection.closeSync();
  await stores[Symbol.asyncDispose]();
});

/** What DuckDB says of a statement as it stands, values that differ at each run aside. */
async function result(sql: string): Promise<string> {
  try {
    const rows = await connection.runAndReadAll(`SELECT * FROM (${sql}) AS t(v)`);
    return rows.columnTypes().map(String).join();
  } catch (error) {
    return String(error).split("\n")[0]!;
  }
}

const written = [
  "prop('$plan')",
  "prop('x')",
  "properties->>'$plan'",
  "json_extract_string(properties, '$plan')",
];
/** The same as DuckDB takes it. */
const plain = `json_extract_string(properties, '/$plan')`;

test("a property is an argument of every function and macro, at every place", async () => {
  expect(forms.length).toBeGreaterThan(300);
  const names = new Set(forms.map(({ name }) => name));
  for (const name of ["nullif", "split_part", "list_prepend", "array_append"]) expect(names).toContain(name);
  for (const { name, count } of forms) {
    for (let at = 0; at < count; at++) {
      const call = (argument: string) =>
        `${name}(${Array.from({ length: count }, (_, n) => (n === at ? argument : "'1'")).join(", ")})`;
      const expected = await result(`SELECT ${call(plain)} FROM temp.main.flagkeep_events AS events`);
      // A form of its own, such as position('a' IN 'b').
      if (expected.startsWith("Error: Parser Error")) continue;
      for (const property of written.slice(1, 3)) {
        const parsed = await parseStatement(connection, `SELECT ${call(property)} FROM events`);
        const found = await result(parsed.sql);
        const isSame = found === expected || (!/Error/.test(expected) && !/Error/.test(found));
        const isRejected =
          /Error/.test(expected) && /Error/.test(found) && !/named|:=|parameter/i.test(found);
        expect(isSame || isRejected, `${call(property)}: ${found} instead of ${expected}`).toBe(true);
      }
    }
  }
}, 60_000);

/** Text expressions that may stand anywhere, with a property in the middle. */
const { expression } = fc.letrec<{ expression: string }>((tie) => ({
  expression: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom(...written).map((text) => `(${text})`),
    tie("expression").map((text) => `nullif(${text}, '')`),
    tie("expression").map((text) => `split_part(${text}, ',', 1)`),
    tie("expression").map((text) => `list_prepend(${text}, ['z'])[1]`),
    tie("expression").map((text) => `array_append(['z'], ${text})[2]`),
    tie("expression").map((text) => `CASE WHEN ${text} IS NULL THEN '' ELSE ${text} END`),
    tie("expression").map((text) => `coalesce(${text}, 'none')`),
    tie("expression").map((text) => `(SELECT ${text})`),
  ),
}));
const place = fc.constantFrom(
  (text: string) => `SELECT ${text} AS v FROM events`,
  (text: string) => `SELECT max(event) AS v FROM events GROUP BY ${text} HAVING max(${text}) = 'a,b' OR true`,
  (text: string) => `SELECT event AS v FROM events WHERE ${text} <> 'q' ORDER BY ${text}`,
  (text: string) =>
    `SELECT first_value(${text}) OVER (PARTITION BY ${text} ORDER BY ${text}) AS v FROM events`,
);

test("a property is an argument at every depth and in every clause", async () => {
  await fc.assert(
    fc.asyncProperty(expression, place, async (text, statement) => {
      const parsed = await parseStatement(connection, statement(text));
      const rows = await connection.runAndReadAll(parsed.sql);
      expect(rows.getRows()).toHaveLength(1);
    }),
    { numRuns: 100 },
  );
});

test("a column of the select list is named after the property", async () => {
  const { sql } = await parseStatement(
    connection,
    "SELECT prop('x'), properties->>'$plan', prop('x') AS mine, nullif(prop('x'), '') AS n FROM events",
  );
  expect((await connection.runAndReadAll(sql)).columnNames()).toEqual(["x", "$plan", "mine", "n"]);
});
