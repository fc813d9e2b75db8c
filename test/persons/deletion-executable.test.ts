/** Deleting persons over HTTP and on the command line; it holds after a rebuild, a restart, and a restore with replay. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, initializedDirectory, ServerProcess, temporaryFolder } from "../support/server.ts";

const folder = temporaryFolder();
let directory: Awaited<ReturnType<typeof initializedDirectory>>;
beforeAll(async () => {
  directory = await initializedDirectory();
});
afterAll(() => {
  for (const one of [folder, directory.dataDir]) rmSync(one, { recursive: true, force: true });
});

interface PersonAnswer {
  uuid: string;
}
const named = async (server: ServerProcess, distinctId: string) =>
  (
    (await (await server.api(`/api/projects/1/persons/?distinct_id=${distinctId}`)).json()) as {
      results: PersonAnswer[];
    }
  ).results[0];

test("DELETE and `persons delete`: the person is deleted permanently, its events stay", async () => {
  const first = await ServerProcess.start({ directory });
  const set = (distinct_id: string, plan: string) => ({
    event: "$set",
    distinct_id,
    properties: { $set: { plan } },
  });
  await first.batch([set("kim", "pro"), set("ann", "free"), set("bob", "free")]);
  await first.eventsWhenStored(3);
  const kim = (await named(first, "kim"))!;
  const path = `/api/projects/1/persons/${kim.uuid}/`;

  expect((await first.api(`${path}?delete_events=true`, { method: "DELETE" })).status).toBe(400);
  expect(await named(first, "kim")).toBeDefined();
  const deleted = await first.api(path, { method: "DELETE" });
  expect([deleted.status, await deleted.json()]).toEqual([
    200,
    {
      uuid: kim.uuid,
      state: "deleted",
      detail: expect.stringContaining("is deleted"),
      events: expect.stringContaining("are kept"),
      backups: { last: null, detail: expect.stringContaining("No known backup") },
    },
  ]);
  expect((await first.api(path)).status).toBe(404);
  expect((await first.api(path, { method: "DELETE" })).status).toBe(404);
  expect(await named(first, "kim")).toBeUndefined();
  expect(await first.query("SELECT count(*) AS n FROM persons")).toEqual([{ n: 2 }]);
  expect(await first.query("SELECT count(*) AS n FROM events WHERE distinct_id = 'kim'")).toEqual([{ n: 1 }]);
  const log = await first.api("/api/projects/1/activity_log/?scope=Person");
  expect(JSON.stringify(await log.json())).not.toContain("kim");

  const backup = join(folder, "backups");
  const created = await flagkeep(["backup", "create", backup, "--data-dir", directory.dataDir, "--json"]);
  const { file } = JSON.parse(created.stdout) as { file: string };
  // Beside a running server, by distinct id; now a backup holds the person.
  const byCommand = await flagkeep(["persons", "delete", "ann", "--data-dir", directory.dataDir]);
  expect([byCommand.code, byCommand.stderr]).toEqual([0, ""]);
  expect(byCommand.stdout).toContain("still contain the person");
  expect(await named(first, "ann")).toBeUndefined();
  const last = await flagkeep(["persons", "get", "bob", "--data-dir", directory.dataDir, "--json"]);
  expect(JSON.parse(last.stdout)).toMatchObject({ distinct_ids: ["bob"], properties: { plan: "free" } });
  await first.stop();

  // The event store made again from the archive.
  const rebuilt = await flagkeep(["rebuild", "--data-dir", directory.dataDir, "--json"]);
  expect([rebuilt.code, rebuilt.stderr]).toEqual([0, ""]);
  const second = await ServerProcess.start({ directory });
  expect(await second.query("SELECT distinct_ids FROM persons")).toEqual([{ distinct_ids: ["bob"] }]);
  expect(await second.query("SELECT count(*) AS n FROM events")).toEqual([{ n: 3 }]);
  await second.stop();

  // A backup of before the second deletion, and the journal behind it.
  const restored = await flagkeep([
    "backup",
    "restore",
    file,
    "--force",
    "--replay",
    "--data-dir",
    directory.dataDir,
    "--json",
  ]);
  expect([restored.code, restored.stderr]).toEqual([0, ""]);
  const third = await ServerProcess.start({ directory });
  await third.eventsWhenStored(3);
  expect(await third.query("SELECT distinct_ids FROM persons")).toEqual([{ distinct_ids: ["bob"] }]);
  expect(await named(third, "ann")).toBeUndefined();
  await third.stop();

  // Without a running server.
  const alone = await flagkeep(["persons", "delete", "bob", "--data-dir", directory.dataDir, "--json"]);
  expect(JSON.parse(alone.stdout)).toMatchObject({ state: "deleted" });
  const removed = await flagkeep(["persons", "get", "bob", "--data-dir", directory.dataDir]);
  expect(removed).toMatchObject({ code: 1, stdout: "" });
}, 120_000);
