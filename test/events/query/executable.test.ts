import { expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { QueryResult } from "../../../src/events/query/run-query.ts";
import { flagkeep, ServerProcess, until } from "../../support/server.ts";

test("the API and the command answer the same, with and without a running server", async () => {
  await using server = await ServerProcess.start();
  await server.batch([
    { event: "a", distinct_id: "x", properties: { n: 1 } },
    { event: "b", distinct_id: "y", properties: { n: "two, three" } },
  ]);
  await server.eventsWhenStored(2);
  const sql = "SELECT event, properties->>'n' AS n FROM events ORDER BY seq";
  const expected = {
    columns: ["event", "n"],
    rows: [
      { event: "a", n: "1" },
      { event: "b", n: "two, three" },
    ],
    truncated: false,
  };
  const path = `/api/projects/${server.initialized.project.id}/query/`;
  for (const body of [{ query: sql }, { query: { query: sql } }]) {
    const response = await server.api(path, { method: "POST", body });
    expect(await response.json()).toEqual(expected);
    expect(response.status).toBe(200);
  }
  const limited = await server.api(path, { method: "POST", body: { query: sql, limit: 1 } });
  expect(await limited.json()).toMatchObject({ rows: [{ event: "a" }], truncated: true });
  const { stdout: created } = await flagkeep([
    "keys",
    "create",
    "--scope",
    "person:read",
    "--json",
    "--data-dir",
    server.dataDir,
  ]);
  const key = JSON.parse(created).value as string;
  expect((await server.api(path, { method: "POST", body: { query: sql }, key })).status).toBe(403);
  const rejected = await server.api(path, { method: "POST", body: { query: "DROP TABLE events" } });
  expect(rejected.status).toBe(400);
  expect(await rejected.json()).toMatchObject({ code: "statement_refused", attr: "query" });

  const command = async (...args: string[]) =>
    await flagkeep(["query", ...args, "--project", "1", "--data-dir", server.dataDir]);
  for (const state of ["running", "stopped"]) {
    if (state === "stopped") await server.stop();
    const json = await command(sql, "--format", "json");
    expect({ state, stderr: json.stderr, code: json.code }).toEqual({ state, stderr: "", code: 0 });
    expect(JSON.parse(json.stdout)).toEqual(expected);
    expect(Value.Check(QueryResult, JSON.parse(json.stdout))).toBe(true);
    const first = await command(sql, "--json", "--limit", "1");
    expect(JSON.parse(first.stdout)).toMatchObject({ rows: [{ event: "a" }], truncated: true });
    expect(first.stderr).toContain("only the first 1 rows");
    expect((await command(sql, "--format", "csv")).stdout).toBe('event,n\na,1\nb,"two, three"\n');
    expect((await command(sql)).stdout).toBe("EVENT  N\na      1\nb      two, three\n");
    const bad = await command("SELECT * FROM read_text('/etc/passwd')", "--format", "json");
    expect(bad.code).toBe(1);
    expect(bad.stdout).toBe("");
    expect(bad.stderr).toContain("read_text is not allowed");
  }
  const noProject = await flagkeep(["query", "SELECT 1", "--project", "77", "--data-dir", server.dataDir]);
  expect(noProject.code).toBe(1);
}, 60_000);

test("a query that takes too long is stopped", async () => {
  await using server = await ServerProcess.start({ args: ["--query-timeout", "500ms"] });
  const path = `/api/projects/${server.initialized.project.id}/query/`;
  await until(
    async () => (await server.api(path, { method: "POST", body: { query: "SELECT 1" } })).status === 200,
    "the engine answers",
  );
  const started = performance.now();
  const response = await server.api(path, {
    method: "POST",
    body: { query: "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7" },
  });
  expect(response.status).toBe(503);
  expect(await response.json()).toMatchObject({ code: "query_timeout" });
  expect(performance.now() - started).toBeLessThan(25_000);
}, 60_000);
