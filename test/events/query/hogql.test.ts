/** `HogQLQuery` objects, as clients made for PostHog send and save them (contract, management-api 6.3 and 6.7). */

import { beforeAll, describe, expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { toStatement } from "../../../src/events/query/hogql.ts";
import { QueryResultWithLists } from "../../../src/events/query/run-query.ts";
import { flagkeep, ServerProcess } from "../../support/server.ts";
import { server, useServer } from "../../support/use-server.ts";

useServer({ args: ["--query-result-limit", "1MiB"] });
beforeAll(async () => {
  await server.batch([
    { event: "a", distinct_id: "x", properties: { n: 1, tags: ["t"] } },
    { event: "b", distinct_id: "y", properties: { n: "two" } },
  ]);
  await server.eventsWhenStored(2);
});

async function send(path: string, body: unknown, method = "POST", key?: string) {
  const response = await server.api(`/api/projects/1/${path}`, { method, body, key });
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
  return { status: response.status, body: (await response.json()) as any };
}
const ask = (query: unknown, more: object = {}) => send("query/", { query, ...more });
const hogql = (query: unknown) => ({ kind: "HogQLQuery", query });

test.each([
  [hogql("SELECT 1"), "SELECT 1"],
  [{ kind: "DataVisualizationNode", source: hogql("SELECT 1") }, "SELECT 1"],
  [{ kind: "DataTableNode", source: { kind: "Any", source: hogql("SELECT 1") } }, "SELECT 1"],
  [{ kind: "HogQLQuery" }, null],
  [{ kind: "DataVisualizationNode", source: { kind: "TrendsQuery" } }, undefined],
  [{ kind: "DataVisualizationNode" }, undefined],
  [{ query: "SELECT 1" }, undefined],
  ["SELECT 1", undefined],
  [null, undefined],
  [[hogql("SELECT 1")], undefined],
])("the statement of %j is %j", (query, statement) => {
  expect(toStatement(query as never)).toBe(statement as never);
});

describe("an answer", () => {
  const sql =
    "SELECT event, timestamp, properties, properties->>'n' AS n, 1 AS one, 1.5::DOUBLE AS half, true AS yes, [1] AS list, null AS nothing FROM events ORDER BY seq";

  test("has lists of values, types and hasMore in addition to the other members", async () => {
    for (const query of [
      hogql(sql),
      { kind: "DataVisualizationNode", source: hogql(sql), display: "ActionsTable" },
    ]) {
      const { status, body } = await ask(query);
      expect(status).toBe(200);
      expect(Value.Check(QueryResultWithLists, body)).toBe(true);
      const names = ["event", "timestamp", "properties", "n", "one", "half", "yes", "list", "nothing"];
      expect([body.columns, body.truncated, body.hasMore]).toEqual([names, false, false]);
      expect(body.results).toEqual(
        body.rows.map((row: Record<string, unknown>) => names.map((name) => row[name])),
      );
      expect(body.results[0][0]).toBe("a");
      expect(body.types).toEqual([
        ["event", "String"],
        ["timestamp", "DateTime64(6, 'UTC')"],
        ["properties", "String"],
        ["n", "String"],
        ["one", "Int32"],
        ["half", "Float64"],
        ["yes", "Bool"],
        ["list", "Array(Int32)"],
        ["nothing", expect.any(String)],
      ]);
    }
  });

  test("reads properties, placeholders and a range of dates", async () => {
    const query = {
      ...hogql("SELECT properties.n, count() FROM events WHERE properties.n = {n} AND {filters} GROUP BY 1"),
      values: { n: "two" },
      filters: { dateRange: { date_from: "-7d" } },
    };
    const { status, body } = await ask(query);
    expect([status, body.columns, body.results]).toEqual([200, ["n", "count()"], [["two", 1]]]);
    const past = { dateRange: { date_from: "2020-01-01", date_to: "2020-01-02" } };
    expect((await ask({ ...query, filters: past })).body.results).toEqual([]);
    const wrong = { dateRange: { date_from: "x" } };
    expect(await ask({ ...query, filters: wrong })).toMatchObject({ status: 400, body: { attr: "query" } });
  });

  test("has empty lists for no rows, and reports missing rows", async () => {
    const { body } = await ask(hogql("SELECT event FROM events WHERE false"));
    expect(body).toEqual({
      columns: ["event"],
      rows: [],
      truncated: false,
      types: [["event", "String"]],
      results: [],
      hasMore: false,
    });
    const limited = await ask(hogql(sql), { limit: 1 });
    expect(limited.body).toMatchObject({ truncated: true, hasMore: true });
    expect([limited.body.rows.length, limited.body.results.length]).toEqual([1, 1]);
  });

  test("names columns of the same name apart, in both forms", async () => {
    const { body } = await ask(hogql("SELECT 1 AS a, 2 AS a"));
    expect(body.results).toEqual([[1, 2]]);
    expect(Object.values(body.rows[0])).toEqual([1, 2]);
  });

  test("is not larger than the limit, lists and rows together", async () => {
    const { status, body } = await ask(hogql("SELECT repeat('x', 400000) AS a FROM range(2)"));
    expect([status, body.code]).toEqual([400, "result_too_large"]);
    expect((await ask("SELECT repeat('x', 400000) AS a FROM range(2)")).status).toBe(200);
  });

  test("is an error of the query where the statement is missing or rejected", async () => {
    for (const query of [
      { kind: "HogQLQuery" },
      hogql(7),
      { kind: "DataVisualizationNode", source: hogql(null) },
    ]) {
      expect(await ask(query)).toMatchObject({ status: 400, body: { attr: "query" } });
    }
    const { status, body } = await ask({ kind: "DataVisualizationNode", source: hogql("DROP TABLE events") });
    expect([status, body.code]).toEqual([400, "statement_refused"]);
  });
});

describe("an insight", () => {
  const query = {
    kind: "DataVisualizationNode",
    source: hogql("SELECT event, count(*) AS times FROM events GROUP BY ALL ORDER BY 1"),
  };

  test("of SQL has rows, columns and types, alone and on a dashboard", async () => {
    const { body: board } = await send("dashboards/", { name: "SQL" });
    const { body: created } = await send("insights/", { name: "By event", query, dashboards: [board.id] });
    const expected = {
      result: [
        ["a", 1],
        ["b", 1],
      ],
      columns: ["event", "times"],
      hasMore: false,
      query_status: null,
      query,
      types: [
        ["event", "String"],
        ["times", "Int64"],
      ],
    };
    expect((await send(`insights/${created.id}/`, undefined, "GET")).body).toMatchObject(expected);
    const { tiles } = (await send(`dashboards/${board.id}/`, undefined, "GET")).body;
    expect(tiles[0].insight).toMatchObject(expected);
    const cached = await send(`insights/${created.id}/?refresh=force_cache`, undefined, "GET");
    expect(cached.body).toMatchObject({ result: null, columns: null });
  });

  test("gives no key rows that it could not query", async () => {
    const { body: created } = await send("insights/", { name: "Secret", query });
    const { stdout } = await flagkeep([
      "keys",
      "create",
      "--scope",
      "insight:write",
      "--json",
      "--data-dir",
      server.dataDir,
    ]);
    const { status, body } = await send(
      `insights/${created.id}/`,
      undefined,
      "GET",
      JSON.parse(stdout).value,
    );
    expect([status, body.result, body.query_status.error_message]).toEqual([
      200,
      null,
      expect.stringContaining("query:read"),
    ]);
  });

  test("has at most 4 MiB of rows", async () => {
    await using larger = await ServerProcess.start();
    const statement = (bytes: number) => hogql(`SELECT repeat('x', ${bytes}) AS a`);
    for (const [bytes, isTooLarge] of [
      [1_500_000, false],
      [2_500_000, true],
    ] as const) {
      const created = await larger.api("/api/projects/1/insights/", {
        method: "POST",
        body: { name: "Large", query: statement(bytes) },
      });
      const { id } = (await created.json()) as { id: number };
      const body = (await (await larger.api(`/api/projects/1/insights/${id}/`)).json()) as {
        result: unknown;
        query_status: { error_message: string } | null;
      };
      expect([body.result === null, body.query_status?.error_message.includes("4 MiB") ?? false]).toEqual([
        isTooLarge,
        isTooLarge,
      ]);
    }
  });

  test("whose statement fails returns the reason", async () => {
    const { body: created } = await send("insights/", {
      name: "Broken",
      query: hogql("SELECT nothing FROM events"),
    });
    const { status, body } = await send(`insights/${created.id}/`, undefined, "GET");
    expect([status, body.result, body.query_status.error]).toEqual([200, null, true]);
  });
});
