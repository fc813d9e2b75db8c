import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { openPersons } from "../../src/persons/open.ts";
import {
  executable,
  flagkeep,
  initializedDirectory,
  ServerProcess,
  temporaryFolder,
  until,
} from "../support/server.ts";

const folders: string[] = [];
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
function newFolder(): string {
  const folder = temporaryFolder();
  folders.push(folder);
  return folder;
}

describe("help and version", () => {
  const commands = [
    [],
    ["serve"],
    ["init"],
    ["keys"],
    ["keys", "create"],
    ["keys", "list"],
    ["keys", "revoke"],
    ["version"],
  ];
  for (const command of commands) {
    test(`flagkeep ${[...command, "--help"].join(" ")}`, async () => {
      const { stdout, stderr, code } = await flagkeep([...command, "--help"]);
      expect(stdout).toContain("Usage: flagkeep");
      expect(stderr).toBe("");
      expect(code).toBe(0);
    });
  }

  test("serve --help shows every setting with its variable", async () => {
    const { stdout } = await flagkeep(["serve", "--help"]);
    for (const name of ["data-dir", "host", "port", "public-url", "log-level", "log-format", "body-limit"]) {
      expect(stdout).toContain(`--${name} `);
      expect(stdout).toContain(`FLAGKEEP_${name.replaceAll("-", "_").toUpperCase()}`);
    }
  });

  test("version --json names what is built in", async () => {
    const { stdout, code } = await flagkeep(["version", "--json"]);
    const versions = JSON.parse(stdout) as Record<string, string>;
    expect(Object.keys(versions)).toEqual(["version", "bun", "duckdb", "sqlite"]);
    for (const version of Object.values(versions)) expect(version).toMatch(/^\d+\.\d+\.\d+/);
    expect(code).toBe(0);
  });
});

describe("a wrong call", () => {
  const calls: { name: string; args: string[]; env?: Record<string, string>; says: string }[] = [
    { name: "a setting that makes no sense", args: ["serve", "--port", "99999"], says: '--port is "99999"' },
    {
      name: "a variable that makes no sense",
      args: ["serve"],
      env: { FLAGKEEP_LOG_FORMAT: "xml" },
      says: "FLAGKEEP_LOG_FORMAT",
    },
    ...["s3://", "s3:/acme/x", "S3://acme/x", "gs://acme/flagkeep"].map((place) => ({
      name: `a destination of backups that is none (${place})`,
      args: ["serve", "--backup-schedule", "0 3 * * *", "--backup-destination", place],
      says: "a folder, or s3://bucket/prefix",
    })),
    {
      name: "a recipient that is none",
      args: ["serve"],
      env: { FLAGKEEP_BACKUP_RECIPIENTS: "age1abc, ssh-ed25519 AAAA" },
      says: "FLAGKEEP_BACKUP_RECIPIENTS",
    },
    { name: "an unknown option", args: ["serve", "--color", "red"], says: "--color" },
    { name: "an unknown command", args: ["frobnicate"], says: "frobnicate" },
    ...[
      "import",
      "backup create",
      "backup list",
      "backup prune --keep-last 1",
      "backup restore",
      "backup verify",
      "backup drill",
      "backup drill --work-dir",
      "export events",
      "flags import",
      "rebuild --from",
      "query 1 -o",
    ].map((command) => ({
      name: `an empty name of a file (${command})`,
      args: [...command.split(" "), ""],
      says: "Expected the name of a file or folder",
    })),
    { name: "an address that is none", args: ["healthcheck", "--url", "foo"], says: "Expected a URL" },
    { name: "a missing option", args: ["keys", "create"], says: "--scope" },
    {
      name: "an expiry that makes no sense",
      args: ["keys", "create", "--scope", "*", "--expires", "soon"],
      says: "soon",
    },
  ];
  for (const { name, args, env, says } of calls) {
    test(`${name}: one line, exit 2`, async () => {
      const { stdout, stderr, code } = await flagkeep(args, env);
      expect(stdout).toBe("");
      expect(stderr).toContain(says);
      expect(code).toBe(2);
    });
  }
});

