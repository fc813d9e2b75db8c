/** Statements that want all the time, memory or answer there is, against the executable. */

import { beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { ServerProcess, until } from "../support/server.ts";
import { restartServer, server, useServer } from "../support/use-server.ts";

const mib = 1024 * 1024;
const queryTimeoutMs = 3_000;
const args = ["--query-timeout", `${queryTimeoutMs / 1_000}s`];
const memoryLimitBytes = 512 * mib;
/** The machine may be busy; on a quiet one a query ends within a second after its limit. */
const patienceMs = 2_500;

useServer({ args });
beforeAll(async () => {
  await server.batch(
    Array.from({ length: 2_000 }, (_, n) => ({
      event: `e${n % 5}`,
      distinct_id: `u${n % 50}`,
      properties: { n },
    })),
  );
  await server.eventsWhenStored(2_000);
}, 60_000);

const ask = (query: string, options: { signal?: AbortSignal; key?: string; project?: number } = {}) =>
  fetch(`${server.url}/api/projects/${options.project ?? server.initialized.project.id}/query/`, {
    method: "POST",
    headers: {
      Authorization: `Bearer ${options.key ?? server.initialized.personal_api_key}`,
      "Content-Type": "application/json",
    },
    body: JSON.stringify({ query }),
    signal: options.signal,
  });

function getMemory(pid: number, line: "VmHWM" | "VmRSS"): number {
  try {
    return (
      Number(new RegExp(`${line}:\\s+(\\d+)`).exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) *
      1024
    );
  } catch {
    return 0;
  }
}

/** Runs the work while flags and capture are asked all the time; says the engine's peak and the longest wait of others. */
async function beside(work: () => Promise<Response>) {
  let isRunning = true;
  let peakBytes = 0;
  const failed: number[] = [];
  const watch = setInterval(
    () =>
      void server.enginePids().then((pids) => {
        for (const pid of pids) peakBytes = Math.max(peakBytes, getMemory(pid, "VmHWM"));
      }),
    100,
  );
  const others = (async () => {
    while (isRunning) {
      const flags = await server.post("/flags/?v=2", { api_key: server.token, distinct_id: "x" });
      const capture = await server.capture({ event: "beside", distinct_id: "y" });
      for (const { status } of [flags, capture]) if (status !== 200) failed.push(status);
      await Bun.sleep(10);
    }
  })();
  const start = performance.now();
  const response = await work();
  const text = await response.text();
  const durationMs = performance.now() - start;
  isRunning = false;
  await others;
  clearInterval(watch);
  return { status: response.status, text, tookMs: durationMs, peakBytes, failed };
}

/** How it may end: an answer, or a rejection that says why. Never a 500, never a lost connection. */
const ends = [200, 400, 429, 503];

describe("memory", () => {
  // Two bad ones in a minute bar the project.
  beforeEach(async () => await restarted());
  const common = Array.from({ length: 30 }, (_, n) =>
    n === 0 ? "c0 AS (SELECT repeat('x', 1000) AS s)" : `c${n} AS (SELECT s || s AS s FROM c${n - 1})`,
  );
  const greedy = [
    "SELECT len(range(0, 1000000000))",
    "SELECT len(range(0, (SELECT 1000000000 + count(*) FROM events)))",
    "SELECT length(repeat('a', (4000000000 + (SELECT count(*) FROM events))::BIGINT))",
    "SELECT length(format('{:>2000000000}', 'a'))",
    "SELECT length(format('{:>' || (2000000000 + count(*))::VARCHAR || '}', 'a')) FROM events",
    `WITH ${common.join(", ")} SELECT length(s) FROM c29`,
    "SELECT list_resize([1], (SELECT 2000000000 + count(*) FROM events))",
    "SELECT array_agg(properties) OVER () FROM events a, (SELECT unnest(range(100)))",
    "WITH RECURSIVE c AS (SELECT 'a' AS s UNION ALL SELECT s || s FROM c) SELECT max(length(s)) FROM c",
    "SELECT damerau_levenshtein(repeat('a', 100000), repeat('b', 100000))",
  ];
  for (const sql of greedy)
    test(sql.slice(0, 90), async () => {
      const seen = await beside(() => ask(sql));
      expect(ends).toContain(seen.status);
      expect(seen.failed).toEqual([]);
      expect(seen.peakBytes).toBeLessThan(memoryLimitBytes + 1024 * mib);
      expect(seen.tookMs).toBeLessThan(queryTimeoutMs + 1_000 + patienceMs);
      expect(await server.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    }, 60_000);
});

describe("tables that double in memory", () => {
  const chain = (base: string) =>
    `WITH t0 AS MATERIALIZED (${base}), ${Array.from(
      { length: 29 },
      (_, n) => `t${n + 1} AS MATERIALIZED (SELECT * FROM t${n} UNION ALL SELECT * FROM t${n})`,
    ).join(", ")}`;
  const doubling = [
    "WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT t.x FROM t, range(2)) SELECT count(*) FROM t",
    "WITH RECURSIVE t AS (SELECT repeat('x', 100) AS x UNION ALL SELECT t.x || 'y' FROM t, range(2)) SELECT count(*) FROM t",
    "WITH RECURSIVE t AS (SELECT 1 AS x UNION ALL SELECT a.x FROM t a, t b) SELECT count(*) FROM t",
    `${chain("SELECT i, md5(i::VARCHAR) AS m FROM range(1000) r(i)")} SELECT count(*), max(m) FROM t29`,
  ];
  for (const sql of doubling)
    test(`${sql.slice(0, 90)}: stopped, by the same engine`, async () => {
      const pids = await server.enginePids();
      const seen = await beside(() => ask(sql));
      expect(["query_memory", "query_timeout"]).toContain(JSON.parse(seen.text).code);
      expect(seen.failed).toEqual([]);
      expect(seen.peakBytes).toBeLessThan(memoryLimitBytes + 1024 * mib);
      expect(await server.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
      expect(await server.enginePids()).toEqual(pids);
    }, 60_000);
});

test("callers abandon long function calls: the query of another caller waits for the next engine", async () => {
  await restarted(["--query-timeout", "30s"]);
  const pids = await server.enginePids();
  const before = await server.engineSeconds();
  const deleted = Array.from({ length: 4 }, () => {
    const abort = new AbortController();
    const slow = "SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000))";
    return { abort, asked: ask(slow, { signal: abort.signal }).catch(() => undefined) };
  });
  await until(async () => (await server.engineSeconds()) > before + 1, "the calls run");
  for (const { abort } of deleted) abort.abort();
  await Promise.all(deleted.map(({ asked }) => asked));
  const start = performance.now();
  const answers = await Promise.all([
    ask("SELECT 1 AS one"),
    ask("SELECT count(*) FROM events"),
    server.api(`/api/projects/${server.initialized.project.id}/events/?limit=1`),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(performance.now() - start).toBeLessThan(5_000);
  expect(await server.enginePids()).not.toEqual(pids);
}, 60_000);

describe("time, inside one function call too", () => {
  beforeEach(async () => await restarted());
  const slow = [
    "SELECT levenshtein(repeat('a', 1000000), repeat('b', 1000000))",
    "SELECT jaro_similarity(repeat('a', 2000000), repeat('b', 2000000))",
    "SELECT list_reduce(range(10000000), lambda a, b: a + b)",
    "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7",
    "WITH RECURSIVE c AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c",
  ];
  for (const sql of slow)
    test(sql.slice(0, 90), async () => {
      const seen = await beside(() => ask(sql));
      expect([429, 503]).toContain(seen.status);
      expect(seen.failed).toEqual([]);
      expect(seen.tookMs).toBeLessThan(queryTimeoutMs + 1_000 + patienceMs);
      // Two slow ones in a minute bar the project: an engine of its own for each.
      await restarted();
    }, 60_000);
});

/** Stops and starts the server, which forgets whose statements were bad. */
async function restarted(more: string[] = []): Promise<void> {
  await restartServer([...args, ...more]);
  await server.query("SELECT 1");
}

describe("answers", () => {
  const large = [
    "SELECT [repeat('x', 1000000)] FROM range(200)",
    "SELECT repeat(chr(1), 600) FROM range(100000)",
    "SELECT [repeat(chr(1), 600)] FROM range(100000)",
    "SELECT MAP {'a': repeat('x', 10000)} FROM range(5000)",
    "SELECT {'a': {'b': [repeat('\"', 10000)]}} FROM range(5000)",
    `SELECT 1 AS "${"a".repeat(60_000)}" FROM range(100000)`,
    "SELECT properties, repeat('é', 3000) FROM events, range(100)",
  ];
  test("are counted while they are created, and go through the front without staying there", async () => {
    await restarted(["--query-result-limit", "4MiB"]);
    for (const sql of large) {
      const seen = await beside(() => ask(sql));
      expect([sql.slice(0, 60), seen.status, JSON.parse(seen.text).code]).toEqual([
        sql.slice(0, 60),
        400,
        "result_too_large",
      ]);
      expect(seen.failed).toEqual([]);
    }
    await restarted();
    expect((await (await ask("SELECT repeat('x', 3500) FROM range(10000)")).text()).length).toBeGreaterThan(
      30 * mib,
    );
    expect(getMemory(server.process.pid, "VmHWM")).toBeLessThan(250 * mib);
  }, 90_000);

  test("nested as deeply as may be: never a 500", async () => {
    const deep = [
      "SELECT (repeat('[', 100000) || repeat(']', 100000))::JSON",
      "SELECT json_extract(repeat('[', 100000) || repeat(']', 100000), '$[0]')",
      `SELECT ${"[".repeat(150)}1${"]".repeat(150)}`,
      `SELECT ${"{'a': ".repeat(150)}1${"}".repeat(150)}`,
      `SELECT ${"(".repeat(5_000)}1${")".repeat(5_000)}`,
      `SELECT x${".a".repeat(20_000)} FROM events x`,
      `SELECT 1${" + 1".repeat(10_000)}`,
      `SELECT ${"NOT ".repeat(10_000)}true`,
      `SELECT ${"- ".repeat(10_000)}1`,
      `SELECT 1${"::INT".repeat(10_000)}`,
      `SELECT properties${"->'a'".repeat(10_000)} FROM events`,
      `SELECT ${"CASE WHEN true THEN ".repeat(3_000)}1${" END".repeat(3_000)}`,
      `SELECT 1${" UNION ALL SELECT 1".repeat(3_000)}`,
      `SELECT * FROM ${"(SELECT * FROM ".repeat(199)}events${")".repeat(199)}`,
      `SELECT '${"a".repeat(70_000)}'`,
    ];
    for (const sql of deep) {
      const { status } = await ask(sql);
      expect([sql.slice(0, 40), ends.includes(status) && status]).toEqual([sql.slice(0, 40), status]);
      expect(await server.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    }
  }, 90_000);
});

test("a query is cancelled when its client disconnects", async () => {
  // On a busy machine the queries would end by the usual limit before they have run for a second.
  await restarted(["--query-timeout", "30s"]);
  const before = await server.engineSeconds();
  const deleted = Array.from({ length: 4 }, () => {
    const abort = new AbortController();
    const asked = ask(
      "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7",
      {
        signal: abort.signal,
      },
    ).catch(() => undefined);
    return { abort, asked };
  });
  await until(async () => (await server.engineSeconds()) > before + 1, "the queries run");
  for (const { abort } of deleted) abort.abort();
  await Promise.all(deleted.map(({ asked }) => asked));
  const start = performance.now();
  expect((await ask("SELECT count(*) FROM events")).status).toBe(200);
  expect(performance.now() - start).toBeLessThan(5_000);
}, 90_000);

test("who leaves before the answer has met no defect of ours", async () => {
  const logs: Record<string, unknown>[] = [];
  await using left = await ServerProcess.start({ onLog: (line) => logs.push(line) });
  const slow = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7";
  const leave = async (path: string, body?: object) => {
    const abort = new AbortController();
    const asked = fetch(`${left.url}/api/projects/1/${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: {
        Authorization: `Bearer ${left.initialized.personal_api_key}`,
        "Content-Type": "application/json",
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: abort.signal,
    }).catch(() => undefined);
    return { abort, asked };
  };
  const before = await left.engineSeconds();
  const running = [
    ...(await Promise.all(Array.from({ length: 3 }, () => leave("query/", { query: slow })))),
    // They wait behind those.
    await leave("events/"),
    await leave("feature_flags/reach/", { key: "x", filters: { groups: [{}] } }),
  ];
  await until(async () => (await left.engineSeconds()) > before + 1, "the queries run");
  for (const { abort } of running) abort.abort();
  const metrics = async () => await (await fetch(`${left.url}/metrics`)).text();
  const queriesLeft = /requests_total\{route="\/api\/projects\/:project_id\/query",status="499"\} 3/;
  await until(async () => queriesLeft.test(await metrics()), "those who left are counted");
  expect(await left.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  expect(await metrics()).not.toContain('status="500"');
  expect(logs.filter(({ level }) => level === "error")).toEqual([]);
}, 30_000);

test("who brings the engine down twice in a minute waits; others continue", async () => {
  await restarted();
  const created = await server.api("/api/organizations/@current/projects/", {
    method: "POST",
    body: { name: "Second" },
  });
  const { id: second } = (await created.json()) as { id: number };
  const bad = "SELECT list_reduce(range(10000000), lambda a, b: a + b)";
  await until(async () => (await ask(bad)).status === 429, "the project is barred", 50_000);
  const barred = await ask("SELECT 1");
  expect(barred.status).toBe(429);
  expect(Number(barred.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(((await barred.json()) as { detail: string }).detail).toContain("twice within a minute");
  const other = await until(async () => {
    const response = await ask("SELECT 1 AS one", { project: second });
    return response.status === 200 && response;
  }, "the other project is answered");
  expect(await other.json()).toMatchObject({ rows: [{ one: 1 }] });
}, 90_000);

test("an engine that stops responding: 503 for queries, and a new one within half a minute", async () => {
  await restarted();
  const [pid] = await server.enginePids();
  process.kill(pid!, "SIGSTOP");
  const seen = await beside(() => ask("SELECT 1"));
  expect([503, 200]).toContain(seen.status);
  expect(seen.failed).toEqual([]);
  await until(async () => (await server.enginePids()).some((now) => now !== pid), "it is replaced", 30_000);
  expect(await server.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
}, 60_000);
