/** Making backups: one at a time, nothing left behind, and by themselves at set times. */

import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { ListedBackup } from "../../src/backup/list.ts";
import { acquireLock } from "../../src/lock.ts";
import {
  executable,
  flagkeep,
  initializedDirectory,
  ServerProcess,
  temporaryFolder,
  until,
} from "../support/server.ts";
import { testWhen } from "../support/skipped.ts";
import { Volume } from "../support/volume.ts";
import { create, json } from "./support.ts";

const inWork = (dataDir: string) =>
  readdirSync(join(dataDir, "backup-work")).filter((name) => !name.startsWith("lock"));

test("runs one at a time; the next one removes files of a killed one", async () => {
  const { dataDir } = await initializedDirectory();
  const work = join(dataDir, "backup-work");
  mkdirSync(join(work, "left-by-a-killed-one"), { recursive: true });
  writeFileSync(join(work, "left-by-a-killed-one", "events.duckdb"), "x");
  const other = acquireLock(join(work, "lock"), dataDir);
  const rejected = await flagkeep(["backup", "create", "--data-dir", dataDir]);
  other.release();
  expect(rejected).toMatchObject({ code: 1, stdout: "" });
  expect(rejected.stderr).toContain("Another backup");
  expect(inWork(dataDir)).toEqual(["left-by-a-killed-one"]);
  await create(dataDir);
  expect(inWork(dataDir)).toEqual([]);
  rmSync(dataDir, { recursive: true });
});

test("the server removes files of a killed backup at its start, unless another backup runs", async () => {
  const directory = await initializedDirectory();
  const work = join(directory.dataDir, "backup-work");
  mkdirSync(join(work, "left-by-a-killed-one"), { recursive: true });
  const other = acquireLock(join(work, "lock"), directory.dataDir);
  const first = await ServerProcess.start({ directory });
  expect(inWork(directory.dataDir)).toEqual(["left-by-a-killed-one"]);
  await first.stop();
  other.release();
  const second = await ServerProcess.start({ directory });
  await until(() => inWork(directory.dataDir).length === 0, "it is removed");
  await second.stop();
  rmSync(directory.dataDir, { recursive: true });
});

test("waits for another backup up to the given time", async () => {
  const { dataDir } = await initializedDirectory();
  mkdirSync(join(dataDir, "backup-work"));
  const other = acquireLock(join(dataDir, "backup-work", "lock"), dataDir);
  const waiting = (command: string[], time: string) =>
    flagkeep(["backup", ...command, "--wait", time, "--data-dir", dataDir, "--json"]);
  for (const command of [["create"], ["prune", "--keep-last", "1"]]) {
    const start = performance.now();
    expect(await waiting(command, "1s")).toMatchObject({
      code: 1,
      stdout: "",
      stderr: expect.stringContaining("Another backup"),
    });
    expect(performance.now() - start).toBeGreaterThan(1_000);
  }
  const created = waiting(["create"], "1m");
  other.release();
  expect(await created).toMatchObject({ code: 0, stderr: "" });
  rmSync(dataDir, { recursive: true });
}, 60_000);

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  test(`one that is ended by ${signal} removes its files`, async () => {
    // Again if a backup was complete before the signal arrived.
    await until(async () => {
      const { dataDir } = await initializedDirectory();
      const child = Bun.spawn([executable, "backup", "create", "--data-dir", dataDir], {
        stdout: "ignore",
        stderr: "ignore",
        env: {},
      });
      const hasBegun = () => existsSync(join(dataDir, "backup-work")) && inWork(dataDir).length > 0;
      await until(() => hasBegun() || child.exitCode !== null, "it has begun or ended");
      child.kill(signal);
      const code = await child.exited;
      expect(inWork(dataDir)).toEqual([]);
      if (code !== 0) {
        expect(code).toBe(1);
        expect(existsSync(join(dataDir, "backups"))).toBe(false);
      }
      rmSync(dataDir, { recursive: true });
      return code === 1;
    }, "a backup was ended");
  });
}

test("a destination that cannot be written: exit 1, one sentence, the verified file is kept", async () => {
  const { dataDir } = await initializedDirectory();
  const file = join(dataDir, "a-file");
  writeFileSync(file, "");
  const { code, stdout, stderr } = await flagkeep([
    "backup",
    "create",
    join(file, "folder"),
    "--data-dir",
    dataDir,
    "--json",
  ]);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr.trimEnd()).not.toContain("\n");
  const [name] = readdirSync(join(dataDir, "backups-unsent"));
  expect(stderr).toContain(name!);
  const { last_backup } = JSON.parse((await flagkeep(["status", "--data-dir", dataDir, "--json"])).stdout);
  expect(last_backup).toMatchObject({ file: null, error: expect.stringContaining(name!) });
  expect((await flagkeep(["status", "--data-dir", dataDir])).stdout).toContain("Backup    FAILED");
  rmSync(dataDir, { recursive: true });
});

const volume = Volume.mount("64m");
afterAll(() => volume?.[Symbol.dispose]());

