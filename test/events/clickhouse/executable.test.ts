/** The started executable with its events in ClickHouse: no one who asks it notices. */

import { expect } from "bun:test";
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { TestClickHouse, testWithClickHouse } from "../../support/clickhouse.ts";
import {
  flagkeep,
  initializedDirectory,
  ServerProcess,
  temporaryFolder,
  until,
} from "../../support/server.ts";

const test = testWithClickHouse("Flagkeep with its events in ClickHouse");

async function capture(server: ServerProcess, events: object[], historical = false): Promise<number> {
  const answer = await fetch(`${server.url}/batch/`, {
    method: "POST",
    body: JSON.stringify({ api_key: server.token, historical_migration: historical, batch: events }),
  });
  return answer.status;
}

async function listed(server: ServerProcess): Promise<{ event: string; distinct_id: string }[]> {
  const answer = await server.api(`/api/projects/${server.initialized.project.id}/events/?limit=1000`);
  return ((await answer.json()) as { results: { event: string; distinct_id: string }[] }).results;
}

const named = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) => ({
    event: `event ${from + n}`,
    distinct_id: `user ${n % 3}`,
    properties: { n, $set: { plan: "free" } },
  }));

test("what is captured is listed, computed, exported and counted; SQL is rejected with a sentence", async () => {
  await using server = await TestClickHouse.start();
  await server.run("CREATE DATABASE flagkeep");
  await using flagkeepServer = await ServerProcess.start({ args: ["--events-url", server.url("flagkeep")] });
  const { id } = flagkeepServer.initialized.project;
  expect(await capture(flagkeepServer, named(5))).toBe(200);
  expect(await capture(flagkeepServer, named(5, 5), true)).toBe(200);
  await until(async () => (await listed(flagkeepServer)).length === 10, "all events are listed");
  const query = {
    kind: "TrendsQuery",
    series: [{ math: "dau" }],
    breakdownFilter: { breakdown: "plan", breakdown_type: "person" },
  };
  const computed = await flagkeepServer.api(`/api/projects/${id}/query/`, {
    method: "POST",
    body: { query },
  });
  expect(await computed.json()).toMatchObject({ results: [{ count: 3, breakdown_value: "free" }] });
  const sql = await flagkeepServer.api(`/api/projects/${id}/query/`, {
    method: "POST",
    body: { query: { kind: "HogQLQuery", query: "SELECT 1" } },
  });
  expect([sql.status, JSON.stringify(await sql.json())]).toEqual([
    400,
    expect.stringContaining("while events are in ClickHouse"),
  ]);
  const args = ["--data-dir", flagkeepServer.dataDir, "--project", String(id)];
  const exported = await flagkeep(["export", "events", "-", ...args, "--format", "ndjson"]);
  expect(exported.stdout.trim().split("\n")).toHaveLength(10);
  expect(existsSync(join(flagkeepServer.dataDir, "events.duckdb"))).toBe(false);
  const status = await flagkeep(["status", "--data-dir", flagkeepServer.dataDir, "--json"]);
  expect(status.stdout + JSON.stringify(flagkeepServer.logs)).not.toContain(TestClickHouse.password);
  expect(status.stdout).not.toContain(encodeURIComponent(TestClickHouse.password));
  expect(JSON.parse(status.stdout)).toMatchObject({
    events_at: `http://flagkeep@127.0.0.1:${server.port}/flagkeep`,
  });
  const doctor = await flagkeep([
    "doctor",
    "--data-dir",
    flagkeepServer.dataDir,
    "--events-url",
    server.url("flagkeep"),
    "--json",
  ]);
  const { findings } = JSON.parse(doctor.stdout) as {
    findings: { check: string; level: string; message: string }[];
  };
  const said = findings.map(({ level, message }) => `${level} ${message}`).join("\n");
  for (const fact of [
    /^ok The events are in ClickHouse \d/m,
    /^ok The table events has the engine ReplacingMergeTree\.$/m,
    /^ok The last 10000 inserts are deduplicated\.$/m,
    /^ok ClickHouse's clock is \d+ ms /m,
    /^ok The historical entries are loaded up to \d+\.$/m,
  ])
    expect(said).toMatch(fact);
  expect(said).not.toContain("fsync");
  // The one that an operator asks for over HTTP knows the database by itself.
  const overHttp = await flagkeepServer.api("/api/instance/doctor/");
  expect(await overHttp.text()).toContain("The events are in ClickHouse");
  await server.run("ALTER TABLE flagkeep.events MODIFY SETTING non_replicated_deduplication_window = 1");
  const changed = await flagkeep([
    "doctor",
    "--data-dir",
    flagkeepServer.dataDir,
    "--events-url",
    server.url("flagkeep"),
  ]);
  expect([changed.code, changed.stdout]).toEqual([
    1,
    expect.stringContaining("deduplicates only the last 1 inserts"),
  ]);
}, 60_000);

