/** `flagkeep export` as a user calls it: every subject in every format, from a running, a stopped and a killed server. */

import { afterAll, describe, expect, test } from "bun:test";
import { lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { Value } from "@sinclair/typebox/value";
import { ExportSummary } from "../../../src/events/export/output.ts";
import { flagkeep, ServerProcess, temporaryFolder } from "../../support/server.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true }));

async function run(dataDir: string, ...args: string[]): Promise<string> {
  const { stdout, stderr, code } = await flagkeep([
    "export",
    ...args,
    "--project",
    "1",
    "--data-dir",
    dataDir,
  ]);
  if (code !== 0) throw new Error(stderr);
  return stdout;
}

type Row = Record<string, unknown>;
const parsed = (text: string): Row[] =>
  text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));

/** What another program reads in the file, with values as NDJSON has them. */
async function getRows(path: string, format: string): Promise<Row[]> {
  if (format === "ndjson") return parsed(readFileSync(path, "utf8"));
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  await connection.run("SET TimeZone = 'UTC'");
  const source = format === "csv" ? `read_csv('${path}', all_varchar = true)` : `read_parquet('${path}')`;
  const rows = await connection.runAndReadAll(`SELECT to_json(one_row)::VARCHAR FROM ${source} AS one_row`);
  connection.closeSync();
  instance.closeSync();
  return rows.getRows().map(([text]) => unfolded(JSON.parse(text as string)));
}

/** Tables hold objects and lists as text, and CSV everything. */
function unfolded(row: Row): Row {
  const entries = Object.entries(row).map(([name, value]) => {
    if (typeof value !== "string") return [name, value];
    if (name === "key" || name === "name") return [name, value];
    if (/^\d{4}-\d\d-\d\d /.test(value)) return [name, instant(value.replace(" ", "T").replace("+00", "Z"))];
    if (/^\d{4}-\d\d-\d\dT/.test(value)) return [name, instant(value)];
    return [name, /^([[{]|true$|false$|\d+$)/.test(value) ? JSON.parse(value) : value];
  });
  return Object.fromEntries(entries);
}

/** Parquet's readers leave zeros out. */
const instant = (text: string) => text.replace(/(\.\d*?)0*Z$/, "$1Z").replace(".Z", "Z");
const simple = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row)
      .map(([name, value]) => [
        name,
        typeof value === "string" && /^\d{4}-.*Z$/.test(value) ? instant(value) : value,
      ])
      .filter(([, value]) => value !== null && value !== ""),
  );

async function filled(): Promise<ServerProcess> {
  const server = await ServerProcess.start();
  await server.batch([
    {
      event: "a",
      distinct_id: "x",
      timestamp: "2026-01-01T00:00:00Z",
      properties: { n: 1, $set: { p: true } },
    },
    { event: "b", distinct_id: "x", timestamp: "2026-01-02T00:00:00.123456Z", properties: { t: 'q"u,o\nä' } },
    {
      event: "$identify",
      distinct_id: "x",
      properties: { $anon_distinct_id: "anon", $set: { text: "1,2" } },
    },
    {
      event: "$groupidentify",
      distinct_id: "x",
      properties: { $group_type: "company", $group_key: "acme", $group_set: { size: 3, list: ["a"] } },
    },
  ]);
  await server.eventsWhenStored(4);
  const filters = { groups: [{ properties: [], rollout_percentage: 50 }] };
  for (const body of [
    { key: "new", name: "A, b", filters, tags: ["one", "two"] },
    { key: "off", active: false },
  ]) {
    const created = await server.api("/api/projects/1/feature_flags/", { method: "POST", body });
    expect(created.status).toBe(201);
  }
  return server;
}

