/** Commands that tell how the server is, while it runs and when it does not. */

import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { controlSocketName } from "../../src/rpc/control.ts";
import { RpcServer } from "../../src/rpc/server.ts";
import { flagkeep, initializedDirectory, ServerProcess, until } from "../support/server.ts";
import { startWithinDay } from "../support/times.ts";

const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z$/);
const count = expect.any(Number);
let running: ServerProcess;
/** The day of the events. */
let day: string;
const stopped: string[] = [];
beforeAll(async () => {
  running = await ServerProcess.start();
  day = await startWithinDay();
  await running.batch([
    ...Array.from({ length: 5 }, (_, n) => ({ event: "seen", distinct_id: `person-${n}` })),
    { event: "x".repeat(5), distinct_id: "y", uuid: "none" },
  ]);
  await running.batch([{ event: "old", distinct_id: "person-1", timestamp: "2026-01-02T00:00:00Z" }], {
    historical_migration: true,
  });
  await running.eventsWhenStored(7);
});
afterAll(async () => {
  await running[Symbol.asyncDispose]();
  for (const folder of stopped) rmSync(folder, { recursive: true, force: true });
});

async function stoppedDirectory(): Promise<string> {
  const { dataDir } = await initializedDirectory();
  stopped.push(dataDir);
  return dataDir;
}

async function json(dataDir: string, ...args: string[]) {
  const { stdout, stderr, code } = await flagkeep([...args, "--data-dir", dataDir, "--json"]);
  expect(stderr).toBe("");
  return { code, value: JSON.parse(stdout) as never };
}

const lane = (name: string, seq: number) => ({
  lane: name,
  last_seq: seq,
  applied_seq: seq,
  lag_entries: 0,
  queued_bytes: 0,
});
const disk = {
  metadata_bytes: count,
  people_bytes: count,
  events_bytes: count,
  journal_bytes: count,
  quarantine_bytes: 0,
  archive_bytes: count,
  library_bytes: count,
  backups_bytes: 0,
  other_bytes: count,
};

describe("status", () => {
  test("of a running server", async () => {
    const { code, value } = await json(running.dataDir, "status");
    expect(code).toBe(0);
    expect(value).toEqual({
      running: true,
      state: "ready",
      version: expect.stringMatching(/^\d+\./),
      url: running.url,
      started_at: instant,
      uptime_seconds: count,
      events_at: null,
      shared: null,
      events_per_second: count,
      // Six events, and a note about one of them.
      journal: [lane("realtime", 7), lane("historical", 1)],
      roles: ["capture", "flags", "query"].map((role) => ({ role, ready: true, reason: null })),
      retention: null,
      replaced_keys: [],
      next_backup: null,
      workers: [],
      engine: { up: true, restarts: 0, rebuilding: null, trouble: null, properties: [] },
      disk,
      stored: { events: 7, bytes_per_event: count },
      volume: { free_bytes: count, total_bytes: count, needed_bytes: count },
      given_up: [],
      last_backup: null,
      last_scrub: null,
      warnings: [{ project_id: 1, type: "invalid_uuid", count: 1 }],
      spikes: [],
      skipped_entries: [],
      sqlite_corruption: null,
    } as never);
    expect(statSync(join(running.dataDir, "control.sock")).mode & 0o777).toBe(0o600);
  });

  test("of a stopped one, and after a crash left a socket", async () => {
    const server = await ServerProcess.start({ directory: await initializedDirectory() });
    stopped.push(server.dataDir);
    await server.capture({ event: "x", distinct_id: "a" });
    await server.kill();
    const { value } = await json(server.dataDir, "status");
    expect(value).toMatchObject({ running: false, state: "stopped", url: null, uptime_seconds: null });
    expect((value as { journal: { last_seq: number }[] }).journal[0]!.last_seq).toBe(1);
    const again = await ServerProcess.start({ directory: server.directory });
    expect((await json(again.dataDir, "status")).value).toMatchObject({ running: true });
    expect(await again.stop()).toBe(0);
    expect(existsSync(join(again.dataDir, "control.sock"))).toBe(false);
  });

  test("without a control socket: the lock shows that a process uses the data directory", async () => {
    await using silent = await ServerProcess.start();
    const { dataDir } = silent;
    unlinkSync(join(dataDir, "control.sock"));
    const { code, value } = await json(dataDir, "status");
    expect([code, value]).toEqual([0, expect.objectContaining({ running: true, state: "unreachable" })]);
    const { stdout } = await flagkeep(["status", "--data-dir", dataDir]);
    const holder = readFileSync(join(dataDir, "lock.pid"), "utf8");
    expect(stdout).toContain(`State     in use by process ${holder}, which does not respond; see its log\n`);
    expect(stdout).not.toMatch(/stopped|Address|Engine/);
    for (const [command, text] of [
      ["healthcheck", "the process that uses the data directory does not respond"],
      ["top", "does not respond"],
    ] as const) {
      const failed = await flagkeep([command, "--data-dir", dataDir]);
      expect([command, failed.code, failed.stderr]).toEqual([command, 1, expect.stringContaining(text)]);
      expect(failed.stderr).not.toContain("not running");
    }
  });

  test("a data directory with a long path, and a folder that is not a data directory", async () => {
    const base = await stoppedDirectory();
    const { initialized } = await initializedDirectory();
    const dataDir = join(base, "long".repeat(40));
    await flagkeep(["init", "--data-dir", dataDir]);
    await using server = await ServerProcess.start({ directory: { dataDir, initialized } });
    expect((await json(server.dataDir, "status")).value).toMatchObject({ running: true });
    const { stdout, stderr, code } = await flagkeep(["status", "--data-dir", join(base, "none")]);
    expect({ stdout, code }).toEqual({ stdout: "", code: 1 });
    expect(stderr).toContain("flagkeep init");
  });

  test("of a server of another version: one sentence", async () => {
    const dataDir = await stoppedDirectory();
    const server = new RpcServer(join(dataDir, controlSocketName));
    server.listen({ status: () => ({ running: true, state: "ready", version: "0.0.9", engine: {} }) });
    try {
      for (const args of [["status"], ["status", "--json"]]) {
        const { code, stdout, stderr } = await flagkeep([...args, "--data-dir", dataDir]);
        expect([code, stdout]).toEqual([1, ""]);
        expect(stderr).toMatch(/^flagkeep: .*another version \(0\.0\.9\).*Restart it.*\n$/);
      }
    } finally {
      await server.stop();
    }
  });

  test("for people", async () => {
    const { stdout } = await flagkeep(["status", "--data-dir", running.dataDir]);
    expect(stdout).toContain(running.url);
    expect(stdout).toMatch(/^realtime +7 +7 +0$/m);
    expect(stdout).toContain("invalid_uuid");
  });
});