test("a server that rejects the user counts as unavailable: queries get 503, and loading resumes automatically", async () => {
  await using server = await TestClickHouse.start();
  await server.run("CREATE DATABASE flagkeep");
  await using flagkeep = await ServerProcess.start({ args: ["--events-url", server.url("flagkeep")] });
  const { id } = flagkeep.initialized.project;
  expect(await capture(flagkeep, named(2))).toBe(200);
  await until(async () => (await listed(flagkeep)).length === 2, "the events are listed");
  await server.restart("another one");
  const query = { kind: "TrendsQuery", series: [{ event: "event 0" }] };
  for (const [path, body] of [
    ["events/", undefined],
    ["query/", { query }],
  ] as const) {
    const method = body === undefined ? "GET" : "POST";
    const asked = await flagkeep.api(`/api/projects/${id}/${path}`, { method, body });
    expect([asked.status, await asked.json()]).toEqual([
      503,
      expect.objectContaining({
        code: "events_unreachable",
        detail: expect.stringContaining("Authentication failed"),
      }),
    ]);
  }
  expect(await capture(flagkeep, named(1, 2))).toBe(200);
  await server.restart();
  await until(async () => (await listed(flagkeep)).length === 3, "what came meanwhile is listed");
}, 60_000);

test("a backup has everything but the events, up to the last one acknowledged, and Flagkeep continues from it", async () => {
  await using server = await TestClickHouse.start();
  await server.run("CREATE DATABASE flagkeep");
  const args = ["--events-url", server.url("flagkeep")];
  const directory = await initializedDirectory();
  const { dataDir, initialized } = directory;
  const folder = temporaryFolder();
  const run = async (...command: string[]) => {
    const { stdout, stderr, code } = await flagkeep([...command, "--json"]);
    expect([stderr, code]).toEqual(["", 0]);
    return JSON.parse(stdout) as { file: string };
  };
  {
    await using server = await ServerProcess.start({ args, directory });
    expect(await capture(server, named(4))).toBe(200);
    await until(async () => (await listed(server)).length === 4, "the events are loaded");
    // Of these nothing is applied yet, perhaps.
    let isDone = false;
    const sending = (async () => {
      for (let n = 1; !isDone; n++) expect(await capture(server, named(4, 4 * n))).toBe(200);
    })();
    const { file } = await run("backup", "create", folder, "--data-dir", dataDir);
    isDone = true;
    await sending;
    await run("backup", "verify", file, "--data-dir", dataDir);
    expect(await run("backup", "drill", file, "--data-dir", dataDir)).toMatchObject({
      file,
      ok: true,
      start_seconds: null,
      events: null,
    });
    await server.stop();
    const reported = await flagkeep(["export", "events", "-", "--format", "ndjson", "--data-dir", dataDir]);
    expect([reported.code, reported.stdout, reported.stderr.trim().split("\n")]).toEqual([
      1,
      "",
      [expect.stringContaining("kept in ClickHouse. Set --events-url")],
    ]);
    const later = await run("backup", "create", folder, "--data-dir", dataDir);
    const restored = `${dataDir}-restored`;
    await run("backup", "restore", later.file, "--data-dir", restored);
    await using again = await ServerProcess.start({ args, directory: { dataDir: restored, initialized } });
    expect(await capture(again, [{ event: "after", distinct_id: "user 1" }])).toBe(200);
    await until(async () => (await listed(again))[0]?.event === "after", "it goes on");
    const events = (await listed(again)).map(({ event }) => event);
    expect(new Set(events).size).toBe(events.length);
    await again.stop();
    rmSync(restored, { recursive: true });
  }
  rmSync(folder, { recursive: true });
  rmSync(dataDir, { recursive: true });
}, 120_000);

