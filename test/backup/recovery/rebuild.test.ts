/** `flagkeep rebuild` and the automatic one, when the archive alone does not reach back to the beginning. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, ServerProcess, until } from "../../support/server.ts";
import {
  archiveFiles,
  type Filled,
  fill,
  filledDirectory,
  getAnswers,
  overwrite,
  quarantined,
  remove,
  restarted,
  stop,
  toCopy,
} from "./support.ts";

let filled: Filled;
/** With a backup that covers the first two runs, and a third run behind it. */
let backedUp: Filled;
beforeAll(async () => {
  filled = await filledDirectory();
  backedUp = toCopy(filled);
  const created = await flagkeep(["backup", "create", "--data-dir", backedUp.dataDir]);
  expect(created).toMatchObject({ code: 0 });
  const server = await restarted(backedUp);
  await server.eventsWhenStored(filled.answers.events.length);
  await fill(server, 2);
  backedUp.answers = await getAnswers(server);
  await stop(server);
  // What the backup covers is no longer archived: the archive begins behind the first run.
  expect(archiveFiles(backedUp.dataDir, "realtime")[0]).not.toContain("/0000000000000001-");
}, 90_000);
afterAll(() => {
  remove(filled);
  remove(backedUp);
});

const zeroHeader = (dataDir: string) => overwrite(join(dataDir, "events.duckdb"), 0, new Uint8Array(12_288));
const rebuild = (dataDir: string, ...args: string[]) =>
  flagkeep(["rebuild", "--data-dir", dataDir, "--json", ...args]);

async function expectAnswers(copy: Filled): Promise<void> {
  await using server = await restarted(copy);
  await server.eventsWhenStored(copy.answers.events.length);
  expect(await getAnswers(server)).toEqual(copy.answers);
}

describe("with a backup and an archive that starts after it", () => {
  test("the next start rebuilds the event store automatically", async () => {
    const copy = toCopy(backedUp);
    zeroHeader(copy.dataDir);
    await expectAnswers(copy);
    expect(quarantined(copy.dataDir)).toEqual([
      expect.stringMatching(/^events\.duckdb\.\d+\.broken$/),
    ] as never);
    remove(copy);
  }, 60_000);

  test("without a local backup: events are captured and the loss is reported, not loaded; --from repairs it", async () => {
    const copy = toCopy(backedUp);
    const { dataDir } = copy;
    const [name] = readdirSync(join(dataDir, "backups"));
    const elsewhere = join(dataDir, "..", name!);
    renameSync(join(dataDir, "backups", name!), elsewhere);
    rmSync(join(dataDir, "last-backup.json"));
    zeroHeader(dataDir);
    {
      await using server = await ServerProcess.start({ directory: copy.directory });
      const { trouble: problem } = await until(async () => {
        const { stdout } = await flagkeep(["status", "--json", "--data-dir", dataDir]);
        const { engine } = JSON.parse(stdout) as {
          engine: { trouble: { message: string; hint: string } | null };
        };
        return engine.trouble !== null && { trouble: engine.trouble };
      }, "the trouble is said");
      expect(problem.message).toMatch(/realtime 1 to \d+ and historical 1 to \d+ \(about \d+ events\)/);
      expect(problem.hint).toContain("flagkeep rebuild --from");
      const reply = await server.capture({ event: "meanwhile", distinct_id: "user-0-1" });
      expect(reply.status).toBe(200);
      expect((await server.post("/flags/?v=2", { token: server.token, distinct_id: "a" })).status).toBe(200);
      expect((await server.api("/api/projects/1/events/")).status).toBe(503);
      const { stdout, code } = await flagkeep(["doctor", "--json", "--data-dir", dataDir]);
      expect({ code, stdout }).toEqual({
        code: 1,
        stdout: expect.stringContaining("flagkeep rebuild --from"),
      });
      expect(await rebuild(dataDir)).toMatchObject({ code: 1, stderr: expect.stringContaining("in use") });
      await stop(server);
    }
    const stopped = await flagkeep(["doctor", "--json", "--data-dir", dataDir, "--port", "0"]);
    expect(stopped.stdout).toContain("flagkeep rebuild --from");
    const rejected = await rebuild(dataDir);
    expect(rejected).toMatchObject({ code: 1, stdout: "" });
    expect(rejected.stderr).toMatch(/realtime 1 to \d+/);
    const { stdout, code } = await rebuild(dataDir, "--from", elsewhere);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      data_dir: dataDir,
      from: elsewhere,
      put_aside: expect.stringMatching(/events\.duckdb\.\d+\.broken$/),
      events: copy.answers.events.length,
      persons: expect.any(Number),
      entries_applied: expect.any(Number),
      entries_waiting: 1,
      lost: [],
    } as never);
    await using server = await restarted(copy);
    const events = await server.eventsWhenStored(copy.answers.events.length + 1);
    expect(events.filter(({ event }) => event !== "meanwhile")).toEqual(copy.answers.events);
    remove(copy);
  }, 60_000);

  test("a backup that cannot be read is passed over and named", async () => {
    const copy = toCopy(backedUp);
    const [name] = readdirSync(join(copy.dataDir, "backups"));
    // It names the file by its path, which is that of the directory that this one is a copy of.
    rmSync(join(copy.dataDir, "last-backup.json"));
    overwrite(join(copy.dataDir, "backups", name!), 20_000, new Uint8Array(100));
    zeroHeader(copy.dataDir);
    const { stderr, code } = await rebuild(copy.dataDir);
    expect(code).toBe(1);
    expect(stderr).toContain(`${name} cannot be used`);
    expect(quarantined(copy.dataDir)).toEqual([]);
    remove(copy);
  }, 60_000);
});

