/** How commands end when their surroundings are not as they should be. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { spawn } from "node:child_process";
import { chmodSync, closeSync, copyFileSync, openSync, readdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { systemErrorMessage, tableLines } from "../../cli/output.ts";
import type { Status } from "../../src/operate/status-schema.ts";
import {
  executable,
  flagkeep,
  initializedDirectory,
  ServerProcess,
  temporaryFolder,
  until,
} from "../support/server.ts";

let dataDir: string;
const folder = temporaryFolder();
beforeAll(async () => {
  ({ dataDir } = await initializedDirectory());
});
afterAll(() => {
  rmSync(dirname(dataDir), { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});

/** Runs a command with its standard output at a file, as a certain user. */
async function ending(args: string[], options: { stdout?: number; program?: string; uid?: number } = {}) {
  const { stdout = "ignore", program = executable, uid } = options;
  const child = spawn(program, args, { stdio: ["ignore", stdout, "pipe"], env: {}, cwd: "/", uid });
  let stderr = "";
  child.stderr!.on("data", (part) => {
    stderr += String(part);
  });
  const code = await new Promise((done) => child.on("close", done));
  return { stderr, code };
}

const results = [
  ["keys", "list"],
  ["projects", "list", "--json"],
  ["completions", "bash"],
];
for (const args of results) {
  test(`${args.join(" ")}: the reader of the result may exit`, async () => {
    // The shell closes its end before the command writes.
    const call = `'${executable}' ${args.join(" ")} --data-dir '${dataDir}' | (exec <&-)`;
    const child = Bun.spawn(["bash", "-c", `${call}; exit "\${PIPESTATUS[0]}"`], { stderr: "pipe", env: {} });
    expect(await new Response(child.stderr).text()).toBe("");
    expect(await child.exited).toBe(0);
  });

  test(`${args.join(" ")}: a result that cannot be written is a failure`, async () => {
    const full = openSync("/dev/full", "w");
    const { stderr, code } = await ending([...args, "--data-dir", dataDir], { stdout: full });
    closeSync(full);
    expect(code).toBe(1);
    expect(stderr).toMatch(/^flagkeep: The disk is full \(.*\)\. Free disk space, then try again\.\n$/);
  });
}

test("the server continues when no one reads its log any more", async () => {
  const { dataDir: own, initialized } = await initializedDirectory();
  const args = ["serve", "--data-dir", own, "--port", "0", "--log-level", "trace"];
  const child = spawn(executable, args, { stdio: ["ignore", "pipe", "pipe"], env: {} });
  let stderr = "";
  child.stderr.on("data", (part) => {
    stderr += String(part);
  });
  const exited = new Promise((done) => child.on("close", done));
  const url = await new Promise<string>((found, reject) => {
    child.stdout.on("data", (part) => {
      const line = /listening on (\S+)/.exec(String(part));
      if (line !== null) found(line[1]!);
    });
    void exited.then((code) => reject(new Error(`It ended with ${code}: ${stderr}`)));
  });
  child.stdout.destroy();
  const send = async () => {
    const body = JSON.stringify({ api_key: initialized.project.api_key, event: "x", distinct_id: "a" });
    return (await fetch(`${url}/capture/`, { method: "POST", body })).status;
  };
  expect(await send()).toBe(200);
  // Loading it is logged as well, at the level that was asked for.
  const loaded = async () => {
    const { stdout } = await flagkeep(["status", "--json", "--data-dir", own]);
    return (JSON.parse(stdout) as Status).journal.some(({ applied_seq }) => applied_seq === 1);
  };
  await until(loaded, "the event is loaded");
  expect(await send()).toBe(200);
  child.kill("SIGTERM");
  expect(await exited).toBe(0);
  expect(stderr).toBe("");
  rmSync(dirname(own), { recursive: true, force: true });
});

