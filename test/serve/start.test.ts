/** What a start rejects, what it leaves behind then, and what it says until the first event has come. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Status } from "../../src/operate/status-schema.ts";
import { leaves } from "../cli/tree.ts";
import {
  executable,
  flagkeep,
  initializedDirectory,
  ServerProcess,
  temporaryFolder,
  until,
} from "../support/server.ts";
import { testWhen } from "../support/skipped.ts";
import { usableSizes, Volume } from "../support/volume.ts";

const root = temporaryFolder();
afterAll(() => rmSync(root, { recursive: true, force: true }));

const serve = (dataDir: string, env: Record<string, string> = {}) =>
  flagkeep(["serve", "--data-dir", dataDir, "--port", "0", "--log-format", "json"], env);

describe("a folder with other files is rejected and unchanged", () => {
  const contents: Record<string, (folder: string) => void> = {
    "a file": (folder) => writeFileSync(join(folder, "notes.txt"), "mine"),
    "a hidden file": (folder) => writeFileSync(join(folder, ".profile"), ""),
    "a folder": (folder) => mkdirSync(join(folder, "photos")),
    "another program's database": (folder) => writeFileSync(join(folder, "app.sqlite"), ""),
    "a name that begins like one of ours": (folder) => writeFileSync(join(folder, "journalism"), ""),
    "leftovers of ours and another's": (folder) => {
      writeFileSync(join(folder, "lock"), "");
      writeFileSync(join(folder, "notes.txt"), "");
    },
  };
  for (const [name, fill] of Object.entries(contents)) {
    test(name, async () => {
      const folder = join(root, name.replaceAll(/\W/g, "-"));
      mkdirSync(folder);
      fill(folder);
      chmodSync(folder, 0o755);
      const before = readdirSync(folder).sort();
      for (const args of [["serve", "--port", "0"], ["init"]]) {
        const { code, stderr } = await flagkeep([...args, "--data-dir", folder]);
        expect(code).toBe(1);
        expect(stderr).toMatch(
          /^flagkeep: \S+ is not a Flagkeep data directory and is not empty \([^\n]*\)\. [^\n]*\n$/,
        );
      }
      expect(readdirSync(folder).sort()).toEqual(before);
      expect(statSync(folder).mode & 0o777).toBe(0o755);
    });
  }

  test("an empty folder, a new volume, that of a clone and the rest of an interrupted start are used, for the owner only", async () => {
    for (const names of [
      [],
      ["lost+found"],
      [".gitkeep", ".gitignore"],
      ["lock", "lock.pid", "native", "work"],
    ]) {
      const folder = join(root, `taken-${names.length}`);
      mkdirSync(folder);
      for (const name of names) {
        if (name.startsWith("lock") || name.startsWith(".")) writeFileSync(join(folder, name), "");
        else mkdirSync(join(folder, name));
      }
      chmodSync(folder, 0o750);
      expect(await flagkeep(["init", "--data-dir", folder])).toMatchObject({ code: 0 });
      expect(statSync(folder).mode & 0o777).toBe(0o700);
    }
  });

  test("a file in its place is rejected", async () => {
    const path = join(root, "file");
    writeFileSync(path, "");
    expect((await serve(path)).stderr).toMatch(/^flagkeep: \S+ is a file, not a folder\. .*\n$/);
  });
});

describe("events without flagkeep.sqlite", () => {
  let full: Awaited<ReturnType<typeof initializedDirectory>>;
  beforeAll(async () => {
    full = await initializedDirectory();
    await using server = await ServerProcess.start({ directory: full });
    await server.capture({ event: "mine", distinct_id: "a" });
    await server.eventsWhenStored(1);
    await server.stop();
  });
  const copy = (name: string) => {
    const dataDir = join(root, name);
    cpSync(full.dataDir, dataDir, { recursive: true, preserveTimestamps: true });
    return dataDir;
  };

  test("every command rejects it, names the file and the restore command, and creates none", async () => {
    const dataDir = copy("missing");
    rmSync(join(dataDir, "flagkeep.sqlite"));
    const withArguments = ["99", "x", "y"];
    const helping = ["backup restore", "backup verify", "backup list", "backup prune"];
    const tried: string[] = [];
    for (const [name, command] of leaves()) {
      const usesIt = command.options.some(({ long, hidden }) => long === "--data-dir" && !hidden);
      if (!usesIt || helping.includes(name)) continue;
      const required = command.registeredArguments.filter((argument) => argument.required).length;
      const mandatory = command.options
        .filter((option) => option.mandatory)
        .flatMap(({ long }) => [long!, "*"]);
      const args = [...name.split(" "), ...withArguments.slice(0, required), ...mandatory];
      const { code, stderr } = await flagkeep([...args, "--data-dir", dataDir]);
      if (code === 2) continue;
      tried.push(name);
      expect({ name, code, stderr }).toEqual({
        name,
        code: 1,
        stderr: expect.stringMatching(
          /^flagkeep: \S+\/flagkeep\.sqlite is missing, but [^\n]* --replay --data-dir /,
        ),
      });
    }
    expect(tried).toEqual(
      expect.arrayContaining(["serve", "init", "keys list", "status", "doctor", "healthcheck"]),
    );
    expect(existsSync(join(dataDir, "flagkeep.sqlite"))).toBe(false);
    expect((await flagkeep(["backup", "list", "--data-dir", dataDir])).code).toBe(0);
  }, 60_000);

  for (const retained of ["events.duckdb", "people.sqlite", "journal"]) {
    test(`also when of the stores only ${retained} is left`, async () => {
      const dataDir = copy(`only-${retained}`);
      for (const name of readdirSync(dataDir))
        if (name !== retained) rmSync(join(dataDir, name), { recursive: true });
      const { code, stderr } = await serve(dataDir);
      expect(code).toBe(1);
      expect(stderr).toContain("flagkeep.sqlite is missing");
      expect(readdirSync(dataDir)).toEqual([retained]);
    });
  }

  test("an empty file is as good as none; a corrupt one is named", async () => {
    const dataDir = copy("empty");
    const path = join(dataDir, "flagkeep.sqlite");
    for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true });
    truncateSync(path, 0);
    for (const args of [["serve", "--port", "0"], ["init"], ["keys", "list"]]) {
      const { code, stderr } = await flagkeep([...args, "--data-dir", dataDir]);
      expect(code).toBe(1);
      expect(stderr).toContain("flagkeep.sqlite is empty, but the data directory contains events");
    }
    writeFileSync(path, crypto.getRandomValues(new Uint8Array(20_000)));
    const { code, stderr } = await serve(dataDir);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^flagkeep: \S*flagkeep\.sqlite is corrupt \(.*\)\. Keep a copy of the data directory, then .*\.\n$/,
    );
  });
});

test("the lock is not released by removing files", async () => {
  await using server = await ServerProcess.start();
  for (const name of readdirSync(server.dataDir)) {
    if (name.startsWith("lock")) rmSync(join(server.dataDir, name));
  }
  const second = await serve(server.dataDir);
  expect(second.code).toBe(1);
  expect(second.stderr).toContain("in use");
  const restored = await flagkeep(["rebuild", "--data-dir", server.dataDir]);
  expect(restored).toMatchObject({ code: 1, stderr: expect.stringContaining("in use") });
  await server.kill();
  await using third = await ServerProcess.start({ directory: server.directory });
  expect((await fetch(`${third.url}/_liveness`)).status).toBe(200);
});

test("a port in use: no data directory is created", async () => {
  await using server = await ServerProcess.start();
  const dataDir = join(root, "never", "made");
  const { port } = new URL(server.url);
  const { code, stderr } = await flagkeep(["serve", "--data-dir", dataDir, "--port", port]);
  expect(code).toBe(1);
  expect(stderr).toContain(`127.0.0.1:${port} cannot be listened on`);
  expect(existsSync(join(root, "never"))).toBe(false);
});

test("the greeting with the project's key is printed until the first event arrives; show-key prints it later", async () => {
  const directory = await initializedDirectory();
  const key = directory.initialized.project.api_key;
  const greeting = ({ logs }: ServerProcess) =>
    logs.find(({ msg }) => msg === "no event received yet")?.project_api_key;
  for (let start = 0; start < 2; start++) {
    await using server = await ServerProcess.start({ directory });
    await until(() => greeting(server) === key, "the key is said");
    if (start === 1) await server.capture({ event: "first", distinct_id: "a" });
    await server.stop();
  }
  await using third = await ServerProcess.start({ directory });
  await until(() => third.logs.some(({ msg }) => msg === "engine ready"), "it has started");
  expect(greeting(third)).toBeUndefined();
  const shown = async (...args: string[]) =>
    (await flagkeep(["projects", "show-key", ...args, "--data-dir", third.dataDir])).stdout.trim();
  expect(await shown()).toBe(key);
  expect(await shown("1", "--secret")).toBe(directory.initialized.project.secret_api_key);
});

test("variables that are no settings are named at the start", async () => {
  const dataDir = join(root, "variables");
  const child = Bun.spawn(
    [executable, "serve", "--data-dir", dataDir, "--port", "0", "--log-format", "json"],
    {
      stdout: "pipe",
      stderr: "ignore",
      env: { FLAGKEEP_PROT: "9000", FLAGKEEP_LOG_LEVEL: "info", FLAGKEEP_BACKUP_S3_ACCESS_KEY_ID: "x" },
    },
  );
  let text = "";
  for await (const chunk of child.stdout) {
    text += new TextDecoder().decode(chunk);
    if (text.includes('"listening"')) break;
  }
  child.kill("SIGTERM");
  await child.exited;
  const line = text.split("\n").find((one) => one.includes("unknown environment variables"))!;
  expect(JSON.parse(line).variables).toEqual(["FLAGKEEP_PROT"]);
});

describe("DuckDB's library", () => {
  const libraryIn = (dataDir: string) => {
    const folder = join(dataDir, "native");
    return join(folder, readdirSync(folder)[0]!, "libduckdb.so");
  };

  test("is unpacked at the first start, and again where the copy is corrupt, truncated or missing", async () => {
    const directory = await initializedDirectory();
    const start = async () => {
      await using server = await ServerProcess.start({ directory });
      expect(await server.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
      expect(await server.stop()).toBe(0);
      return Bun.hash(await Bun.file(libraryIn(directory.dataDir)).bytes());
    };
    const whole = await start();
    const path = libraryIn(directory.dataDir);
    truncateSync(path, 4_096);
    expect(await start()).toBe(whole);
    writeFileSync(path, new Uint8Array(statSync(path).size));
    expect(await start()).toBe(whole);
    rmSync(path);
    expect(await start()).toBe(whole);
    rmSync(directory.dataDir, { recursive: true, force: true });
  }, 60_000);

  testWhen(
    usableSizes(["40m"]).length > 0,
    "a disk without room for the library",
    "no volume can be mounted",
  )("a disk without room for it stays as free as it is, and one line says what is missing", async () => {
    using volume = Volume.mount("40m")!;
    const dataDir = join(volume.folder, "data");
    const initialized = JSON.parse((await flagkeep(["init", "--data-dir", dataDir, "--json"])).stdout);
    await using server = await ServerProcess.start({ directory: { dataDir, initialized } });
    const status = async () =>
      JSON.parse((await flagkeep(["status", "--data-dir", dataDir, "--json"])).stdout) as Status;
    const problem = (await until(
      async () => (await status()).engine.trouble ?? undefined,
      "the engine has failed",
    ))!;
    expect(problem.message).toMatch(
      /^The event store was closed after an error: .* no space left on the disk: .* free\.$/,
    );
    expect(problem.hint).toContain("Free disk space");
    // A process that was killed has left the beginning of a copy.
    const folder = join(libraryIn(dataDir), "..");
    const [abandoned, young] = ["libduckdb.so.1.tmp", "libduckdb.so.2.tmp"].map((name) => join(folder, name));
    for (const path of [abandoned!, young!]) writeFileSync(path, "x");
    utimesSync(abandoned!, 0, 0);
    await until(() => !existsSync(abandoned!), "what was left is gone");
    expect(readdirSync(folder)).toEqual(["libduckdb.so.2.tmp"]);
    expect(await volume.freeBytes()).toBeGreaterThan(32 * 1024 ** 2);
    const flag = { key: "beta", filters: { groups: [] } };
    const path = `/api/projects/${initialized.project.id}/feature_flags/`;
    expect((await server.api(path, { method: "POST", body: flag })).status).toBe(201);
  });

  test.if(process.platform === "linux")("leaves no tables in memory that only the linker needs", async () => {
    await using server = await ServerProcess.start();
    await server.query("SELECT 1");
    const [pid] = await server.enginePids();
    await until(async () => {
      const maps = await Bun.file(`/proc/${pid}/smaps`).text();
      const first = maps
        .split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)
        .find((part) => /^\S+ r--p 0+ .*libduckdb/.test(part))!;
      const [size, resident] = ["Size", "Rss"].map((name) =>
        Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(first)![1]),
      );
      return resident! < (size! * 2) / 3;
    }, "the tables are given back");
    expect(await server.query("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  test("is not part of the engine's memory twice: its place in the executable is read by another process", async () => {
    await using server = await ServerProcess.start();
    await server.query("SELECT 1");
    const [pid] = await server.enginePids();
    const maps = await Bun.file(`/proc/${pid}/smaps`).text();
    const resident = maps
      .split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m)
      .filter((part) => part.split("\n", 1)[0]!.endsWith(executable))
      .reduce((sum, part) => sum + Number(/^Rss:\s+(\d+)/m.exec(part)![1]), 0);
    expect(resident).toBeGreaterThan(0);
    expect(resident).toBeLessThan(100 * 1024);
  });
});