test("the person store is lost: nothing is mixed up, and the error names the backup to restore", async () => {
  const copy = toCopy(backedUp);
  const { dataDir } = copy;
  for (const end of ["", "-wal", "-shm"]) rmSync(join(dataDir, `people.sqlite${end}`), { force: true });
  const server = await ServerProcess.start({ directory: copy.directory });
  const doctor = await until(async () => {
    const { stdout } = await flagkeep(["doctor", "--json", "--data-dir", dataDir]);
    return stdout.includes("people.sqlite is missing") && stdout;
  }, "the trouble is said");
  expect(doctor).toContain("--force --replay");
  expect((await server.capture({ event: "meanwhile", distinct_id: "user-0-1" })).status).toBe(200);
  await stop(server);
  expect(await rebuild(dataDir, "--accept-loss")).toMatchObject({ code: 1, stdout: "" });
  const [name] = readdirSync(join(dataDir, "backups"));
  const restored = await flagkeep([
    "backup",
    "restore",
    join(dataDir, "backups", name!),
    "--data-dir",
    dataDir,
    "--force",
    "--replay",
  ]);
  expect(restored).toMatchObject({ code: 0 });
  await using again = await restarted(copy);
  const events = await again.eventsWhenStored(copy.answers.events.length + 1);
  expect(events.filter(({ event }) => event !== "meanwhile")).toEqual(copy.answers.events);
  remove(copy);
}, 60_000);

describe("with a gap in the archive", () => {
  test("it is rejected with the range, and done only with --accept-loss", async () => {
    const copy = toCopy(filled);
    const { dataDir } = copy;
    const historical = archiveFiles(dataDir, "historical");
    for (const path of historical) rmSync(path);
    rmSync(join(dataDir, "events.duckdb"));
    const rejected = await rebuild(dataDir);
    expect(rejected).toMatchObject({ code: 1, stdout: "" });
    expect(rejected.stderr).toContain("historical 1 to 200 (about 200 events)");
    expect(existsSync(join(dataDir, "events.duckdb"))).toBe(false);

    const { stdout, code } = await rebuild(dataDir, "--accept-loss");
    expect(code).toBe(0);
    const lost = [{ lane: "historical", first_seq: 1, last_seq: 200 }];
    expect(JSON.parse(stdout)).toMatchObject({ from: "the archive", put_aside: null, lost });
    const without = copy.answers.events.filter(({ historical, seq }) => !historical || seq > 200);
    await using server = await restarted(copy);
    expect(await server.eventsWhenStored(without.length)).toEqual(without);
    remove(copy);
  }, 60_000);

  test("a corrupt file of the archive is a gap, too", async () => {
    const copy = toCopy(filled);
    const { dataDir } = copy;
    const [path] = archiveFiles(dataDir, "realtime");
    overwrite(path!, 200, new Uint8Array(50).fill(7));
    const rejected = await rebuild(dataDir);
    expect(rejected).toMatchObject({ code: 1, stdout: "" });
    expect(rejected.stderr).toContain(`${path} is corrupt: entries realtime 1 to`);
    const { stdout, code } = await rebuild(dataDir, "--accept-loss");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ lost: [{ lane: "realtime", first_seq: 1 }] });
    await using server = await restarted(copy);
    const { last_seq } = (JSON.parse(stdout) as { lost: { last_seq: number }[] }).lost[0]!;
    const without = copy.answers.events.filter(({ historical, seq }) => historical || seq > last_seq);
    expect(await server.eventsWhenStored(without.length)).toEqual(without);
    remove(copy);
  }, 60_000);
});