describe("init", () => {
  test("makes a directory for its owner alone and prints the keys once", async () => {
    const { dataDir, initialized } = await initializedDirectory([
      "--organization",
      "Acme",
      "--project",
      "Shop",
      "--email",
      "ann@example.com",
    ]);
    folders.push(dataDir);
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
    expect(initialized).toEqual({
      organization: { id: expect.any(String), name: "Acme" },
      project: {
        id: 1,
        name: "Shop",
        api_key: expect.stringMatching(/^phc_[0-9A-Za-z]{40,}$/),
        secret_api_key: expect.stringMatching(/^phs_[0-9A-Za-z]{40,}$/),
      },
      user: { id: expect.any(Number), email: "ann@example.com" },
      personal_api_key: expect.stringMatching(/^phx_[0-9A-Za-z]{40,}$/),
      console_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:8000\/console\/setup#[\w-]{43}$/),
    });
    const files = new Bun.Glob("*").scanSync({ cwd: dataDir, absolute: true });
    for (const file of files) {
      expect(await Bun.file(file).text()).not.toContain(initialized.personal_api_key);
      expect(await Bun.file(file).text()).not.toContain(initialized.console_url.split("#")[1]!);
    }
  });

  test("rejects a directory that is set up, and changes nothing", async () => {
    const { dataDir } = await initializedDirectory();
    folders.push(dataDir);
    const count = () =>
      new Database(join(dataDir, "flagkeep.sqlite"), { readonly: true })
        .query("SELECT count(*) AS n FROM personal_key")
        .get();
    const before = count();
    const { stdout, stderr, code } = await flagkeep(["init", "--data-dir", dataDir]);
    expect({ stdout, code }).toEqual({ stdout: "", code: 1 });
    expect(stderr).toContain("already");
    expect(count()).toEqual(before);
  });

  test("adopts a project key, and rejects an invalid one", async () => {
    const adopted = `phc_${"a1B2".repeat(10)}`;
    const { dataDir, initialized } = await initializedDirectory(["--project-api-key", adopted]);
    folders.push(dataDir);
    expect(initialized.project.api_key).toBe(adopted);
    const rejected = await flagkeep([
      "init",
      "--data-dir",
      join(newFolder(), "d"),
      "--project-api-key",
      "phx_nope",
    ]);
    expect(rejected.code).not.toBe(0);
    expect(rejected.stdout).toBe("");
  });
});

describe("keys", () => {
  test("are valid in a running server immediately, until they are revoked", async () => {
    await using server = await ServerProcess.start();
    const dir = ["--data-dir", server.dataDir];
    const created = await flagkeep([
      "keys",
      "create",
      ...dir,
      "--scope",
      "feature_flag:read",
      "--label",
      "reader",
      "--project",
      "1",
      "--json",
    ]);
    expect(created.code).toBe(0);
    const key = JSON.parse(created.stdout) as { id: string; value: string; mask_value: string };
    const status = async (method: string) => {
      const response = await server.api("/api/projects/1/feature_flags/", {
        method,
        key: key.value,
        body: method === "POST" ? { key: "a" } : undefined,
      });
      return response.status;
    };
    expect(await status("GET")).toBe(200);
    expect(await status("POST")).toBe(403);
    const listed = await flagkeep(["keys", "list", ...dir, "--json"]);
    const keys = JSON.parse(listed.stdout) as { id: string; value: string | null; label: string }[];
    expect(keys.find(({ id }) => id === key.id)).toMatchObject({ label: "reader", value: null });
    expect(listed.stdout).not.toContain(key.value);
    expect((await flagkeep(["keys", "revoke", key.id, ...dir])).code).toBe(0);
    expect(await status("GET")).toBe(401);
    const again = await flagkeep(["keys", "revoke", key.id, ...dir]);
    expect(again.code).toBe(1);
  });

  test("need a directory that is set up", async () => {
    const { code, stderr } = await flagkeep(["keys", "list", "--data-dir", newFolder()]);
    expect(code).toBe(1);
    expect(stderr).toContain("flagkeep init");
  });
});

