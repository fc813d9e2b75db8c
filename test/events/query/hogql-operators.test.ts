/** HogQL's operators and clauses that DuckDB's grammar lacks: `? :`, `??`, `?.` and `LIMIT n BY`. */

import { beforeAll, describe, expect, test } from "bun:test";
import { runQuery } from "../../../src/events/query/run-query.ts";
import { stores, useStores } from "../../support/use-stores.ts";

useStores();
beforeAll(async () => {
  const events = [
    ...["a", "a", "a", "b", "b", "c"].map((event, index) => ({ event, amount: index + 1 })),
    { event: "a", amount: 0 },
  ];
  await stores.load(
    events.map(({ event, amount }, index) => ({
      event,
      distinctId: `user-${index % 2}`,
      time: Date.UTC(2026, 0, 1, index),
      properties: { amount, ...(index === 0 ? { plan: "pro", nested: { "?": "x" } } : {}) },
    })),
  );
  await stores.mirror.follow();
});

async function ask(sql: string) {
  const connection = await stores.database.connect();
  try {
    const sources = { people: stores.people, resultBytesMax: 1_000_000 };
    const hogql = { weekStartDay: 1 as const, timezone: "UTC", placeholders: { n: "2", yes: "true" } };
    const chunks = await runQuery(connection, sources, { projectId: 1, sql, limit: 100, hogql });
    return JSON.parse(Buffer.concat(chunks).toString()) as { columns: string[]; results: unknown[][] };
  } finally {
    connection.closeSync();
  }
}

describe("an operator", () => {
  test.each<[string, unknown]>([
    ["1 > 0 ? 'yes' : 'no'", "yes"],
    ["seq = 2 ? 1 : 2", 2],
    ["seq = 1 OR seq = 9 ? 'in' : 'out'", "in"],
    ["seq = 2 ? 'a' : seq = 1 ? 'b' : 'c'", "b"],
    ["seq = 1 ? seq = 2 ? 'a' : 'b' : 'c'", "b"],
    ["(seq = 1 ? 2 : 3) + 1", 3],
    ["concat('?', seq = 1 ? ':' : '?')", "?:"],
    ["[seq = 1 ? 1 : 0, 2][1]", 1],
    ["{'a': seq = 1 ? 1 : 0}", { a: 1 }],
    ["CASE WHEN seq = 1 ? true : false THEN 'x' ?? 'y' ELSE 'z' END", "x"],
    ["CASE seq WHEN 1 THEN true END ? 'x' : 'y'", "x"],
    ["arrayMap(x -> x > 1 ? x : 0, [1, 2])", [0, 2]],
    ["seq = 1 ? left('abc', 1) : right('abc', 1)", "a"],
    ["seq = 1 ?.5 : 2.5", 0.5],
    ["{yes} ? {n} : 3", 2],
    ["seq = 1 ? 5::INT : 6::INT", 5],
    ["properties.plan ?? 'none'", "pro"],
    ["properties.none ?? properties.other ?? 'none'", "none"],
    ["properties.none ?? 0", 0],
    ["properties.amount ?? 0", 1],
    ["NULL ?? 1 + 1", 2],
    // Comparisons bind more, AND and NOT less.
    ["NULL ?? 1 = 1", true],
    ["NULL ?? false OR true", true],
    ["NOT NULL ?? true", false],
    ["seq IS NOT NULL ?? false", true],
    ["NULL ?? 'a' NOT IN ('b')", true],
    ["NULL ?? 2 BETWEEN 1 AND 3", true],
    ["NULL ?? 5 NOT BETWEEN 1 AND 3", true],
    ["seq = 1 ? NULL ?? 'x' : 'y'", "x"],
    ["properties->>'none' ?? 'x'", "x"],
    ["properties?.plan", "pro"],
    ["properties.nested?.['?']", "x"],
    ["'a?b:c' || \"event\"", "a?b:ca"],
    ["(SELECT count() > 0 ? 'some' : 'none' FROM events)", "some"],
  ])("%s is %j", async (expression, expected) => {
    const { results } = await ask(`SELECT ${expression} FROM events WHERE seq = 1`);
    expect(results[0]?.[0] as never).toEqual(expected as never);
  });

  test("works in every clause, and names its column by its source", async () => {
    const { columns, results } = await ask(
      "SELECT event = 'a' ? 'first' : 'other', count() -- ? :\n FROM events WHERE (properties.amount ?? 0) > 0 " +
        "GROUP BY event = 'a' ? 'first' : 'other' HAVING count() > 0 ? true : false " +
        "ORDER BY count() > 1 ? 1 : 2 DESC, count() ?? 0 DESC NULLS LAST LIMIT 5",
    );
    expect(columns).toEqual(["event = 'a' ? 'first' : 'other'", "count()"]);
    expect(results.length).toBeGreaterThan(0);
  });

  test.each([
    ["SELECT 1 ? 2", "condition ? value : otherwise"],
    ["SELECT ? 1 : 2", "condition ? value : otherwise"],
    ["SELECT 1 ? : 2", "condition ? value : otherwise"],
    ["SELECT 1 ? 2 :", "condition ? value : otherwise"],
    [`SELECT ${"1 ? 2 : ".repeat(300)}3`, "at most 200 deep"],
    ["SELECT ?", "condition ? value : otherwise"],
    ["SELECT 1 ??", "value ?? otherwise"],
    ["SELECT ?? 1", "value ?? otherwise"],
    ["SELECT event FROM events LIMIT BY event", "LIMIT 3 BY event"],
    ["SELECT event FROM events LIMIT 1 BY", "LIMIT 3 BY event"],
    ["SELECT DISTINCT event FROM events LIMIT 1 BY event", "DISTINCT"],
  ])("that is half is rejected: %s", async (sql, message) => {
    await expect(ask(sql)).rejects.toThrow(message);
  });

  test.each([
    ["brackets", `SELECT ${"(".repeat(30_000)}1 ? 2 : 3`],
    ["cases", `SELECT ${"CASE ".repeat(10_000)} ? 1 : 2`],
    ["alternatives", `SELECT ${"NULL ?? ".repeat(5_000)}1`],
    ["questions", `SELECT ${"?".repeat(60_000)}`],
    ["limits", `SELECT 1 ${"LIMIT 1 ".repeat(7_000)}`],
    ["limits by", `SELECT 1 ${"LIMIT 1 BY ".repeat(5_000)}`],
  ])("a statement of many %s ends soon", async (_, sql) => {
    const start = performance.now();
    const code = await ask(sql).then(
      () => undefined,
      (reason: Error & { code?: string }) => reason.code,
    );
    expect([undefined, "statement_refused", "statement_failed"]).toContain(code);
    expect(performance.now() - start).toBeLessThan(10_000);
  });
});

