/** SQLite files that several processes use. */

import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { sqliteVersion } from "../../src/lib/sqlite.ts";
import { temporaryFolder } from "../support/server.ts";

const folder = temporaryFolder();
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("a reader waits for a process that has the file for itself for a moment", async () => {
  const path = join(folder, "store.sqlite");
  new Database(path).run("CREATE TABLE schema_migration (version INTEGER)");
  const script = `
    const db = new (require("bun:sqlite").Database)(${JSON.stringify(path)});
    db.run("BEGIN EXCLUSIVE");
    db.run("INSERT INTO schema_migration VALUES (7)");
    console.log("alone");
    Bun.sleepSync(300);
    db.run("COMMIT");`;
  const other = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  await other.stdout.getReader().read();
  expect(sqliteVersion(path)).toBe(7);
  expect(await other.exited).toBe(0);
});