describe("serve", () => {
  test("initializes an empty directory automatically, without printing the personal key to a pipe", async () => {
    const folder = newFolder();
    // The executable alone, in a folder of its own, with nothing in its environment.
    const copy = join(folder, "flagkeep");
    copyFileSync(executable, copy);
    const child = Bun.spawn([copy, "serve", "--data-dir", "./d", "--port", "0"], {
      cwd: folder,
      env: {},
      stdout: "pipe",
      stderr: "inherit",
    });
    let text = "";
    void (async () => {
      const decoder = new TextDecoder();
      for await (const chunk of child.stdout) text += decoder.decode(chunk);
    })();
    const command = await until(() => /curl (?:.*\\\n.*)'\n/.exec(text)?.[0], "the welcome is printed");
    expect(text).toMatch(/Flagkeep is listening on http:\/\/127\.0\.0\.1:\d+/);
    expect(text).toMatch(/phc_\w+/);
    expect(text).not.toContain("phx_");
    expect(text).toContain("flagkeep keys create --scope '*'");
    const pasted = Bun.spawnSync(["sh", "-c", command]);
    expect(pasted.stdout.toString()).toBe('{"status":"Ok"}');
    child.kill("SIGTERM");
    expect(await child.exited).toBe(0);
    expect(existsSync(join(folder, "d", "events.duckdb"))).toBe(true);
  });

  test("a second process on the directory is rejected while the first lives, and not after a crash", async () => {
    const { dataDir, initialized } = await initializedDirectory();
    folders.push(dataDir);
    const first = await ServerProcess.start({ directory: { dataDir, initialized } });
    const second = await flagkeep(["serve", "--data-dir", dataDir, "--port", "0"]);
    expect(second.code).toBe(1);
    expect(second.stderr).toContain("in use");
    expect((await fetch(`${first.url}/_liveness`)).status).toBe(200);
    await first.kill();
    await using third = await ServerProcess.start({ directory: { dataDir, initialized } });
    await until(async () => (await fetch(`${third.url}/_readiness`)).status === 200, "it is ready");
  });

  test("rejects data of a newer version", async () => {
    const { dataDir } = await initializedDirectory();
    folders.push(dataDir);
    const db = new Database(join(dataDir, "flagkeep.sqlite"));
    db.run("INSERT INTO schema_migration VALUES (999, 'later', 'x', 'x')");
    db.close();
    const { code, stderr } = await flagkeep(["serve", "--data-dir", dataDir, "--port", "0"]);
    expect(code).toBe(1);
    expect(stderr).toContain("newer");
  });

  test("a port in use: one clear line, exit 1", async () => {
    await using server = await ServerProcess.start();
    const { dataDir } = await initializedDirectory();
    folders.push(dataDir);
    const { code, stderr } = await flagkeep([
      "serve",
      "--data-dir",
      dataDir,
      "--port",
      new URL(server.url).port,
    ]);
    expect(code).toBe(1);
    expect(stderr.trim().split("\n")).toHaveLength(1);
    expect(stderr).toContain("cannot be listened on");
  });

  test("printed commands are quoted correctly for folders with any name", async () => {
    const dataDir = join(newFolder(), "it's a folder");
    const words = `--data-dir '${dataDir.replace("'", "'\\''")}'`;
    const initialized = await flagkeep(["init", "--data-dir", dataDir, "--port", "0"]);
    expect(initialized.stdout).toContain(`flagkeep serve ${words} --port 0\n`);
    const backup = join(newFolder(), "a backup");
    const created = await flagkeep(["backup", "create", backup, "--data-dir", dataDir, "--json"]);
    const { file } = JSON.parse(created.stdout);
    const restored = await flagkeep(["backup", "restore", file, "--data-dir", dataDir, "--force"]);
    expect(restored.stdout).toContain(`flagkeep serve ${words}\n`);
    chmodSync(dataDir, 0o755);
    const doctor = await flagkeep(["doctor", "--data-dir", dataDir]);
    expect(doctor.stdout).toContain(`chmod 700 ${words.slice("--data-dir ".length)}`);
  });

  test("works below a very long path", async () => {
    const long = join(newFolder(), "x".repeat(120));
    mkdirSync(long);
    const directory = join(long, "data");
    const initialized = JSON.parse((await flagkeep(["init", "--data-dir", directory, "--json"])).stdout);
    await using server = await ServerProcess.start({ directory: { dataDir: directory, initialized } });
    expect((await server.capture({ event: "x", distinct_id: "y" })).status).toBe(200);
    await server.eventsWhenStored(1);
  });

  test("is ready within 300 ms on existing data, or as much longer as the machine is slower", async () => {
    const directory = await initializedDirectory();
    folders.push(directory.dataDir);
    const first = await ServerProcess.start({ directory });
    await first.capture({ event: "x", distinct_id: "y" });
    await first.stop();
    // The best of several, and beside each one the start of the executable that prints its version, some 80 ms on a
    // machine that is not busy: this one may be, with other things.
    const times: number[] = [];
    const alone: number[] = [];
    const isReadyInTime = () => Math.min(...times) < Math.max(300, 4 * Math.min(...alone));
    for (let i = 0; i < 12 && (i < 3 || !isReadyInTime()); i++) {
      let started = performance.now();
      await flagkeep(["version"]);
      alone.push(performance.now() - started);
      started = performance.now();
      const server = await ServerProcess.start({ directory });
      times.push(performance.now() - started);
      await server.stop();
    }
    expect(Math.min(...times)).toBeLessThan(Math.max(300, 4 * Math.min(...alone)));
  });
});

test("a file in place of the data directory is rejected with a clear message", async () => {
  const path = join(newFolder(), "file");
  writeFileSync(path, "");
  const { code, stderr } = await flagkeep(["serve", "--data-dir", path]);
  expect(code).toBe(1);
  expect(stderr.trim().split("\n")).toHaveLength(1);
});

test("serve rejects an event store of a newer version with one line", async () => {
  const { dataDir } = await initializedDirectory();
  folders.push(dataDir);
  openPersons(join(dataDir, "people.sqlite")).$client.close();
  const { DuckDBInstance } = await import("@duckdb/node-api");
  const instance = await DuckDBInstance.create(join(dataDir, "events.duckdb"));
  const connection = await instance.connect();
  await connection.run("CREATE TABLE schema_migration (version INTEGER, name VARCHAR)");
  await connection.run("INSERT INTO schema_migration VALUES (999, 'later')");
  connection.closeSync();
  instance.closeSync();
  const { code, stderr } = await flagkeep(["serve", "--data-dir", dataDir, "--port", "0"]);
  expect(code).toBe(1);
  expect(stderr).toContain("event store has schema version 999");
  expect(stderr.trim().split("\n")).toHaveLength(1);
});
