/** The Model Context Protocol with the official client: over standard input and output, and over HTTP. */

import { beforeAll, describe, expect, test } from "bun:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { tools as declared } from "../../src/operations/table.ts";
import { executable, flagkeep, ServerProcess, until } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

let readOnlyKey: string;
useServer({ args: ["--mcp", "on"] });
beforeAll(async () => {
  const created = await flagkeep([
    "keys",
    "create",
    "--scope",
    "feature_flag:read",
    "--label",
    "model",
    "--json",
    "--data-dir",
    server.dataDir,
  ]);
  readOnlyKey = (JSON.parse(created.stdout) as { value: string }).value;
  await server.capture({ event: "seen", distinct_id: "kim" });
  await server.eventsWhenStored(1);
});

/** Tools of operations, and those that are more than one request's form. */
const names = ["query_events", "experiment_lifecycle", ...declared.map(({ form }) => form.name)].sort();

const ways: [
  name: string,
  transport: (key: string) => StdioClientTransport | StreamableHTTPClientTransport,
][] = [
  [
    "stdio",
    (key) =>
      new StdioClientTransport({
        command: executable,
        args: ["mcp", "--url", server.url],
        env: { FLAGKEEP_API_KEY: key },
        stderr: "inherit",
      }),
  ],
  [
    "http",
    (key) =>
      new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), {
        requestInit: { headers: { Authorization: `Bearer ${key}` } },
      }),
  ],
];

for (const [name, transport] of ways) {
  describe(`over ${name}`, () => {
    async function using(key: string, work: (call: Call) => Promise<void>): Promise<void> {
      const client = new Client({ name: "test", version: "1" });
      await client.connect(transport(key) as never);
      try {
        await work(async (tool, args) => {
          const result = (await client.callTool({ name: tool, arguments: args })) as {
            content: { text: string }[];
            isError?: boolean;
          };
          return { text: result.content[0]!.text, isError: result.isError === true };
        });
      } finally {
        await client.close();
      }
    }
    type Call = (tool: string, args: Record<string, unknown>) => Promise<{ text: string; isError: boolean }>;

    test("lists its tools", async () => {
      const client = new Client({ name: "test", version: "1" });
      await client.connect(transport(readOnlyKey) as never);
      const { tools } = await client.listTools();
      expect(tools.map((tool) => tool.name).sort()).toEqual(names);
      expect(client.getServerVersion()).toMatchObject({ name: "flagkeep" });
      await client.close();
    });

    test("creates, lists, explains and changes flags, and queries events", async () => {
      const key = `mcp-${name}`;
      await using(server.initialized.personal_api_key, async (call) => {
        expect(await call("create_flag", { key, rollout_percentage: 0 })).toMatchObject({ isError: false });
        expect((await call("list_flags", { search: key })).text).toContain(`"key":"${key}"`);
        expect((await call("explain_flag", { key, distinct_id: "kim" })).text).toContain(
          "out_of_rollout_bound",
        );
        const changed = await call("update_flag", { key, rollout_percentage: 100, active: true });
        expect([changed.isError, changed.text.includes('"rollout_percentage":100')]).toEqual([false, true]);
        const rows = await call("query_events", { sql: "SELECT event, distinct_id FROM events" });
        expect(JSON.parse(rows.text)).toMatchObject({ rows: [{ event: "seen", distinct_id: "kim" }] });
        expect((await call("list_projects", {})).isError).toBe(false);
        const unknown = await call("update_flag", { key: "nothing", active: false });
        expect(unknown).toEqual({ text: "Flag nothing does not exist.", isError: true });
      });
    });

    test("a key's scopes hold", async () => {
      await using(readOnlyKey, async (call) => {
        expect((await call("list_flags", {})).isError).toBe(false);
        const rejected = await call("create_flag", { key: "never-made" });
        expect([rejected.isError, rejected.text.includes("feature_flag:write")]).toEqual([true, true]);
        expect((await call("query_events", { sql: "SELECT 1" })).isError).toBe(true);
      });
      const withWrongKey = using("phx_wrong", async (call) => {
        expect((await call("list_flags", {})).isError).toBe(true);
      });
      // Over HTTP the key is checked before anything is said.
      if (name === "http") await expect(withWrongKey).rejects.toThrow("authentication_failed");
      else await withWrongKey;
    });
  });
}

test("a flag is found by its whole key, however long it is and however many others contain it", async () => {
  const longest = "k".repeat(400);
  const keys = ["ab", longest, ...Array.from({ length: 100 }, (_, index) => `ab-${index}`)];
  for (const key of keys)
    await server.api("/api/projects/1/feature_flags/", { method: "POST", body: { key } });
  for (const key of ["ab", longest]) {
    const result = await callOverHttp(server, "update_flag", { key, active: false });
    expect([result.isError, result.text.includes(`"key":"${key}"`)]).toEqual([false, true]);
  }
});

test("tools work under a path prefix", async () => {
  const args = ["--mcp", "on", "--public-url", "https://flags.example/keep"];
  await using behind = await ServerProcess.start({ args });
  expect(await callOverHttp(behind, "list_projects", {})).toMatchObject({ isError: false });
  await callOverHttp(behind, "create_flag", { key: "behind-a-prefix" });
  const { text } = await callOverHttp(behind, "list_flags", { limit: 1 });
  expect(JSON.parse(text)).toMatchObject({ results: [{ key: "behind-a-prefix" }] });
});