testWhen(
  volume !== undefined,
  "a backup onto another volume",
  "no volume can be mounted here",
)("onto another volume: what killed ones have left there goes, what grows or is not ours stays", async () => {
  const { dataDir } = await initializedDirectory();
  const place = join(volume!.folder, "backups");
  mkdirSync(join(place, "pieces"), { recursive: true });
  const name = "flagkeep-2026-01-02T03-04-05.678Z.tar.zst.part";
  const chunk = `${"a".repeat(64)}.zst.part`;
  const torn = [join(place, name), join(place, "pieces", chunk)];
  const others = [join(place, "mine.part"), join(place, name.replace("678Z", "679Z"))];
  for (const path of [...torn, ...others]) writeFileSync(path, "some bytes");
  const hoursAgo = Date.now() / 1_000 - 2 * 3_600;
  for (const path of [...torn, others[0]!]) utimesSync(path, hoursAgo, hoursAgo);
  const { file } = await create(dataDir, place);
  expect(torn.filter((path) => existsSync(path))).toEqual([]);
  expect(readdirSync(place).sort()).toEqual(
    [...others, file, join(place, "pieces")].map((path) => basename(path)).sort(),
  );
  expect(statSync(file).mode & 0o777).toBe(0o600);
  rmSync(dataDir, { recursive: true });
});

test("there is nothing to back up; a wrong call", async () => {
  const none = await flagkeep(["backup", "create", "--data-dir", "/nowhere"]);
  expect(none).toMatchObject({ code: 1, stdout: "" });
  expect((await flagkeep(["backup", "create", "--nonsense"])).code).toBe(2);
  expect((await flagkeep(["backup", "verify"])).code).toBe(2);
});

test("a schedule creates backups, deletes old ones, and reports both in log and status", async () => {
  await using server = await ServerProcess.start({
    args: [
      "--backup-schedule",
      "* * * * * *",
      "--backup-keep-last",
      "2",
      "--backup-keep-daily",
      "0",
      "--backup-keep-weekly",
      "0",
    ],
  });
  const { dataDir, logs } = server;
  await server.capture({ event: "seen", distinct_id: "a" });
  await until(() => logs.some(({ msg }) => msg === "deleted old backups"), "three were made", 30_000);
  const created = logs.filter(({ msg }) => msg === "created scheduled backup");
  expect(created.length).toBeGreaterThanOrEqual(3);
  expect(existsSync(created[0]!.file as string)).toBe(false);
  expect(logs.filter(({ level }) => level === "error" || level === "warn")).toEqual([]);
  const { last_backup } = JSON.parse((await flagkeep(["status", "--data-dir", dataDir, "--json"])).stdout);
  expect(last_backup).toMatchObject({ file: expect.stringContaining(dataDir), error: null });
  expect(await server.stop()).toBe(0);
  const left = await json<ListedBackup[]>("list", "--data-dir", dataDir);
  expect(left.length).toBeGreaterThanOrEqual(2);
  expect(left.length).toBeLessThanOrEqual(3);
  expect(left.filter(({ verified }) => !verified)).toEqual([]);
}, 60_000);

test("a schedule that fails is logged as an error and does not end the server", async () => {
  const directory = await initializedDirectory();
  const file = join(directory.dataDir, "a-file");
  writeFileSync(file, "", { mode: 0o600 });
  const server = await ServerProcess.start({
    directory,
    args: ["--backup-schedule", "* * * * * *", "--backup-destination", join(file, "folder")],
  });
  const failure = await until(
    () => server.logs.find(({ msg }) => msg === "failed to create scheduled backup"),
    "it failed",
    30_000,
  );
  expect(failure).toMatchObject({ level: "error", error: expect.stringContaining("cannot be written") });
  expect((await server.capture({ event: "seen", distinct_id: "a" })).status).toBe(200);
  expect(await server.stop()).toBe(0);
  rmSync(directory.dataDir, { recursive: true });
}, 60_000);

test("obstacles to scheduled backups are logged at the start, and flags are served", async () => {
  const none = join(temporaryFolder(), "none");
  const cases = [
    { args: ["--backup-destination", "s3://acme/x", "--backup-s3-credentials-file", none], says: none },
    { args: ["--backup-key-file", none], says: `The key file ${none} cannot be read (ENOENT).` },
  ];
  for (const { args, says } of cases) {
    await using server = await ServerProcess.start({ args: ["--backup-schedule", "0 3 * * *", ...args] });
    const line = await until(
      () => server.logs.find(({ msg }) => msg === "scheduled backups will fail"),
      "the obstacle is logged",
    );
    expect(line).toMatchObject({ level: "error", error: expect.stringContaining(says) });
  }
});

test("a destination that is neither a folder nor in S3 is rejected, and makes no folder of that name", async () => {
  const { dataDir } = await initializedDirectory();
  for (const command of [
    ["create", "gs://acme/x"],
    ["list", "https://acme/x"],
    ["prune", "s3:/acme/x", "--keep-last", "1"],
  ]) {
    const { code, stderr } = await flagkeep(["backup", ...command, "--data-dir", dataDir, "--json"]);
    expect([code, stderr]).toEqual([1, expect.stringContaining("Use a folder or s3://bucket/prefix.")]);
    expect(existsSync(command[1]!.split("/")[0]!)).toBe(false);
  }
  rmSync(dataDir, { recursive: true });
});

test("an invalid schedule is rejected at the start", async () => {
  const { code, stderr } = await flagkeep(["serve", "--backup-schedule", "every night", "--port", "0"]);
  expect(code).toBe(2);
  expect(stderr).toContain("a cron expression such as 0 3 * * *");
});
