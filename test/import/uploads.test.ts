/** Imports over HTTP: uploaded in one or several parts, observed, cancelled, resumed, and their rejected records read. */

import { expect, test } from "bun:test";
import { existsSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import {
  ImportCapacityError,
  ImportStateError,
  ImportUploads,
  importsMax,
  UploadOffsetError,
} from "../../src/import/uploads.ts";
import { flagkeep, temporaryFolder, until } from "../support/server.ts";
import { restartServer, server, useServer } from "../support/use-server.ts";

const args = ["--body-limit", "1MiB"];
useServer({ args });

const imports = "/api/projects/1/imports/";
const getLines = (count: number, from = 0) =>
  Array.from({ length: count }, (_, n) =>
    JSON.stringify({ event: "old", distinct_id: `u${n % 50}`, timestamp: 1_600_000_000 + from + n }),
  ).join("\n");

async function send(path: string, body: string | Uint8Array | FormData = "", key?: string, more = {}) {
  const response = await fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${key ?? server.initialized.personal_api_key}`, ...more },
    body: body as never,
  });
  return { status: response.status, body: await response.json() };
}
const read = async (path: string) => await (await server.api(path)).json();
const ended = (id: string) =>
  until(
    async () => {
      const run = await read(`${imports}${id}/`);
      return !["waiting", "running"].includes(run.state) && run;
    },
    "the import has ended",
    120_000,
  );

test("a file is uploaded, loaded and summarized; rejected records can be read; then it is removed", async () => {
  const file = Bun.gzipSync(`${getLines(20)}\n{"event": "cut\n${getLines(2)}`);
  const { status, body } = await send(
    `${imports}?name=${encodeURIComponent("../old events.ndjson.gz")}`,
    file,
  );
  expect(status).toBe(201);
  expect(body).toMatchObject({
    origin: "upload",
    project_id: 1,
    name: "old_events.ndjson.gz",
    format: "auto",
    dry_run: false,
    received_bytes: file.length,
    created_by: 1,
  });
  const run = await ended(body.id);
  expect(run).toMatchObject({
    state: "done",
    error: null,
    progress: { records: 23, rejected: 1, total_bytes: file.length },
    summary: { read: 23, accepted: 22, rejected: 1, complete: true },
  });
  expect(run.summary.reject_files).toBeUndefined();
  expect(await server.events("event=old")).toHaveLength(22);
  const rejects = await (await server.api(`${imports}${body.id}/rejects/`)).text();
  expect(
    rejects
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line).line),
  ).toEqual([21]);
  expect((await read(imports)).results.map(({ id }: { id: string }) => id)).toEqual([body.id]);
  expect((await read("/api/instance/imports/")).results).toEqual((await read(imports)).results);
  const again = await send(`${imports}${body.id}/start/`, "{}");
  expect([again.status, again.body.code]).toEqual([409, "import_state"]);
  expect((await server.api(`${imports}${body.id}/`, { method: "DELETE" })).status).toBe(204);
  expect((await server.api(`${imports}${body.id}/`)).status).toBe(404);
  expect(readdirSync(join(server.dataDir, "import-state", "uploads"))).toEqual([]);
});

test("every encoding of a body is accepted", async () => {
  const file = Buffer.from(getLines(1, 500));
  for (const [coding, body] of [
    ["br", brotliCompressSync(file)],
    ["deflate", deflateSync(file)],
    ["gzip", gzipSync(file)],
    ["zstd", zstdCompressSync(file)],
  ] as const) {
    const sent = await send(imports, new Uint8Array(body), undefined, { "Content-Encoding": coding });
    expect([coding, (await ended(sent.body.id)).summary?.read]).toEqual([coding, 1]);
    expect((await server.api(`${imports}${sent.body.id}/`, { method: "DELETE" })).status).toBe(204);
  }
});

