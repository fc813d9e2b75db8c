/** The server itself over HTTP: the started executable, its backups and its doctor. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { JobRunningError, Jobs } from "../../../src/operate/jobs.ts";
import { Browser, goodPassword } from "../../accounts/sessions/browser.ts";
import { s3Environment, TestS3 } from "../../support/s3.ts";
import { flagkeep, ServerProcess, until } from "../../support/server.ts";
import { server, useServer } from "../../support/use-server.ts";

useServer();
beforeAll(async () => {
  await server.query("SELECT 1");
});
afterAll(() => {});

const backups = "/api/instance/backups/";
const read = async (path: string) => await (await server.api(path)).json();

async function finished(id: string) {
  return await until(async () => {
    const job = await read(`${backups}jobs/${id}/`);
    return job.state !== "running" && job;
  }, "the job is done");
}

test("status and doctor return what the commands print", async () => {
  const status = await read("/api/instance/status/");
  expect(status).toMatchObject({ running: true, state: "ready", url: server.url });
  const [one, two] = await Promise.all([read("/api/instance/doctor/"), read("/api/instance/doctor/")]);
  expect(one).toMatchObject({ errors: 0, ok: true });
  expect(two.findings.length).toBe(one.findings.length);
  expect(one.findings.map(({ check }: { check: string }) => check)).toContain("disk");
});

test("a backup is created, verified, fetched, and deleted", async () => {
  await server.batch([{ event: "seen", distinct_id: "ann" }]);
  await server.eventsWhenStored(1);
  const started = await server.api(backups, { method: "POST" });
  expect(started.status).toBe(202);
  const { id } = await started.json();
  const second = await server.api(backups, { method: "POST" });
  expect([second.status, (await second.json()).code]).toEqual([409, "job_running"]);
  const created = await finished(id);
  expect(created).toMatchObject({ state: "done", error: null, kind: "create" });
  expect(created.step).toBeString();
  const { results, jobs } = await read(backups);
  expect(jobs).toHaveLength(1);
  expect(results).toMatchObject([
    { verified: true, events: 1, restore_command: expect.stringContaining(created.result.file) },
  ]);
  const [{ name, bytes, file }] = results;
  const verifying = await (await server.api(`${backups}${name}/verify/`, { method: "POST" })).json();
  expect(await finished(verifying.id)).toMatchObject({
    state: "done",
    name,
    result: { ok: true, events: 1 },
  });
  const fetched = await server.api(`${backups}${name}/download/`);
  expect(fetched.headers.get("content-disposition")).toBe(`attachment; filename="${name}"`);
  const content = new Uint8Array(await fetched.arrayBuffer());
  expect(content.length).toBe(bytes);
  expect(Bun.SHA256.hash(content, "hex")).toBe(created.result.sha256);
  const ticket = await (await server.api(`${backups}${name}/ticket/`, { method: "POST" })).json();
  const first = await fetch(`${server.url}${ticket.url}`);
  expect((await first.arrayBuffer()).byteLength).toBe(bytes);
  expect((await fetch(`${server.url}${ticket.url}`)).status).toBe(404);
  expect((await server.api(`${backups}${name}/`, { method: "DELETE" })).status).toBe(204);
  expect(existsSync(file)).toBe(false);
  expect((await server.api(`${backups}${name}/`, { method: "DELETE" })).status).toBe(404);
});

test("an unreadable destination is reported with its own message", async () => {
  await using s3 = await TestS3.start();
  const place = "s3://not-there/backups";
  const through = ["env", ...Object.entries(s3Environment).map(([name, value]) => `${name}=${value}`)];
  await using own = await ServerProcess.start({
    through,
    args: ["--backup-destination", place, "--backup-s3-endpoint", s3.endpoint],
  });
  const answer = await own.api(backups);
  expect([answer.status, await answer.json()]).toEqual([
    503,
    {
      type: "server_error",
      code: "destination_failed",
      attr: null,
      detail: expect.stringMatching(
        /^Listing s3:\/\/not-there\/backups failed \(NoSuchBucket.*\. Check the /,
      ),
    },
  ]);
});

test("no name leads out of the destination", async () => {
  for (const name of [
    "..%2Fflagkeep.sqlite",
    "flagkeep.sqlite",
    "%2e%2e",
    "flagkeep-2026-03-04T03-00-00.000Z.tar.zst",
  ]) {
    for (const [method, rest] of [
      ["GET", "/download/"],
      ["POST", "/verify/"],
      ["POST", "/ticket/"],
      ["DELETE", "/"],
    ] as const) {
      expect([name, (await server.api(`${backups}${name}${rest}`, { method })).status]).toEqual([name, 404]);
    }
  }
  expect(existsSync(join(server.dataDir, "flagkeep.sqlite"))).toBe(true);
});

test("only operators manage the server, and re-authenticate before a backup is downloaded or deleted", async () => {
  const browser = new Browser(server.url);
  await browser.setUp(server.initialized.console_url);
  expect((await browser.ask("GET", "/api/instance/status/")).status).toBe(200);
  const name = "flagkeep-2026-03-04T03-00-00.000Z.tar.zst";
  const code = async (method: string, path: string) =>
    ((await (await browser.ask(method, path)).json()) as { code: string }).code;
  expect(await code("DELETE", `${backups}${name}/`)).toBe("confirmation_required");
  expect(await code("GET", `${backups}${name}/download/`)).toBe("confirmation_required");
  expect((await browser.ask("POST", "/api/session/confirm/", { password: goodPassword })).status).toBe(200);
  expect(await code("DELETE", `${backups}${name}/`)).toBe("not_found");
  const args = [
    "users",
    "link",
    "admin@example.com",
    "--level",
    "admin",
    "--data-dir",
    server.dataDir,
    "--json",
  ];
  const { console_url } = JSON.parse((await flagkeep(args)).stdout);
  const admin = new Browser(server.url);
  await admin.setUp(console_url);
  for (const path of ["/api/instance/status/", "/api/instance/doctor/", backups]) {
    expect([path, (await admin.ask("GET", path)).status]).toEqual([path, 403]);
  }
});

test("a failed job reports the reason; one runs at a time, and twenty are listed", async () => {
  const jobs = new Jobs();
  const now = new Date();
  const run = async (script: string) => {
    const job = jobs.start("create", null, ["sh", "-c", script], now);
    expect(() => jobs.start("create", null, ["true"], now)).toThrow(JobRunningError);
    await until(() => job.state !== "running", "it is done");
    return job;
  };
  expect(await run("echo 'flagkeep: The disk is full.' >&2; exit 1")).toMatchObject({
    state: "failed",
    error: "The disk is full.",
  });
  expect(await run(`echo '{"step":"Packing","done":1,"total":2}' >&2; echo '{"file":"x"}'`)).toMatchObject({
    state: "done",
    step: "Packing",
    done: 1,
    total: 2,
    result: { file: "x" },
  });
  expect(await run("kill -9 $$")).toMatchObject({ state: "failed" });
  expect(await run("echo no json")).toMatchObject({ state: "failed" });
  for (let n = 0; n < 25; n++) await run("echo '{}'");
  expect(jobs.list()).toHaveLength(20);
});