test("ClickHouse away: captures and flags continue, queries are rejected with the reason, and all is there afterwards", async () => {
  await using server = await TestClickHouse.start();
  await server.run("CREATE DATABASE flagkeep");
  const directory = await initializedDirectory();
  const args = ["--events-url", server.url("flagkeep")];
  await server.kill();
  await using flagkeepServer = await ServerProcess.start({ args, directory });
  const { id } = directory.initialized.project;
  expect(await capture(flagkeepServer, named(4))).toBe(200);
  const flags = await fetch(`${flagkeepServer.url}/flags/?v=2`, {
    method: "POST",
    body: JSON.stringify({ api_key: flagkeepServer.token, distinct_id: "user 1" }),
  });
  expect(flags.status).toBe(200);
  const rejected = await flagkeepServer.api(`/api/projects/${id}/events/`);
  expect([rejected.status, await rejected.json()]).toMatchObject([
    503,
    { code: "events_unreachable", detail: expect.stringContaining("is unreachable") },
  ]);
  const problem = await until(async (): Promise<{ message: string } | undefined> => {
    const status = await flagkeep(["status", "--data-dir", directory.dataDir, "--json"]);
    return (
      (JSON.parse(status.stdout) as { engine: { trouble: { message: string } | null } }).engine.trouble ??
      undefined
    );
  }, "status tells");
  expect(problem.message).toContain("flagkeep@127.0.0.1");
  await server.restart();
  await until(
    async () => (await listed(flagkeepServer).catch(() => [])).length === 4,
    "the events are loaded",
  );
  await server.kill();
  expect(await capture(flagkeepServer, named(4, 4))).toBe(200);
  await server.restart();
  await until(async () => (await listed(flagkeepServer).catch(() => [])).length === 8, "the rest is loaded");
}, 60_000);

test("events in another store than configured: rejected with one sentence, nothing is lost", async () => {
  await using server = await TestClickHouse.start();
  for (const name of ["one", "two"]) await server.run(`CREATE DATABASE ${name}`);
  const directory = await initializedDirectory();
  const problem = async (args: string[]) => {
    await using server = await ServerProcess.start({ args, directory });
    const line = await until(
      () => server.logs.find(({ level }) => level === 50 || level === "error"),
      "it says so",
    );
    expect(await capture(server, named(1))).toBe(200);
    return String(line.msg);
  };
  {
    await using flagkeep = await ServerProcess.start({
      args: ["--events-url", server.url("one")],
      directory,
    });
    await capture(flagkeep, named(2));
    await until(async () => (await listed(flagkeep)).length === 2, "it is loaded");
  }
  const rebuilt = await flagkeep(["rebuild", "--data-dir", directory.dataDir]);
  expect([rebuilt.code, rebuilt.stderr]).toEqual([1, expect.stringContaining("kept in ClickHouse")]);
  expect(await problem([])).toContain("kept in ClickHouse");
  expect(await problem(["--events-url", server.url("two")])).toContain(
    "does not have the events of this data directory",
  );
  await using other = await ServerProcess.start({ args: ["--events-url", server.url("one")] });
  await until(
    () => other.logs.some(({ msg }) => String(msg).includes("the events of another data directory")),
    "the database is refused to others",
  );
}, 60_000);
