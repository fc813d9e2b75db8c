/** Answers of statements as files, sent while they are computed; and JSON answers packed. */

import { beforeAll, expect, test } from "bun:test";
import { readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, temporaryFolder, until } from "../../support/server.ts";
import { server, useServer } from "../../support/use-server.ts";

useServer({ args: ["--query-result-limit", "1MiB"] });
beforeAll(async () => {
  await server.batch(
    Array.from({ length: 50 }, (_, n) => ({ event: "seen", distinct_id: `u${n}`, properties: { n } })),
  );
  await server.eventsWhenStored(50);
});

const path = "/api/projects/1/query/";
const parquet = "application/vnd.apache.parquet";

async function download(
  query: unknown,
  accept: string,
  more: Record<string, unknown> = {},
  signal?: AbortSignal,
) {
  return await fetch(`${server.url}${path}`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${server.initialized.personal_api_key}`,
      "Content-Type": "application/json",
      Accept: accept,
    },
    body: JSON.stringify({ query, ...more }),
    signal,
  });
}

const everyKind = `SELECT 1::TINYINT AS small, 9007199254740993::BIGINT AS large, 2::HUGEINT AS huge, 1.5::DECIMAL(4,2) AS exact,
  true AS yes, NULL::INTEGER AS none, 'a,"b"' AS words, TIMESTAMP '2026-01-02 03:04:05.678901' AS at, DATE '2026-01-02' AS day,
  '0193d1a2-7b1c-7c3e-9f60-6f7a8b9c0d1e'::UUID AS id, [1, 2] AS list, {'a': 1} AS nested, '{"a":1}'::JSON AS json`;

test("as CSV: a header, every kind of value, nothing for null", async () => {
  const response = await download(everyKind, "text/csv");
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  expect(response.headers.get("content-disposition")).toBe('attachment; filename="query.csv"');
  expect(response.headers.get("vary")).toContain("Accept");
  expect(await response.text()).toBe(
    "small,large,huge,exact,yes,none,words,at,day,id,list,nested,json\n" +
      '1,9007199254740993,2,1.5,true,,"a,""b""",2026-01-02T03:04:05.678901Z,2026-01-02,' +
      '0193d1a2-7b1c-7c3e-9f60-6f7a8b9c0d1e,"[1,2]","{""a"":1}","{""a"":1}"\n',
  );
  expect(await (await download("SELECT 1 AS n WHERE false", "text/csv")).text()).toBe("n\n");
});

test("as Parquet: DuckDB reads it back with its types", async () => {
  const response = await download(everyKind, parquet);
  expect(response.headers.get("content-type")).toBe(parquet);
  const folder = temporaryFolder();
  const file = join(folder, "rows.parquet");
  writeFileSync(file, new Uint8Array(await response.arrayBuffer()));
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const connection = await (await DuckDBInstance.create()).connect();
  const read = await connection.runAndReadAll(`SELECT * FROM '${file}'`);
  expect(read.columnTypes().map(String)).toEqual([
    "BIGINT",
    "BIGINT",
    "DOUBLE",
    "DOUBLE",
    "BOOLEAN",
    "BIGINT",
    "VARCHAR",
    "TIMESTAMP WITH TIME ZONE",
    "VARCHAR",
    "UUID",
    "VARCHAR",
    "VARCHAR",
    "VARCHAR",
  ]);
  expect(read.getRowsJson()[0]!.slice(0, 7)).toEqual(["1", "9007199254740993", 2, 1.5, true, null, 'a,"b"']);
  connection.closeSync();
  rmSync(folder, { recursive: true });
});

test("from the command line: a file that is whole or not there, or standard output for Parquet", async () => {
  const folder = temporaryFolder();
  const run = (...args: string[]) => flagkeep(["query", ...args, "--data-dir", server.dataDir]);
  const rows = "SELECT i FROM range(20000) t(i)";
  const [csv, file, limited] = ["rows.csv", "rows.parquet", "few.parquet"].map((name) =>
    join(folder, name),
  ) as [string, string, string];
  expect(await run(rows, "-o", csv)).toMatchObject({
    code: 0,
    stdout: "",
    stderr: `The rows are in ${csv}.\n`,
  });
  expect((await Bun.file(csv).text()).split("\n")).toHaveLength(20_002);
  expect((await run(rows, "-o", file)).code).toBe(0);
  expect((await run(rows, "-o", limited, "--limit", "7")).code).toBe(0);
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const connection = await (await DuckDBInstance.create()).connect();
  for (const [name, count] of [
    [file, 20_000n],
    [limited, 7n],
  ] as const) {
    const read = await connection.runAndReadAll(`SELECT count(*) FROM '${name}'`);
    expect(read.getRows()).toEqual([[count]]);
  }
  connection.closeSync();
  expect((await run("SELECT 1 AS n", "--format", "parquet")).stdout).toMatch(/^PAR1[\s\S]*PAR1$/);
  const failed = join(folder, "failed.csv");
  expect(await run("SELECT error('no')::INTEGER AS n", "-o", failed)).toMatchObject({ code: 1 });
  expect(readdirSync(folder).sort()).toEqual(["few.parquet", "rows.csv", "rows.parquet"]);
  rmSync(folder, { recursive: true });
});

test("more rows and bytes than an answer in JSON may have, unless there is a limit", async () => {
  const many = "SELECT range AS n, repeat('x', 20) AS text FROM range(300000)";
  expect((await download(many, "application/json", { limit: 100_000 })).status).toBe(400);
  const text = await (await download(many, "text/csv")).text();
  expect(text.length).toBeGreaterThan(6_000_000);
  expect(text.split("\n").length).toBe(300_002);
  expect(text.endsWith(`299999,${"x".repeat(20)}\n`)).toBe(true);
  expect((await (await download(many, "text/csv", { limit: 3_000 })).text()).split("\n").length).toBe(3_002);
});

test("the first accepted type applies; rejections are JSON; computed queries are JSON", async () => {
  const count = "SELECT count(*) AS n FROM events";
  for (const [accept, type] of [
    ["text/csv, */*", "text/csv; charset=utf-8"],
    ["application/json, text/csv", "application/json"],
    ["*/*", "application/json"],
    ["text/html", "application/json"],
    [`${parquet};q=0.9`, parquet],
  ]) {
    expect((await download(count, accept!)).headers.get("content-type")).toBe(type!);
  }
  expect(await (await download(count, "text/csv")).text()).toBe("n\n50\n");
  for (const [query, code] of [
    ["DROP TABLE events", "statement_refused"],
    ["SELECT nothing FROM events", "statement_failed"],
  ]) {
    const rejected = await download(query, "text/csv");
    expect([rejected.status, (await rejected.json()).code]).toEqual([400, code]);
  }
  const series = [{ kind: "EventsNode", event: "seen" }];
  const computed = await download({ kind: "TrendsQuery", series }, "text/csv");
  expect((await computed.json()).results[0].count).toBe(50);
});

test("an error after the first rows cuts the connection; a disconnected client leaves nothing running", async () => {
  const broken = await download(
    "SELECT range AS n, CASE WHEN range = 300000 THEN CAST('x' || range AS INTEGER) ELSE 1 END AS bad, repeat('y', 100) AS y FROM range(400000)",
    "text/csv",
  );
  expect(broken.status).toBe(200);
  await expect(broken.text()).rejects.toThrow();
  const endless = "SELECT a.range, b.range AS other FROM range(1000000) a, range(1000000) b";
  for (let round = 0; round < 4; round++) {
    const deleted = new AbortController();
    const response = await download(endless, "text/csv", {}, deleted.signal);
    const reader = response.body!.getReader();
    await reader.read();
    deleted.abort();
    await reader.cancel().catch(() => undefined);
  }
  const after = await until(async () => {
    const response = await download("SELECT 1 AS n", "text/csv");
    return response.status === 200 && (await response.text());
  }, "the next one has its turn");
  expect(after).toBe("n\n1\n");
  expect(await server.query("SELECT 1 AS n")).toEqual([{ n: 1 }]);
});

test("one file of a project at a time; others wait, and too many get Retry-After", async () => {
  const deleted = new AbortController();
  const endless = "SELECT a.range, b.range AS other FROM range(1000000) a, range(1000000) b";
  const first = await download(endless, "text/csv", {}, deleted.signal);
  expect(first.status).toBe(200);
  const waiting = Array.from({ length: 17 }, () =>
    download("SELECT 1 AS n", "text/csv", {}, deleted.signal).catch(() => undefined),
  );
  const sentAway = (await Promise.race(waiting))!;
  expect([sentAway.status, (await sentAway.json()).code]).toEqual([503, "query_busy"]);
  expect(await server.query("SELECT 2 AS n")).toEqual([{ n: 2 }]);
  deleted.abort();
  await Promise.all(waiting);
});

test("long JSON responses are compressed for clients that accept gzip; short ones are not", async () => {
  const ask = async (address: string, encoding: string, init: RequestInit = {}) => {
    const response = await fetch(`${server.url}${address}`, {
      ...init,
      headers: {
        Authorization: `Bearer ${server.initialized.personal_api_key}`,
        "Accept-Encoding": encoding,
        "Content-Type": "application/json",
        ...(init.headers as Record<string, string>),
      },
      decompress: false,
    } as never);
    return { response, bytes: Buffer.from(await response.arrayBuffer()) };
  };
  const rows = { method: "POST", body: JSON.stringify({ query: "SELECT * FROM events" }) };
  const csv = { ...rows, headers: { Accept: "text/csv" } };
  for (const [address, init] of [
    ["/api/projects/1/events/", {}],
    [path, rows],
    [path, csv],
    ["/api/projects/1/persons/", {}],
    ["/api/schema/", {}],
  ] as const) {
    const packed = await ask(address, "br, gzip", init);
    expect([address, packed.response.headers.get("content-encoding")]).toEqual([address, "gzip"]);
    expect(packed.response.headers.get("vary")).toContain("Accept-Encoding");
    const plain = await ask(address, "identity", init);
    expect(plain.response.headers.get("content-encoding")).toBeNull();
    expect(plain.response.headers.get("vary")).toContain("Accept-Encoding");
    expect(Buffer.from(Bun.gunzipSync(packed.bytes))).toEqual(plain.bytes);
    expect(plain.bytes.length).toBeGreaterThan(packed.bytes.length);
  }
  const short = { method: "POST", body: JSON.stringify({ query: "SELECT 1 AS n" }) };
  const small = await ask(path, "gzip", short);
  expect(small.response.headers.get("content-encoding")).toBeNull();
  expect(small.bytes.toString()).toBe('{"columns":["n"],"rows":[{"n":1}],"truncated":false}');
  const rejected = await ask("/api/projects/1/events/", "gzip;q=0");
  expect(rejected.response.headers.get("content-encoding")).toBeNull();
});