test("an interrupted export reports it and leaves no file", async () => {
  await using server = await ServerProcess.start();
  await server.capture({ event: "seen", distinct_id: "a" });
  await server.eventsWhenStored(1);
  const [engine] = await server.enginePids();
  const out = temporaryFolder();
  // It asks the engine, which does not answer for now.
  process.kill(engine!, "SIGSTOP");
  const args = ["export", "events", join(out, "events.ndjson"), "--data-dir", server.dataDir];
  const child = Bun.spawn([executable, ...args], { stdout: "pipe", stderr: "pipe", env: {} });
  await until(() => readdirSync(out).some((name) => name.endsWith(".part")), "it has begun");
  child.kill("SIGTERM");
  expect(await child.exited).toBe(1);
  expect(await new Response(child.stderr).text()).toContain("flagkeep: interrupted");
  expect(readdirSync(out)).toEqual([]);
  process.kill(engine!, "SIGCONT");
  rmSync(out, { recursive: true });
}, 30_000);

describe("the folder of another user", () => {
  const isRoot = process.getuid?.() === 0;
  const uid = isRoot ? 65534 : undefined;
  const program = join(folder, "flagkeep");
  beforeAll(() => {
    copyFileSync(executable, program);
    for (const path of [folder, program, dirname(dataDir)]) chmodSync(path, 0o755);
    if (!isRoot) chmodSync(dataDir, 0);
  });
  afterAll(() => chmodSync(dataDir, 0o700));

  for (const args of [["status"], ["keys", "list"], ["healthcheck"], ["doctor"], ["serve", "--port", "0"]]) {
    test(`${args.join(" ")}: one line that names the owner`, async () => {
      const { stderr, code } = await ending([...args, "--data-dir", dataDir], { program, uid });
      expect(code).toBe(1);
      expect(stderr).toMatch(/^flagkeep: The data directory \S+ cannot be read by this user\. [^\n]*\n$/);
      expect(stderr).toContain(`'#${statSync(dataDir).uid}'`);
    });
  }
});

test("faults of the system and of SQLite are sentences, others are not", () => {
  const problem = (code: string) => Object.assign(new Error("what it says"), { code });
  expect(systemErrorMessage(problem("SQLITE_READONLY_DIRECTORY"))).toStartWith(
    "The data directory cannot be written (",
  );
  expect(systemErrorMessage(problem("SQLITE_CORRUPT_INDEX"))).toEndWith("and restore a backup.");
  expect(systemErrorMessage(problem("EIO"))).toBe("The disk reports an error (what it says).");
  expect(systemErrorMessage(problem("ERR_INVALID_ARG_TYPE"))).toBeUndefined();
  expect(systemErrorMessage(new Error("what it says"))).toBeUndefined();
});

describe("tables", () => {
  const rows = [
    ["1", "日本", "x"],
    ["22", "a\u001b[31mb", ""],
  ];
  test("align what is wide, and nothing in them steers a terminal", () => {
    expect(tableLines(["id", "name", "note"], rows, 80)).toEqual([
      "ID  NAME     NOTE",
      "1   日本     x",
      "22  a\ufffd[31mb",
    ]);
  });
  test("become lists where a terminal is too narrow", () => {
    expect(tableLines(["id", "name", "note"], rows, 10)).toEqual([
      "ID    1",
      "NAME  日本",
      "NOTE  x",
      "",
      "ID    22",
      "NAME  a\ufffd[31mb",
      "NOTE",
    ]);
  });
});

test("names sent by clients are printed without terminal control sequences or line breaks", async () => {
  await using server = await ServerProcess.start();
  const wild = "kim\u001b[2J\u009b31m\r\u0007";
  const filters = {
    groups: [{ properties: [{ key: "plan", value: "pro", type: "person" }], rollout_percentage: 100 }],
  };
  await server.api("/api/projects/1/feature_flags/", { method: "POST", body: { key: "one", filters } });
  await server.capture({
    event: wild,
    distinct_id: wild,
    properties: { $set: { name: wild, plan: wild } },
  });
  await server.eventsWhenStored(1);
  const commands = [
    ["persons", "get", wild],
    ["flags", "explain", "one", "--distinct-id", wild],
    ["flags", "explain", "none", "--distinct-id", wild],
    ["query", "SELECT event, distinct_id, properties FROM events"],
    ["query", "--chart", "SELECT event, count(*) AS times FROM events GROUP BY ALL"],
    ["query", `SELECT "${wild}" FROM events`],
    ["persons", "get", `${wild}?`],
    ["status"],
  ];
  for (const command of commands) {
    const { stdout, stderr } = await flagkeep([...command, "--data-dir", server.dataDir]);
    expect(stdout + stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
  }
});