test("a form, rules and formats are accepted, and a dry run loads nothing until the import is started", async () => {
  const form = new FormData();
  form.set("note", "x");
  form.set("file", new Blob(["who,what,when\nann,tried,2025-01-02T03:04:05Z\n"]), "table.csv");
  const rules = ["distinct_id=who", "event=what", "timestamp=when"].map(
    (rule) => `map=${encodeURIComponent(rule)}`,
  );
  const { body } = await send(`${imports}?dry_run=true&${rules.join("&")}`, form);
  expect(body).toMatchObject({
    name: "table.csv",
    dry_run: true,
    map: ["distinct_id=who", "event=what", "timestamp=when"],
  });
  expect(await ended(body.id)).toMatchObject({ state: "done", summary: { accepted: 1, dry_run: true } });
  expect(await server.events("event=tried")).toEqual([]);
  const response = await server.api(`${imports}${body.id}/start/`, {
    method: "POST",
    body: { dry_run: false },
  });
  expect(response.status).toBe(200);
  expect(await ended(body.id)).toMatchObject({ state: "done", summary: { accepted: 1, dry_run: false } });
  expect(await server.events("event=tried")).toHaveLength(1);
});

test("in parts, cancelled, stopped with the server, and resumed: everything once", async () => {
  const count = 60_000;
  const file = Buffer.from(getLines(count, 1_000_000));
  const { body } = await send(`${imports}?start=false&name=large.ndjson`);
  expect(body).toMatchObject({ state: "uploading", received_bytes: 0 });
  const one = `${imports}${body.id}/`;
  expect((await send(`${one}start/`, "{}")).body.detail).toBe("The file is empty: upload it first.");
  const part = 700_000;
  for (let offset = 0; offset < file.length; offset += part) {
    const sent = await send(`${one}parts/?offset=${offset}`, file.subarray(offset, offset + part));
    expect(sent).toMatchObject({
      status: 200,
      body: { received_bytes: Math.min(offset + part, file.length) },
    });
    expect(await send(`${one}parts/?offset=${offset}`, "x")).toMatchObject({
      status: 409,
      body: { code: "wrong_offset" },
    });
  }
  const tooLarge = await send(`${one}parts/?offset=${file.length}`, new Uint8Array(1024 * 1024 + 1));
  expect([tooLarge.status, tooLarge.body.code]).toEqual([413, "request_too_large"]);
  expect((await send(`${one}parts/?offset=x`, "x")).status).toBe(400);

  const start = async () => expect((await send(`${one}start/`, "{}")).status).toBe(200);
  const works = () => until(async () => (await read(one)).progress.records > 0, "records are read");
  await start();
  await works();
  const cancelled = await send(`${one}cancel/`, "{}");
  if (cancelled.status === 200) expect(cancelled.body.state).toBe("cancelled");
  expect((await send(`${one}cancel/`, "{}")).status).toBe(409);
  if ((await read(one)).state !== "done") {
    await start();
    await works();
  }
  await restartServer(args);
  const found = await read(one);
  expect(["interrupted", "done"]).toContain(found.state);
  if (found.state === "interrupted") await start();
  expect(await ended(body.id)).toMatchObject({ state: "done", summary: { read: count, accepted: count } });
  const [stored] = await server.query(
    "SELECT count(*) AS n, count(DISTINCT timestamp) AS times FROM events WHERE timestamp >= '2020-09-25'::TIMESTAMP AND event = 'old'",
  );
  expect(stored).toEqual({ n: count, times: count });
});

test("a failure reports the reason, without the server's folders, and can be retried", async () => {
  const { body } = await send(`${imports}?max_rejects=0`, `${getLines(1, 5_000)}\n{"event":"x"}`);
  const run = await ended(body.id);
  expect(run).toMatchObject({ state: "failed", max_rejects: 0 });
  expect(run.error).toStartWith("Too many records are rejected: upload, line 2");
  expect(run.error).not.toContain(server.dataDir);
  await server.api(`${imports}${body.id}/start/`, { method: "POST", body: { max_rejects: 1 } });
  expect(await ended(body.id)).toMatchObject({ state: "done", summary: { accepted: 1, rejected: 1 } });
});