test("the same in every format, from a running and from a stopped server", async () => {
  await using server = await filled();
  const { dataDir } = server;
  const stored = await server.events();
  const subjects = { events: 4, persons: 1, groups: 1, flags: 2 };
  const lines: Record<string, Row[]> = {};
  for (const [subject, count] of Object.entries(subjects)) {
    lines[subject] = parsed(await run(dataDir, subject));
    expect(lines[subject]).toHaveLength(count);
    for (const format of ["ndjson", "csv", "parquet"]) {
      const file = join(folder, `${subject}.${format}`);
      const summary = JSON.parse(await run(dataDir, subject, "--format", format, file, "--json"));
      expect([...Value.Errors(ExportSummary, summary)]).toEqual([]);
      expect(summary).toEqual({ rows: count, file });
      const rows = (await getRows(file, format)).map(simple);
      expect({ subject, format, rows }).toEqual({ subject, format, rows: lines[subject].map(simple) });
    }
  }
  await server.stop();
  for (const subject of ["events", "persons", "flags"])
    expect(parsed(await run(dataDir, subject, "-"))).toEqual(lines[subject]!);

  const { events, persons, groups, flags } = lines;
  expect(events!.map(({ uuid }) => uuid)).toEqual(stored.map(({ uuid }) => uuid));
  expect(events!.map(({ properties }) => properties)).toEqual(stored.map(({ properties }) => properties));
  expect(events![1]).toMatchObject({
    event: "b",
    distinct_id: "x",
    timestamp: "2026-01-02T00:00:00.123456Z",
    historical: false,
  });
  expect(persons![0]).toMatchObject({ distinct_ids: ["x", "anon"], properties: { p: true, text: "1,2" } });
  expect(groups![0]).toMatchObject({ type: "company", key: "acme", properties: { size: 3, list: ["a"] } });
  expect(flags!.map(({ key, active, tags }) => ({ key, active, tags }))).toEqual([
    { key: "new", active: true, tags: ["one", "two"] },
    { key: "off", active: false, tags: [] },
  ]);
  expect(readdirSync(folder).filter((name) => name.includes("part"))).toEqual([]);
}, 120_000);

test("from a time on and before a time; times without a zone are UTC", async () => {
  await using server = await filled();
  const { dataDir } = server;
  const names = async (...args: string[]) =>
    parsed(await run(dataDir, "events", "--to", "2026-01-03", ...args)).map(({ event }) => event);
  expect(await names()).toEqual(["a", "b"]);
  expect(await names("--from", "2026-01-01")).toEqual(["a", "b"]);
  expect(await names("--from", "2026-01-01T00:00:00.000001Z")).toEqual(["b"]);
  expect(await names("--from", "2026-01-01T01:00:00+01:00")).toEqual(["a", "b"]);
  expect(await names("--from", "2026-01-01T01:00:00")).toEqual(["b"]);
  expect(await names("--to", "2026-01-02T00:00:00.123456Z")).toEqual(["a"]);
  for (const time of ["99999999999999999999", "9223372036855000", "soon"])
    await expect(names("--from", time)).rejects.toThrow("date and time");
  for (const subject of ["persons", "groups", "flags"]) {
    // A person is as old as its first event.
    expect(parsed(await run(dataDir, subject, "--to", "2026-01-01"))).toEqual([]);
    expect(parsed(await run(dataDir, subject, "--from", "2026-01-01"))).not.toEqual([]);
  }
}, 60_000);

test("an event of the year 0 is read back from every format", async () => {
  await using server = await ServerProcess.start();
  const timestamp = "0000-01-01T00:00:00.000000Z";
  await server.batch([{ event: "old", distinct_id: "x", timestamp }]);
  await server.eventsWhenStored(1);
  for (const format of ["ndjson", "csv", "parquet"]) {
    const file = join(folder, `old.${format}`);
    await run(server.dataDir, "events", file);
    await using other = await ServerProcess.start();
    const imported = await flagkeep(["import", file, "--project", "1", "--data-dir", other.dataDir]);
    expect([format, imported.code, imported.stderr]).toEqual([format, 0, ""]);
    expect(await other.eventsWhenStored(1)).toMatchObject([{ event: "old", timestamp }]);
  }
}, 60_000);

