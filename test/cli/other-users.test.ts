/** A data directory of another user, and one whose user may not do everything with it. */

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { paths } from "../../src/paths.ts";
import { executable, flagkeep, initializedDirectory, ServerProcess } from "../support/server.ts";
import { installedProgram } from "../support/skipped.ts";

const other = 65_534;
const asOther = ["setpriv", `--reuid=${other}`, `--regid=${other}`, "--clear-groups"];

/** Only root can be another user, and not where the executable lies in a folder of its own. */
const canBeOther = (() => {
  if (installedProgram("setpriv") === undefined) return false;
  try {
    return Bun.spawnSync([...asOther, executable, "version"], { env: {} }).exitCode === 0;
  } catch {
    return false;
  }
})();
if (!canBeOther)
  console.log("SKIPPED tests with another user: this needs root, setpriv and a readable executable.");

async function othersDirectory() {
  const directory = await initializedDirectory();
  chmodSync(dirname(directory.dataDir), 0o755);
  for (const path of all(directory.dataDir)) chownSync(path, other, other);
  return directory;
}

const all = (folder: string) => [
  folder,
  ...readdirSync(folder, { recursive: true }).map((name) => join(folder, String(name))),
];

function doctorAsOther(dataDir: string) {
  const { exitCode, stdout } = Bun.spawnSync(
    [...asOther, executable, "doctor", "--data-dir", dataDir, "--json"],
    {
      env: {},
    },
  );
  const { findings } = JSON.parse(stdout.toString()) as { findings: { level: string; message: string }[] };
  return {
    exitCode,
    errors: findings.filter(({ level }) => level === "error").map(({ message }) => message),
  };
}

describe.skipIf(!canBeOther)("root on another user's files", () => {
  let directory: Awaited<ReturnType<typeof othersDirectory>>;
  beforeAll(async () => {
    directory = await othersDirectory();
  });
  afterAll(() => rmSync(dirname(directory.dataDir), { recursive: true, force: true }));
  const foreign = () => all(directory.dataDir).filter((path) => lstatSync(path).uid !== other);

  test.each(["backup create", "query 1", "export events /dev/null", "flags create a", "serve --port 0"])(
    "%s is rejected before anything is created",
    async (call) => {
      const { code, stderr } = await flagkeep([...call.split(" "), "--data-dir", directory.dataDir]);
      expect(code).toBe(1);
      expect(stderr).toContain(`belong to the user ${other}`);
      expect(stderr).toContain(`sudo -u '#${other}'`);
      expect(foreign()).toEqual([]);
    },
  );

  test.each(["status", "healthcheck", "doctor"])("%s reads, and creates no file", async (command) => {
    const { stderr } = await flagkeep([command, "--data-dir", directory.dataDir]);
    expect(stderr).not.toContain("belong to the user");
    expect(foreign()).toEqual([]);
  });

  test("that user's server starts, and root reads its state", async () => {
    await using server = await ServerProcess.start({ directory, through: asOther });
    await server.capture({ event: "seen", distinct_id: "a" });
    await server.eventsWhenStored(1);
    expect((await flagkeep(["status", "--data-dir", directory.dataDir])).code).toBe(0);
    expect(foreign()).toEqual([]);
  });

  test("a folder of that user's with root's files in it is root's to use", async () => {
    const { dataDir } = await initializedDirectory();
    chownSync(dataDir, other, other);
    expect((await flagkeep(["flags", "list", "--data-dir", dataDir])).code).toBe(0);
    rmSync(dirname(dataDir), { recursive: true, force: true });
  });
});

describe.skipIf(!canBeOther)("the doctor finds what would stop a start", () => {
  test.each<[string, (dataDir: string) => void, string]>([
    [
      "a store that cannot be written",
      (dataDir) => chmodSync(paths(dataDir).metadata, 0o400),
      "cannot be written",
    ],
    ["a folder that cannot be written", (dataDir) => chmodSync(dataDir, 0o500), "cannot be written"],
    ["a folder of root's", (dataDir) => mkdirSync(join(dataDir, "work")), "belongs to the user 0"],
    [
      "a store of a newer version",
      (dataDir) => {
        const db = new Database(paths(dataDir).metadata);
        db.run("INSERT INTO schema_migration SELECT 900, 'later', '', max(applied_at) FROM schema_migration");
        db.close();
        for (const path of all(dataDir)) chownSync(path, other, other);
      },
      "has schema version 900",
    ],
  ])("%s", async (_, spoil, says) => {
    const { dataDir } = await othersDirectory();
    expect(doctorAsOther(dataDir)).toEqual({ exitCode: 0, errors: [] });
    spoil(dataDir);
    const { exitCode, errors } = doctorAsOther(dataDir);
    expect(exitCode).toBe(1);
    expect(errors.join("\n")).toContain(says);
    rmSync(dirname(dataDir), { recursive: true, force: true });
  });
});