describe("LIMIT BY", () => {
  test.each<[string, unknown[][]]>([
    [
      "SELECT event, seq FROM events ORDER BY seq LIMIT 1 BY event",
      [
        ["a", 1],
        ["b", 4],
        ["c", 6],
      ],
    ],
    [
      "SELECT event, seq FROM events ORDER BY seq DESC LIMIT 2 BY event LIMIT 3",
      [
        ["a", 7],
        ["c", 6],
        ["b", 5],
      ],
    ],
    ["SELECT seq FROM events ORDER BY seq LIMIT 1 OFFSET 1 BY event", [[2], [5]]],
    ["SELECT seq FROM events ORDER BY seq limit 1, 1 by event", [[2], [5]]],
    ["SELECT seq FROM events ORDER BY seq LIMIT {n} BY event, distinct_id LIMIT 2 OFFSET 3", [[4], [5]]],
    // By aliases, positions and properties.
    [
      "SELECT toInt(properties.amount) AS n, event AS e FROM events ORDER BY n DESC LIMIT 1 BY e",
      [
        [6, "c"],
        [5, "b"],
        [3, "a"],
      ],
    ],
    [
      "SELECT event, seq FROM events ORDER BY 2 DESC LIMIT 1 BY 1",
      [
        ["a", 7],
        ["c", 6],
        ["b", 5],
      ],
    ],
    [
      "SELECT event, distinct_id, count() AS n FROM events GROUP BY event, distinct_id ORDER BY n DESC, event, distinct_id LIMIT 1 BY event",
      [
        ["a", "user-0", 3],
        ["b", "user-0", 1],
        ["c", "user-1", 1],
      ],
    ],
    ["SELECT count() FROM (SELECT event FROM events LIMIT 1 BY event)", [[3]]],
    [
      "WITH top AS (SELECT event, seq FROM events ORDER BY seq LIMIT 1 BY event) SELECT sum(seq) FROM top",
      [[11]],
    ],
    ["SELECT event FROM events LIMIT 0 BY event", []],
    ["SELECT seq FROM events ORDER BY seq LIMIT 1 BY event = 'a' ? 'x' : 'y'", [[1], [4]]],
    [
      "SELECT e FROM (SELECT event AS e, seq FROM events) ORDER BY e LIMIT 1 BY e -- end",
      [["a"], ["b"], ["c"]],
    ],
    ["SELECT event FROM events ORDER BY seq LIMIT 2", [["a"], ["a"]]],
  ])("%s returns %j", async (sql, expected) => {
    expect((await ask(sql)).results).toEqual(expected);
  });

  test("of unordered rows keeps as many of each", async () => {
    const { results } = await ask("SELECT event FROM events LIMIT 2 BY event");
    expect(results.flat().sort()).toEqual(["a", "a", "b", "b", "c"]);
  });
});
