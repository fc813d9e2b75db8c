/** What the two processes do to each other, and what holds when one of them dies. */

import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { executable, flagkeep, initializedDirectory, ServerProcess, until } from "../support/server.ts";

type Directory = Awaited<ReturnType<typeof initializedDirectory>>;

test.if(process.platform === "linux")("every thread of the engine yields to the front", async () => {
  await using server = await ServerProcess.start();
  await server.capture({ event: "hello", distinct_id: "ann" });
  await server.eventsWhenStored(1);
  const [engine] = await server.enginePids();
  const serverNice = niceValues(server.process.pid);
  expect(Math.min(...niceValues(engine!))).toBeGreaterThan(Math.max(...serverNice));
});

/** Of each thread of a process. */
function niceValues(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const line = readFileSync(`/proc/${pid}/task/${thread}/stat`, "utf8");
    // The second field is a name that may hold blanks; nice is the 19th.
    return Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[16]);
  });
}

describe("the engine dies", () => {
  test("captures and flags continue, it is back within 3 s, nothing is lost or doubled", async () => {
    await using server = await ServerProcess.start();
    await server.api("/api/projects/1/feature_flags/", { method: "POST", body: { key: "a-flag" } });
    await server.capture({ event: "before", distinct_id: "a" });
    await server.eventsWhenStored(1);
    const uuids: string[] = [];
    for (let kill = 0; kill < 3; kill++) {
      const [pid] = await until(async () => {
        const pids = await server.enginePids();
        return pids.length === 1 && pids;
      }, "the engine runs");
      process.kill(pid!, "SIGKILL");
      for (let i = 0; i < 20; i++) {
        const uuid = Bun.randomUUIDv7();
        const response = await server.capture({ event: "meanwhile", distinct_id: "a", uuid });
        expect(response.status).toBe(200);
        uuids.push(uuid);
        expect((await server.api("/api/projects/1/feature_flags/")).status).toBe(200);
      }
      const started = performance.now();
      await until(
        async () => (await server.api("/api/projects/1/events/")).status === 200,
        "queries are answered",
      );
      expect(performance.now() - started).toBeLessThan(15_000);
    }
    const events = await server.eventsWhenStored(61);
    expect(events.slice(1).map(({ uuid }) => uuid)).toEqual(uuids);
  }, 60_000);

  test("a query meanwhile waits for the next one, or gets 503 with Retry-After", async () => {
    await using server = await ServerProcess.start();
    const [pid] = await until(async () => {
      const pids = await server.enginePids();
      return pids.length === 1 && pids;
    }, "the engine runs");
    process.kill(pid!, "SIGSTOP");
    process.kill(pid!, "SIGKILL");
    const response = await server.api("/api/projects/1/events/");
    if (response.status !== 200) {
      expect(response.status).toBe(503);
      expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await response.json()).toMatchObject({ code: "engine_unavailable", attr: null });
    }
  }, 30_000);
});

test("the server process dies: the engine exits too", async () => {
  const directory = await initializedDirectory();
  const server = await ServerProcess.start({ directory });
  const [pid] = await until(async () => {
    const pids = await server.enginePids();
    return pids.length === 1 && pids;
  }, "the engine runs");
  await server.kill();
  await until(() => !existsSync(`/proc/${pid}`), "the engine is gone");
});

/** Loads an event and kills the front, whose engine sleeps on. @returns the engine's process id, and a backup's path */
async function sleepingEngine(directory: Directory): Promise<{ pid: number; backup: string }> {
  const first = await ServerProcess.start({ directory });
  await first.capture({ event: "before", distinct_id: "a" });
  await first.eventsWhenStored(1);
  const { stdout } = await flagkeep(["backup", "create", "--data-dir", directory.dataDir, "--json"]);
  const [pid] = await first.enginePids();
  process.kill(pid!, "SIGSTOP");
  await first.kill();
  return { pid: pid!, backup: (JSON.parse(stdout) as { file: string }).file };
}

test("an engine that outlives its server process is awaited: no other one opens the stores before it exits", async () => {
  const directory = await initializedDirectory();
  const { dataDir } = directory;
  const { pid } = await sleepingEngine(directory);
  const quarantine = join(dataDir, "journal", "quarantine");
  await using second = await ServerProcess.start({ directory });
  await until(
    () => second.logs.some(({ msg }) => String(msg).startsWith("waiting for the previous engine")),
    "it waits",
  );
  expect((await second.capture({ event: "meanwhile", distinct_id: "a" })).status).toBe(200);
  expect(existsSync(quarantine) ? readdirSync(quarantine) : []).toEqual([]);
  expect(existsSync(join(dataDir, "events.duckdb.opening"))).toBeFalse();
  process.kill(pid, "SIGCONT");
  const events = await second.eventsWhenStored(2);
  expect(events.map(({ event }) => event)).toEqual(["before", "meanwhile"]);
}, 60_000);

for (const command of ["rebuild", "backup create", "backup restore"])
  test(`an engine that outlives its front is waited for by \`${command}\``, async () => {
    const directory = await initializedDirectory();
    const { pid, backup } = await sleepingEngine(directory);
    const more = command === "backup restore" ? [backup, "--force"] : [];
    const child = Bun.spawn([executable, ...command.split(" "), ...more, "--data-dir", directory.dataDir], {
      stdout: "ignore",
      stderr: "pipe",
      env: {},
    });
    const holder = join(directory.dataDir, "lock.pid");
    await until(() => readFileSync(holder, "utf8") === String(child.pid), "it has the directory's lock");
    process.kill(pid, "SIGCONT");
    expect([await new Response(child.stderr).text(), await child.exited]).toEqual([expect.any(String), 0]);
    await using second = await ServerProcess.start({ directory });
    expect(await second.eventsWhenStored(1)).toHaveLength(1);
  }, 60_000);

describe("a stop in order", () => {
  test("exits 0 with everything loaded and the journal empty", async () => {
    const directory = await initializedDirectory();
    const server = await ServerProcess.start({ directory });
    const uuids = Array.from({ length: 500 }, () => Bun.randomUUIDv7());
    await server.batch(uuids.map((uuid) => ({ event: "x", uuid, properties: { distinct_id: "a" } })));
    const started = performance.now();
    expect(await server.stop()).toBe(0);
    expect(performance.now() - started).toBeLessThan(10_000);
    const left = [
      ...new Bun.Glob("{realtime,historical}/*").scanSync({ cwd: `${directory.dataDir}/journal` }),
    ];
    expect(left).toEqual([]);
    await using again = await ServerProcess.start({ directory });
    expect((await again.eventsWhenStored(500)).map(({ uuid }) => uuid)).toEqual(uuids);
    // Numbers continue behind those of the first run.
    await again.capture({ event: "later", distinct_id: "a" });
    expect((await again.eventsWhenStored(501)).at(-1)!.seq).toBeGreaterThan(500);
  }, 60_000);
});