describe("nothing that was acknowledged is missing", () => {
  const send = (server: ServerProcess, count: number) =>
    Promise.all(
      Array.from({ length: count }, (_, n) =>
        server.capture({ event: `e${n}`, distinct_id: `u${n}`, properties: { $set: { n } } }),
      ),
    );
  // So long that what is sent stays in the open segment.
  const args = ["--journal-seal-interval", "1m"];

  test("what is only in the journal of a server that was killed", async () => {
    const server = await ServerProcess.start({ args });
    await send(server, 30);
    await server.kill();
    expect(parsed(await run(server.dataDir, "events"))).toHaveLength(30);
    expect(parsed(await run(server.dataDir, "persons"))).toHaveLength(30);
    const again = await ServerProcess.start({ directory: server.directory, args });
    await send(again, 20);
    await again.kill();
    const query = [
      "query",
      "SELECT count(*) AS n FROM events",
      "--format",
      "csv",
      "--data-dir",
      server.dataDir,
    ];
    expect((await flagkeep(query)).stdout).toBe("n\n50\n");
    rmSync(server.dataDir, { recursive: true });
  }, 60_000);

  test("events that a running server has just accepted", async () => {
    await using server = await ServerProcess.start({ args: ["--journal-seal-interval", "2s"] });
    await send(server, 30);
    expect(parsed(await run(server.dataDir, "events"))).toHaveLength(30);
  }, 60_000);
});

test("several concurrent commands on a stopped server: one opens the data, the others continue when it exits", async () => {
  const server = await filled();
  await server.stop();
  const counts = await Promise.all(
    Array.from({ length: 5 }, async () => parsed(await run(server.dataDir, "events")).length),
  );
  expect(counts).toEqual([4, 4, 4, 4, 4]);
  rmSync(server.dataDir, { recursive: true, force: true });
}, 60_000);

test("a file is there whole or not at all, and wrong calls end with one sentence", async () => {
  await using server = await filled();
  const { dataDir } = server;
  await server.stop();
  const file = join(folder, "kept.ndjson");
  writeFileSync(file, "as it was");
  mkdirSync(join(folder, "a-folder"), { recursive: true });
  for (const [out, status] of [
    [["events", join(folder, "a-folder")], 1],
    [["flags", join(folder, "nowhere/x")], 1],
    [["events", "--json"], 2],
    [["events", file, "--from", "yesterday"], 2],
    [["events", file, "--project", "7"], 1],
  ] as const) {
    const { stdout, stderr, code } = await flagkeep(["export", ...out, "--data-dir", dataDir]);
    expect({ out, code, stdout }).toEqual({ out, code: status, stdout: "" });
    expect(stderr).not.toContain("    at ");
  }
  expect(readFileSync(file, "utf8")).toBe("as it was");
  await run(dataDir, "events", file);
  expect(parsed(readFileSync(file, "utf8"))).toHaveLength(4);
}, 60_000);

test("a link, a pipe and /dev/null stay what they are", async () => {
  await using server = await filled();
  const { dataDir } = server;
  await server.stop();
  const own = join(folder, "no-plain-files");
  mkdirSync(own);
  const [real, link, pipe] = ["real.ndjson", "link.ndjson", "pipe"].map((name) => join(own, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(real, "before");
  symlinkSync(real, link);
  await run(dataDir, "events", link);
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  expect(parsed(readFileSync(real, "utf8"))).toHaveLength(4);
  expect(Bun.spawnSync(["mkfifo", pipe]).exitCode).toBe(0);
  const reader = Bun.spawn(["cat", pipe], { stdout: "pipe" });
  const [written] = await Promise.all([new Response(reader.stdout).text(), run(dataDir, "events", pipe)]);
  expect(parsed(written)).toHaveLength(4);
  expect(lstatSync(pipe).isFIFO()).toBe(true);
  // As /dev/null is, which a test must not put at risk.
  const nothing = join(own, "null");
  symlinkSync("/dev/null", nothing);
  await run(dataDir, "events", "--format", "csv", nothing);
  expect(lstatSync(nothing).isSymbolicLink()).toBe(true);
  expect(readdirSync(own).sort()).toEqual(["link.ndjson", "null", "pipe", "real.ndjson"]);
}, 60_000);
