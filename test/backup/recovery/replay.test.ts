/** `backup restore --replay`: from the last backup to the last acknowledged event, exactly once. */

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, initializedDirectory, ServerProcess, until } from "../../support/server.ts";
import {
  type Answers,
  archiveFiles,
  type Filled,
  fill,
  getAnswers,
  messages,
  remove,
  restarted,
  stop,
  toCopy,
} from "./support.ts";

let filled: Filled;
let secondProject: { id: number; api_key: string };
let usage: unknown;
let backup: string;
beforeAll(async () => {
  const directory = await initializedDirectory();
  const { dataDir } = directory;
  const first = await ServerProcess.start({ directory });
  await fill(first, 0);
  const created = await flagkeep(["backup", "create", "--data-dir", dataDir, "--json"]);
  expect(created.code).toBe(0);
  backup = (JSON.parse(created.stdout) as { file: string }).file;
  await fill(first, 1);
  await stop(first);

  const second = await ServerProcess.start({ directory });
  const result = await flagkeep(["projects", "create", "Later", "--data-dir", dataDir, "--json"]);
  expect(result.code).toBe(0);
  secondProject = JSON.parse(result.stdout) as typeof secondProject;
  await second.api("/api/projects/1/feature_flags/", { method: "POST", body: { key: "after-the-backup" } });
  const reply = await second.post("/batch/", {
    api_key: secondProject.api_key,
    batch: [1, 2, 3].map((n) => ({ event: `secret ${n}`, distinct_id: "stranger" })),
  });
  expect(reply.status).toBe(200);
  await fill(second, 2);
  const answers = await getAnswers(second);
  usage = await getUsage(second);
  const pids = await second.enginePids();
  await second.kill();
  await until(() => pids.every((pid) => !existsSync(`/proc/${pid}`)), "the engine is gone");
  filled = { directory, dataDir, answers };
}, 90_000);
afterAll(() => remove(filled));

const restore = (dataDir: string, ...args: string[]) =>
  flagkeep(["backup", "restore", backup, "--data-dir", dataDir, "--json", ...args]);
const destroy = (path: string) => writeFileSync(path, "no database at all".repeat(1_000));

async function getUsage(server: ServerProcess): Promise<unknown> {
  return ((await (await server.api("/api/projects/1/usage/")).json()) as { totals: unknown }).totals;
}

async function answersWhenLoaded(server: ServerProcess): Promise<Answers> {
  await server.eventsWhenStored(filled.answers.events.length);
  return await getAnswers(server);
}

test("with events and persons destroyed: every event once, persons, usage and flags restored", async () => {
  const copy = toCopy(filled);
  const { dataDir } = copy;
  destroy(join(dataDir, "events.duckdb"));
  destroy(join(dataDir, "people.sqlite"));
  const { stdout, stderr, code } = await restore(dataDir, "--force", "--replay");
  expect({ code, stderr }).toMatchObject({ code: 0 });
  const { replayed, previous } = JSON.parse(stdout) as { replayed: { entries: number }; previous: string };
  expect(replayed).toEqual({
    from: previous,
    entries: expect.any(Number),
    metadata: "old",
    put_aside: 0,
    lost: [],
  } as never);
  // Two runs of 503 entries and three of the other project, and what the backup holds is not among them.
  expect(replayed.entries).toBeGreaterThanOrEqual(1_009);
  await using server = await restarted(copy);
  expect(await answersWhenLoaded(server)).toEqual(filled.answers);
  expect(await getUsage(server)).toEqual(usage as never);
  const flags = (await (await server.api("/api/projects/1/feature_flags/")).json()) as {
    results: { key: string }[];
  };
  expect(flags.results.map(({ key }) => key)).toEqual(["after-the-backup"]);
  const reply = await server.post("/capture/", {
    api_key: secondProject.api_key,
    event: "goes on",
    distinct_id: "a",
  });
  expect(reply.status).toBe(200);
  expect(messages(server).filter((message) => message.includes("could not"))).toEqual([]);
  // And all of it is archived or backed up again.
  await stop(server);
  const doctor = await flagkeep(["doctor", "--json", "--data-dir", dataDir, "--port", "0"]);
  expect(doctor.stdout).toContain('"check":"archive","level":"ok"');
  remove(copy);
}, 60_000);

