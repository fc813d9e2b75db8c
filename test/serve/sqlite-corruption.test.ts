/** Corruption or loss of `people.sqlite`: readiness and `status` report it, and no request gets a 500 for it. */

import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { checkSqlite } from "../../src/lib/sqlite.ts";
import { flagkeep, initializedDirectory, ServerProcess, until } from "../support/server.ts";

interface Readiness {
  roles: { role: string; ready: boolean; reason: string | null }[];
}

async function flagsRole(server: ServerProcess): Promise<Readiness["roles"][number]> {
  const body = (await (await fetch(`${server.url}/_readiness`)).json()) as Readiness;
  return body.roles.find(({ role }) => role === "flags")!;
}

/** Fills a page, counted from 0, with garbage. */
function spoil(path: string, page: number): void {
  const bytes = readFileSync(path);
  for (let at = page * 4096; at < Math.min(bytes.length, (page + 1) * 4096); at++)
    bytes[at] = (at * 31) % 251;
  writeFileSync(path, bytes);
}

async function filled(): Promise<Pick<ServerProcess, "directory" | "dataDir">> {
  const server = await ServerProcess.start({});
  await server.batch(
    Array.from({ length: 300 }, (_, n) => ({
      event: "$identify",
      distinct_id: `u${n}`,
      properties: { $set: { plan: "pro", pad: "x".repeat(500) } },
    })),
  );
  await server.eventsWhenStored(300);
  const { directory, dataDir } = server;
  await server.stop();
  return { directory, dataDir };
}

test("garbage after the first page: flags are not ready after the first failed read, and no 500", async () => {
  const { directory, dataDir } = await filled();
  const path = join(dataDir, "people.sqlite");
  const bytes = readFileSync(path);
  // The schema's pages stay, so that the file opens.
  for (let at = 60 * 4096; at < bytes.length; at++) bytes[at] = (at * 31) % 251;
  writeFileSync(path, bytes);
  await using server = await ServerProcess.start({ directory });
  const get = (of: string) =>
    fetch(`${server.url}/api/projects/1/${of}`, {
      headers: { Authorization: `Bearer ${server.initialized.personal_api_key}` },
    });
  const role = await until(async () => {
    for (let n = 0; n < 300; n += 30) {
      const { status } = await get(`persons/?distinct_id=u${n}`);
      expect([200, 503]).toContain(status);
    }
    const found = await flagsRole(server);
    return !found.ready && found;
  }, "flags are not ready");
  expect(role.reason).toContain("corrupt");
  const answer = await server.post("/flags/?v=2", { api_key: server.token, distinct_id: "u1" });
  expect(answer.status).toBe(200);
}, 60_000);

test("a missing file is reported, not replaced silently", async () => {
  const { directory, dataDir } = await filled();
  for (const end of ["", "-wal", "-shm"]) rmSync(join(dataDir, `people.sqlite${end}`), { force: true });
  await using server = await ServerProcess.start({ directory });
  expect(await flagsRole(server)).toMatchObject({ ready: false });
  expect((await flagsRole(server)).reason).toContain("people.sqlite is missing");
  // Not created either: the next start reports the same.
  expect(existsSync(join(dataDir, "people.sqlite"))).toBe(false);
}, 60_000);

test.each([0, 3])(
  "garbage in page %i + 1 of people.sqlite: the server starts, answers flags and names the file",
  async (page) => {
    const { directory, dataDir } = await filled();
    spoil(join(dataDir, "people.sqlite"), page);
    await using server = await ServerProcess.start({ directory });
    const role = await until(async () => {
      const found = await flagsRole(server);
      // A read may fail first; which file it was is known when both were checked.
      return !found.ready && found.reason?.includes("people.sqlite") && found;
    }, "flags are not ready because of people.sqlite");
    expect(role.ready).toBeFalse();
    const answer = await server.post("/flags/?v=2", { api_key: server.token, distinct_id: "u1" });
    expect(answer.status).toBe(200);
  },
  60_000,
);

test("garbage in page 1 of flagkeep.sqlite: the start names the file and how to restore it", async () => {
  const { dataDir } = await initializedDirectory();
  spoil(join(dataDir, "flagkeep.sqlite"), 0);
  const { code, stderr } = await flagkeep(["serve", "--data-dir", dataDir, "--port", "0"]);
  expect(code).toBe(1);
  expect(stderr).toMatch(/^flagkeep: \S+flagkeep\.sqlite is corrupt \([^\n]*$/m);
  expect(stderr.trim().split("\n")).toHaveLength(1);
}, 60_000);

test.each(["people.sqlite", "flagkeep.sqlite"])(
  "garbage in any page of %s: the check finds it, unless nothing is stored there",
  async (file) => {
    const { directory, dataDir } = await filled();
    const path = join(dataDir, file);
    const dump = () => {
      const db = new Database(path, { readonly: true });
      try {
        const tables = db
          .query("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0")
          .values();
        return tables.map(([name]) => JSON.stringify(db.query(`SELECT * FROM "${name}"`).values()));
      } finally {
        db.close();
      }
    };
    const whole = readFileSync(path);
    const before = dump();
    const missed: number[] = [];
    const problems: string[] = [];
    for (let page = 0; page < whole.length / 4096; page++) {
      spoil(path, page);
      const problem = checkSqlite(path);
      if (problem === null && !Bun.deepEquals(dump(), before)) missed.push(page);
      problems.push(problem ?? "");
      writeFileSync(path, whole);
    }
    expect(missed).toEqual([]);
    // SQLite names the problem below a line of its own.
    expect(problems.filter((problem) => problem.startsWith("***"))).toEqual([]);
    expect(problems.some((problem) => /page/i.test(problem))).toBe(true);
    rmSync(join(directory.dataDir, ".."), { recursive: true, force: true });
  },
  120_000,
);

test("a lost file without a backup: the loss is accepted by name, events are kept and loaded once", async () => {
  const { directory, dataDir } = await filled();
  const args = ["persons", "recreate", "--data-dir", dataDir];
  expect(await flagkeep([...args, "--accept-loss"])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("it was not replaced"),
  });
  writeFileSync(join(dataDir, "people.sqlite"), crypto.getRandomValues(new Uint8Array(20_000)));
  expect((await flagkeep(args)).code).toBe(2);
  const recreated = await flagkeep([...args, "--accept-loss", "--json"]);
  expect(recreated).toMatchObject({ code: 0 });
  expect(JSON.parse(recreated.stdout)).toMatchObject({ loaded: { historical: 0 } });
  expect(JSON.parse(recreated.stdout).quarantined[0]).toContain("people.sqlite");
  await using server = await ServerProcess.start({ directory });
  expect(await flagsRole(server)).toMatchObject({ ready: true });
  await server.capture({ event: "later", distinct_id: "u1" });
  expect(await server.eventsWhenStored(301)).toHaveLength(301);
}, 60_000);

test("a lost file and no other record of the last entry: the start fails", async () => {
  const { dataDir } = await filled();
  for (const name of ["people.sqlite", "people.sqlite-wal", "people.sqlite-shm", "last-backup.json"])
    rmSync(join(dataDir, name), { force: true });
  for (const name of ["journal", "archive"]) rmSync(join(dataDir, name), { recursive: true, force: true });
  const { code, stderr } = await flagkeep(["serve", "--data-dir", dataDir, "--port", "0"]);
  expect(code).toBe(1);
  expect(stderr).toContain("flagkeep persons recreate --accept-loss");
}, 60_000);
