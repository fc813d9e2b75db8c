/** Restore drills while a server is running. */

import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, readdirSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, initializedDirectory, ServerProcess, temporaryFolder } from "../support/server.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the newest backup is restored elsewhere, started and compared; no file is left", async () => {
  await using server = await ServerProcess.start();
  const here = ["--data-dir", server.dataDir];
  const work = join(folder, "work");
  mkdirSync(work);
  const drill = (...args: string[]) => flagkeep(["backup", "drill", ...args, "--work-dir", work, ...here]);
  expect(await drill()).toMatchObject({ code: 1, stderr: expect.stringContaining("no valid backup") });

  await server.batch(Array.from({ length: 50 }, (_, i) => ({ event: "seen", distinct_id: `u${i}` })));
  await server.eventsWhenStored(50);
  const created = await flagkeep(["backup", "create", "--json", ...here]);
  const { file } = JSON.parse(created.stdout) as { file: string };
  await server.capture({ event: "later", distinct_id: "kim" });
  const done = await drill("--json");
  expect([done.stderr, done.code]).toEqual(["", 0]);
  expect(JSON.parse(done.stdout)).toMatchObject({
    file,
    ok: true,
    events: 50,
    projects: [{ project_id: 1, events: 50, persons: 50 }],
  });
  const shown = await drill(file);
  expect(shown.stdout).toContain("can be restored");
  expect(readdirSync(work)).toEqual([]);
  // The running one continued.
  await server.eventsWhenStored(51);

  truncateSync(file, 2_000);
  const broken = await drill(file);
  expect([broken.code, broken.stdout]).toEqual([1, ""]);
  expect(readdirSync(work)).toEqual([]);
}, 120_000);

test("a backup whose events are in ClickHouse is restored but not started, which the output reports", async () => {
  const server = await ServerProcess.start({ directory: await initializedDirectory() });
  const { dataDir } = server;
  expect(await server.stop()).toBe(0);
  const here = ["--data-dir", dataDir];
  // As a server with --events-url leaves it.
  const people = new Database(join(dataDir, "people.sqlite"));
  people.run("INSERT INTO outside_store (id, is_claimed) VALUES ('elsewhere', 1)");
  people.close();
  rmSync(join(dataDir, "events.duckdb"));
  const created = await flagkeep(["backup", "create", "--json", ...here]);
  expect([created.stderr, created.code]).toEqual(["", 0]);
  const { file } = JSON.parse(created.stdout) as { file: string };
  const done = await flagkeep(["backup", "drill", "--json", ...here]);
  expect([done.stderr, done.code]).toEqual(["", 0]);
  expect(JSON.parse(done.stdout)).toMatchObject({
    file,
    ok: true,
    restore_seconds: expect.any(Number),
    start_seconds: null,
    events: null,
  });
  const shown = await flagkeep(["backup", "drill", ...here]);
  expect(shown.stdout).toMatch(
    / can be restored in [\d.]+ s; it was not started, because its events are in ClickHouse\.\n/,
  );
  rmSync(dataDir, { recursive: true });
}, 60_000);