test("usage counts days and sums", async () => {
  const counts = { identified: 6, anonymous: 0, historical: 1, duplicates: 0, dropped: 0, billable: 6 };
  expect((await json(running.dataDir, "usage")).value).toEqual({
    results: [{ project_id: 1, date: day, ...counts }],
    totals: counts,
  } as never);
  const none = { identified: 0, anonymous: 0, historical: 0, duplicates: 0, dropped: 0, billable: 0 };
  expect((await json(running.dataDir, "usage", "--project", "1", "--to", "2020-01-01")).value).toEqual({
    results: [],
    totals: none,
  } as never);
  const wrong = await flagkeep(["usage", "--from", "2026-02-30", "--data-dir", running.dataDir]);
  expect(wrong).toMatchObject({ stdout: "", code: 2 });
  const unknown = await flagkeep(["usage", "--project", "9", "--data-dir", running.dataDir]);
  expect(unknown).toMatchObject({ stdout: "", code: 1 });
});

test("warnings are listed", async () => {
  const { value } = await json(running.dataDir, "warnings", "--project", "1");
  expect(value).toEqual([
    {
      project_id: 1,
      type: "invalid_uuid",
      subject: expect.any(String),
      count: 1,
      first_at: instant,
      last_at: instant,
      details: expect.any(Object),
    },
  ] as never);
});

test("healthcheck reports by its exit status", async () => {
  const through = await flagkeep(["healthcheck", "--data-dir", running.dataDir]);
  expect(through).toEqual({ stdout: "ready\n", stderr: "", code: 0 });
  expect(await flagkeep(["healthcheck", "--url", running.url])).toMatchObject({ code: 0 });
  const none = await flagkeep(["healthcheck", "--data-dir", await stoppedDirectory()]);
  expect(none).toMatchObject({ stdout: "", code: 1 });
  expect(await flagkeep(["healthcheck", "--url", running.url, "--role", "query"])).toMatchObject({ code: 0 });
  expect(await flagkeep(["healthcheck", "--role", "all", "--url", running.url])).toMatchObject({ code: 2 });
  expect(await flagkeep(["healthcheck", "--url", "http://127.0.0.1:1"])).toMatchObject({ code: 1 });
});

test("migrate --check compares versions, and fails for newer data", async () => {
  const versions = (await json(running.dataDir, "migrate", "--check")).value as { store: string }[];
  expect(versions.map(({ store }) => store)).toEqual(["metadata", "people", "events"]);
  for (const one of versions) {
    expect(one).toEqual({ store: expect.any(String), found: count, known: count, state: "current" } as never);
  }
  const dataDir = await stoppedDirectory();
  const { code, value } = await json(dataDir, "migrate", "--check");
  expect(code).toBe(0);
  expect(value).toMatchObject([{ state: "current" }, { state: "absent" }, { state: "absent", found: null }]);
  const db = new Database(join(dataDir, "flagkeep.sqlite"));
  db.run("INSERT INTO schema_migration VALUES (99, 'future', '', '')");
  db.close();
  const newer = await json(dataDir, "migrate", "--check");
  expect(newer.code).toBe(1);
  expect(newer.value).toMatchObject([{ store: "metadata", found: 99, state: "newer" }, {}, {}]);
  expect(await flagkeep(["migrate", "--data-dir", dataDir])).toMatchObject({ code: 2 });
});