test("calls sent before standard input ended get a response", async () => {
  const clientInfo = { name: "test", version: "1" };
  const initialize = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  const messages = [
    { jsonrpc: "2.0", id: 1, method: "initialize", params: initialize },
    { jsonrpc: "2.0", method: "notifications/initialized" },
    { jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "list_flags", arguments: {} } },
  ];
  const child = Bun.spawn([executable, "mcp", "--url", server.url], {
    stdin: Buffer.from(messages.map((message) => `${JSON.stringify(message)}\n`).join("")),
    stdout: "pipe",
    env: { FLAGKEEP_API_KEY: readOnlyKey },
  });
  const answers = (await new Response(child.stdout).text()).trim().split("\n");
  expect(answers.map((line) => JSON.parse(line).id)).toEqual([1, 2]);
  expect(await child.exited).toBe(0);
});

test("without a key: one sentence on the command line, 401 over HTTP; 404 unless it is switched on", async () => {
  expect(await flagkeep(["mcp"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("FLAGKEEP_API_KEY"),
  });
  expect((await server.post("/mcp", { jsonrpc: "2.0", id: 1, method: "ping" })).status).toBe(401);
  const wrong = await server.api("/mcp", { method: "POST", body: { nothing: 1 } });
  expect(wrong.status).toBe(406);
  await using off = await ServerProcess.start();
  expect((await off.post("/mcp", {})).status).toBe(404);
});

test.each([
  ["an unknown key", () => "Bearer phx_wrong"],
  ["a project's public key", () => `Bearer ${server.initialized.project.api_key}`],
  ["a project's secret key", () => `Bearer ${server.initialized.project.secret_api_key}`],
  ["no scheme", () => server.initialized.personal_api_key],
  ["another scheme", () => `Basic ${server.initialized.personal_api_key}`],
  ["nothing after the scheme", () => "Bearer "],
  ["nothing", () => ""],
  ["a revoked key", async () => `Bearer ${await revokedKey()}`],
])("%s is 401, whatever the body is", async (_, authorization) => {
  const headers = {
    Authorization: await authorization(),
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
  };
  for (const body of [JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }), "{", "[]"]) {
    const answer = await fetch(`${server.url}/mcp`, { method: "POST", headers, body });
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    expect(await answer.json()).toMatchObject({ type: "authentication_error" });
  }
});

async function revokedKey(): Promise<string> {
  const path = "/api/personal_api_keys/";
  const created = await server.api(path, { method: "POST", body: { label: "x", scopes: ["*"] } });
  const { id, value } = (await created.json()) as { id: string; value: string };
  expect((await server.api(`${path}${id}/`, { method: "DELETE" })).status).toBe(204);
  return value;
}

describe("a query ends when the client that sent it", () => {
  const slow = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range = 7";
  /** Of the limit of 30 s; as many as run at once are asked for. */
  const patienceMs = 15_000;
  const expectCapacity = async () => {
    const start = performance.now();
    expect(await server.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
    expect(performance.now() - start).toBeLessThan(patienceMs);
  };

  /** Queries of this kind take all the processors' time that there is. */
  const untilTheyRun = async (before: number) =>
    await until(async () => (await server.engineSeconds()) > before + 1, "the queries run");

  test("disconnects", async () => {
    const before = await server.engineSeconds();
    const deleted = Array.from({ length: 4 }, () => {
      const abort = new AbortController();
      const asked = callOverHttp(server, "query_events", { sql: slow }, abort.signal).catch(() => "gone");
      return { abort, asked };
    });
    await untilTheyRun(before);
    for (const { abort } of deleted) abort.abort();
    expect(await Promise.all(deleted.map(({ asked }) => asked))).toEqual(deleted.map(() => "gone"));
    await expectCapacity();
  }, 60_000);

  test.each(ways)(
    "cancels it: %s",
    async (_, transport) => {
      const client = new Client({ name: "test", version: "1" });
      await client.connect(transport(server.initialized.personal_api_key) as never);
      const before = await server.engineSeconds();
      const given = Array.from({ length: 4 }, () => {
        const abort = new AbortController();
        const call = { name: "query_events", arguments: { sql: slow } };
        const asked = client.callTool(call, undefined, { signal: abort.signal }).catch(() => "given up");
        return { abort, asked };
      });
      await untilTheyRun(before);
      for (const { abort } of given) abort.abort();
      expect(await Promise.all(given.map(({ asked }) => asked))).toEqual(given.map(() => "given up"));
      if (transport === ways[0]![1]) await expectCapacity();
      await client.close();
      await expectCapacity();
    },
    60_000,
  );
});

test("hundreds of requests leave no servers behind", async () => {
  const memory = async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    return Number(/^process_resident_memory_bytes (\S+)/m.exec(text)?.[1] ?? 0);
  };
  const call = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
  const send = () =>
    fetch(`${server.url}/mcp`, {
      method: "POST",
      headers: {
        Authorization: `Bearer ${readOnlyKey}`,
        "Content-Type": "application/json",
        Accept: "application/json, text/event-stream",
      },
      body: JSON.stringify(call),
    }).then((response) => response.text());
  for (let i = 0; i < 200; i++) await send();
  const before = await memory();
  for (let i = 0; i < 800; i++) await send();
  expect((await memory()) - before).toBeLessThan(100 * 1024 * 1024);
}, 60_000);

/** Calls a tool as a client without a library does. */
async function callOverHttp(
  to: ServerProcess,
  tool: string,
  args: Record<string, unknown>,
  signal?: AbortSignal,
): Promise<{ text: string; isError: boolean }> {
  const answer = await fetch(`${to.url}/mcp`, {
    method: "POST",
    signal,
    headers: {
      Authorization: `Bearer ${to.initialized.personal_api_key}`,
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: tool, arguments: args },
    }),
  });
  const { result } = (await answer.json()) as { result: { content: { text: string }[]; isError?: boolean } };
  return { text: result.content[0]!.text, isError: result.isError === true };
}