test("refusals", async () => {
  for (const [query, attr] of [
    ["?format=excel", "format"],
    ["?map=nothing", "map"],
    ["?max_rejects=-1", "max_rejects"],
    ["?dry_run=perhaps", "dry_run"],
    ["", "file"],
  ]) {
    expect(await send(`${imports}${query}`)).toMatchObject({ status: 400, body: { attr } });
  }
  const added = await flagkeep([
    "users",
    "create",
    "member@example.com",
    "--data-dir",
    server.dataDir,
    "--json",
  ]);
  expect(added.code).toBe(0);
  const created = await flagkeep([
    "keys",
    "create",
    "--user",
    "member@example.com",
    "--scope",
    "*",
    "--label",
    "m",
    "--data-dir",
    server.dataDir,
    "--json",
  ]);
  const { value } = JSON.parse(created.stdout);
  expect((await send(imports, getLines(1), value)).status).toBe(403);
  expect((await server.api(imports, { key: value })).status).toBe(200);
  const [{ id }] = (await read(imports)).results;
  expect((await server.api(`${imports}${id}/rejects/`, { key: value })).status).toBe(403);
  const other = await (
    await server.api("/api/projects/", { method: "POST", body: { name: "Other" } })
  ).json();
  expect((await server.api(`/api/projects/${other.id}/imports/${id}/`)).status).toBe(404);
});

test("an import on the command line is seen, too", async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "mine.ndjson"), getLines(3, 9_000));
  await flagkeep(["import", join(folder, "mine.ndjson"), "--data-dir", server.dataDir, "--project", "1"]);
  const [run] = (await read(imports)).results;
  expect(run).toMatchObject({
    origin: "command_line",
    name: "mine.ndjson",
    state: "done",
    created_by: null,
    progress: { records: 3, rejected: 0 },
  });
  expect((await send(`${imports}${run.id}/cancel/`, "{}")).body.detail).toBe(
    "The import runs on the command line.",
  );
  expect((await server.api(`${imports}${run.id}/`, { method: "DELETE" })).status).toBe(204);
  rmSync(folder, { recursive: true });
});

test("a limited number is listed; finished ones are replaced; an interrupted part leaves nothing", async () => {
  const dataDir = temporaryFolder();
  const uploads = new ImportUploads({ dataDir, executable: ["false"], reserveBytes: 0 });
  const options = { format: "auto" as const, map: [], isLinking: true, maxRejects: 1, isDryRun: false };
  const create = () => uploads.create({ projectId: 1, name: "x", options, createdBy: 1 }, new Date());
  const first = create();
  await uploads.append(first, Buffer.from("one"), 0);
  await expect(uploads.append(first, Buffer.from("two"), 0)).rejects.toBeInstanceOf(UploadOffsetError);
  const path = join(dataDir, "import-state", "uploads", first.id, "files", "x");
  writeFileSync(path, "one and a part that broke off");
  await uploads.append(first, Buffer.from(" two"), 3);
  expect(await Bun.file(path).text()).toBe("one two");
  uploads.start(first);
  expect(() => uploads.start(first)).toThrow(ImportStateError);
  await until(() => first.state === "failed", "it has failed");
  for (let count = 1; count < importsMax; count++) create();
  expect(create).toThrow(ImportCapacityError);
  await uploads.cancel(uploads.list().find(({ state }) => state === "uploading")!);
  create();
  expect(uploads.list()).toHaveLength(importsMax);
  // A folder that has no name yet is nothing; what ran when the server ended can continue.
  rmSync(join(dataDir, "import-state", "uploads", first.id, "import.json"));
  const next = new ImportUploads({ dataDir, executable: ["false"], reserveBytes: 0 });
  expect(next.list()).toHaveLength(importsMax - 1);
  expect(existsSync(path)).toBe(false);
  rmSync(dataDir, { recursive: true });
});

test("one slow import does not delay others: two run concurrently", async () => {
  const slow = await send(
    `${imports}?name=slow.zst`,
    Bun.zstdCompressSync(`${getLines(1)}\n`.repeat(3_000_000)),
  );
  expect(slow.status).toBe(201);
  const isRunning = async () => (await read(`${imports}${slow.body.id}/`)).state === "running";
  await until(isRunning, "the slow one runs");
  const quick = await send(`${imports}?name=quick.ndjson`, getLines(10, 9_000_000));
  expect(await ended(quick.body.id)).toMatchObject({ state: "done", summary: { accepted: 10 } });
  expect(await isRunning()).toBe(true);
  await send(`${imports}${slow.body.id}/cancel/`, "{}");
  expect(await ended(slow.body.id)).toMatchObject({ state: "cancelled" });
}, 120_000);