describe("doctor", () => {
  interface Report {
    ok: boolean;
    errors: number;
    warnings: number;
    findings: { check: string; level: string; message: string; hint: string | null }[];
  }
  const examine = async (dataDir: string, ...args: string[]) => {
    const { code, value } = await json(dataDir, "doctor", "--port", "0", ...args);
    const report = value as Report;
    expect(Object.keys(report)).toEqual(["ok", "errors", "warnings", "findings"]);
    const bad = report.findings.filter(({ level }) => level !== "ok");
    for (const one of bad) expect(one.hint).toBeTruthy();
    return { code, report, bad: bad.map(({ check, level }) => `${check} ${level}`) };
  };

  test("finds nothing wrong where nothing is, running or stopped", async () => {
    const { code, report, bad } = await examine(running.dataDir);
    expect({ code, bad, ok: report.ok }).toEqual({ code: 0, bad: [], ok: true });
    expect(await examine(await stoppedDirectory())).toMatchObject({ code: 0, bad: [] });
  });

  test("finds files that others can read, unless they are empty", async () => {
    const dataDir = await stoppedDirectory();
    writeFileSync(join(dataDir, ".gitkeep"), "", { mode: 0o644 });
    expect(await examine(dataDir)).toMatchObject({ code: 0, bad: [] });
    chmodSync(join(dataDir, "flagkeep.sqlite"), 0o644);
    expect(await examine(dataDir)).toMatchObject({ code: 1, bad: ["permissions error"] });
  });

  test("finds corruption in files, gaps in the journal, the quarantine and a port in use", async () => {
    const server = await ServerProcess.start({
      directory: await initializedDirectory(),
      args: ["--journal-seal-interval", "60s"],
    });
    const { dataDir } = server;
    stopped.push(dataDir);
    await server.capture({ event: "x", distinct_id: "a" });
    await until(() => existsSync(join(dataDir, "events.duckdb")), "the event store is made");
    await server.kill();
    await until(async () => !(await isLocked(dataDir)), "the engine is gone");
    const lane = join(dataDir, "journal/realtime");
    const segment = join(lane, readdirSync(lane)[0]!);
    appendFileSync(segment, Buffer.alloc(5_000));
    expect(await examine(dataDir)).toMatchObject({ code: 0, bad: [] });
    truncateSync(segment, statSync(segment).size - 5_000);
    appendFileSync(segment, '{"seq":2,"torn');
    expect(await examine(dataDir)).toMatchObject({ code: 0, bad: ["journal warning"] });
    // A later segment makes it a gap, and the rest corruption.
    writeFileSync(join(lane, "0000000000000009.ndjson"), await emptySegment(9), { mode: 0o600 });
    expect(await examine(dataDir)).toMatchObject({ code: 1, bad: ["journal error", "journal error"] });
    rmSync(lane, { recursive: true });
    const quarantine = join(dataDir, "journal/quarantine");
    await Bun.write(join(quarantine, "realtime-1.torn"), "x");
    expect(await examine(dataDir)).toMatchObject({ code: 0, bad: ["quarantine warning"] });
    rmSync(quarantine, { recursive: true });
    writeFileSync(join(dataDir, "events.duckdb"), "no database at all".repeat(1000));
    writeFileSync(join(dataDir, "people.sqlite"), "no database at all".repeat(1000));
    const { code, bad } = await examine(dataDir);
    expect({ code, bad }).toEqual({ code: 1, bad: ["files error", "events error"] });
  }, 60_000);

  test("finds a port in use", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await until(() => server.listening, "the server listens");
    const { port } = server.address() as { port: number };
    const dataDir = await stoppedDirectory();
    const { stdout } = await flagkeep(["doctor", "--data-dir", dataDir, "--port", String(port), "--json"]);
    server.close();
    const report = JSON.parse(stdout) as Report;
    expect(report.findings.find(({ check }) => check === "port")).toMatchObject({ level: "warning" });
  });
});

async function isLocked(dataDir: string): Promise<boolean> {
  const { stdout } = await flagkeep(["doctor", "--data-dir", dataDir, "--port", "0"]);
  return stdout.includes("cannot be opened") || stdout.includes("does not answer");
}

async function emptySegment(first: number): Promise<string> {
  const { segmentHeader } = await import("../../src/journal/segment.ts");
  return segmentHeader("realtime", first);
}