test("into a new directory, and again: the same", async () => {
  const { dataDir: base } = await initializedDirectory();
  const dataDir = join(base, "..", "new");
  const { stdout, code } = await restore(dataDir, "--replay", filled.dataDir);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ previous: null, replayed: { from: filled.dataDir, lost: [] } });
  const directory = { ...filled.directory, dataDir };
  await using server = await restarted({ directory });
  expect(await answersWhenLoaded(server)).toEqual(filled.answers);
  remove({ dataDir });
}, 60_000);

test("without the old flagkeep.sqlite no key opens events of a project that the backup does not know", async () => {
  const copy = toCopy(filled);
  const { dataDir } = copy;
  destroy(join(dataDir, "flagkeep.sqlite"));
  const { stdout, code } = await restore(dataDir, "--force", "--replay");
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ replayed: { metadata: "backup", put_aside: 3 } });
  const aside = readFileSync(join(dataDir, "journal/quarantine/unknown-projects-realtime.ndjson"), "utf8");
  expect(aside.match(/secret \d/g)).toEqual(["secret 1", "secret 2", "secret 3"]);
  await using server = await restarted(copy);
  expect(await answersWhenLoaded(server)).toEqual(filled.answers);
  // A project that is created now has the same number, and not those events.
  const created = await flagkeep(["projects", "create", "Other", "--data-dir", dataDir, "--json"]);
  expect((JSON.parse(created.stdout) as { id: number }).id).toBe(secondProject.id);
  const found = await server.api(`/api/projects/${secondProject.id}/events/`);
  expect(((await found.json()) as { results: unknown[] }).results).toEqual([]);
  remove(copy);
}, 60_000);

test("a gap is rejected with the range, and nothing changes", async () => {
  const copy = toCopy(filled);
  const { dataDir } = copy;
  const [path] = archiveFiles(dataDir, "historical");
  rmSync(path!);
  const before = readdirSync(dataDir).sort();
  const rejected = await restore(dataDir, "--force", "--replay");
  expect(rejected).toMatchObject({ code: 1, stdout: "" });
  expect(rejected.stderr).toContain("historical 201 to 400 (about 200 events)");
  expect(readdirSync(dataDir).sort()).toEqual(before);
  const { stdout, code } = await restore(dataDir, "--force", "--replay", "--accept-loss");
  expect(code).toBe(0);
  const lost = [{ lane: "historical", first_seq: 201, last_seq: 400 }];
  expect(JSON.parse(stdout)).toMatchObject({ replayed: { lost } });
  remove(copy);
}, 60_000);

test("a directory of other data, one in use and one without anything are rejected", async () => {
  const { dataDir } = await initializedDirectory();
  await using other = await ServerProcess.start();
  await other.capture({ event: "x", distinct_id: "a" });
  await other.eventsWhenStored(1);
  expect((await restore(dataDir, "--force", "--replay", other.dataDir)).stderr).toContain("in use");
  await stop(other);
  const foreign = await restore(dataDir, "--force", "--replay", other.dataDir);
  expect(foreign).toMatchObject({ code: 1, stdout: "" });
  expect(foreign.stderr).toContain("different organizations");
  const none = await restore(join(dataDir, "none"), "--replay");
  expect(none).toMatchObject({ code: 1, stdout: "" });
  expect(none.stderr).toContain("--replay OLD_DATA_DIR");
  const db = new Database(join(dataDir, "flagkeep.sqlite"), { readonly: true });
  expect(db.query("SELECT count(*) AS n FROM sqlite_schema").get()).not.toEqual({ n: 0 });
  db.close();
  remove({ dataDir });
}, 60_000);
