/** A backup while events stream in: whatever was acknowledged before it is in it, exactly once. */

import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { flagkeep, ServerProcess, temporaryFolder, until } from "../support/server.ts";
import { create } from "./support.ts";

/** Writers that send small batches without a pause, and know what was acknowledged. */
function startWriters(server: ServerProcess) {
  const acked: string[] = [];
  const sent = new Set<string>();
  let isStopped = false;
  const write = async (writer: number) => {
    const isHistorical = writer % 3 === 0;
    for (let round = 0; !isStopped; round++) {
      const batch = Array.from({ length: 15 }, (_, n) => ({
        uuid: Bun.randomUUIDv7(),
        event: n === 0 ? "$identify" : "seen",
        distinct_id: `person-${writer}-${round % 40}`,
        timestamp: "2026-03-04T05:06:07Z",
        properties: { n, $set: { round } },
      }));
      for (const { uuid } of batch) sent.add(uuid);
      try {
        const reply = await server.batch(batch, isHistorical ? { historical_migration: true } : {});
        if (reply.status === 200) acked.push(...batch.map(({ uuid }) => uuid));
      } catch {
        // Killed: nothing was acknowledged.
      }
    }
  };
  const writers = Promise.all(Array.from({ length: 6 }, (_, writer) => write(writer)));
  return {
    acked,
    sent,
    stop: async () => {
      isStopped = true;
      await writers;
    },
  };
}

async function somePage(source: ServerProcess): Promise<unknown[]> {
  const reply = await source.api("/api/projects/1/events/?limit=1");
  return reply.ok ? ((await reply.json()) as { results: unknown[] }).results : [];
}

async function server() {
  return await ServerProcess.start({ args: ["--journal-seal-interval", "100ms"] });
}

describe("under load", () => {
  test("kill -9 after it, restored elsewhere: every event acknowledged before is there once, flags and keys work", async () => {
    await using source = await server();
    const flag = { key: "new-checkout", filters: { groups: [{ rollout_percentage: 100 }] } };
    const created = await source.api("/api/projects/1/feature_flags/", { method: "POST", body: flag });
    expect(created.status).toBe(201);
    const flagsBefore = await (await source.api("/api/projects/1/feature_flags/")).json();
    const writers = startWriters(source);
    await until(() => writers.acked.length > 3_000, "some events are acknowledged");
    await until(async () => (await somePage(source)).length > 0, "some events are loaded");
    const before = [...writers.acked];
    const backup = await create(source.dataDir);
    const during = writers.acked.length - before.length;
    await source.kill();
    await writers.stop();
    // Otherwise it was not under load.
    expect(during).toBeGreaterThan(500);
    expect(backup.events).toBeGreaterThan(0);

    const folder = temporaryFolder();
    const dataDir = join(folder, "restored");
    const restored = await flagkeep(["backup", "restore", backup.file, "--data-dir", dataDir]);
    expect(restored).toMatchObject({ code: 0 });
    const copy = await ServerProcess.start({ directory: { dataDir, initialized: source.initialized } });
    const entries = backup.positions.reduce((sum, { last_seq }) => sum + last_seq, 0);
    const events = await copy.eventsWhenStored(entries);
    const uuids = events.map(({ uuid }) => uuid);
    expect(new Set(uuids).size).toBe(uuids.length);
    expect(uuids.filter((uuid) => !writers.sent.has(uuid))).toEqual([]);
    const stored = new Set(uuids);
    expect(before.filter((uuid) => !stored.has(uuid))).toEqual([]);
    // Persons belong to the events, whichever store was copied first.
    expect(events.filter(({ person }) => person === null)).toEqual([]);

    expect(await (await copy.api("/api/projects/1/feature_flags/")).json()).toEqual(flagsBefore);
    const evaluated = await copy.post("/flags/?v=2", { api_key: copy.token, distinct_id: "person-1-1" });
    expect(await evaluated.json()).toMatchObject({ flags: { "new-checkout": { enabled: true } } });
    expect((await copy.capture({ event: "after", distinct_id: "person-1-1" })).status).toBe(200);
    await copy.eventsWhenStored(entries + 1);
    // The persons' copies for analysis follow, though the two stores are of different moments.
    const persons = await flagkeep([
      "query",
      "SELECT count(*) AS n FROM persons",
      "--data-dir",
      dataDir,
      "--json",
    ]);
    const ids = new Set(events.map(({ person }) => person!.uuid));
    expect(JSON.parse(persons.stdout)).toMatchObject({ rows: [{ n: ids.size }] });
    expect(await copy.stop()).toBe(0);
    rmSync(folder, { recursive: true });
    // A limit for tests that hang: how much is written meanwhile, and read back twice, is for the machine to say.
  }, 180_000);

  test("the engine dies during the backup: the backup still succeeds", async () => {
    await using source = await server();
    const writers = startWriters(source);
    await until(() => writers.acked.length > 1_000, "some events are acknowledged");
    const before = [...writers.acked];
    const running = flagkeep(["backup", "create", "--data-dir", source.dataDir, "--json"]);
    for (const pid of await source.enginePids()) process.kill(pid, "SIGKILL");
    const { stdout, code, stderr } = await running;
    await writers.stop();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const { file } = JSON.parse(stdout) as { file: string };
    const dataDir = join(dirname(source.dataDir), "restored");
    expect(await flagkeep(["backup", "restore", file, "--data-dir", dataDir])).toMatchObject({ code: 0 });
    const copy = await ServerProcess.start({ directory: { dataDir, initialized: source.initialized } });
    await until(async () => {
      const stored = new Set((await copy.events()).map(({ uuid }) => uuid));
      return before.every((uuid) => stored.has(uuid));
    }, "every event is there");
    expect(await copy.stop()).toBe(0);
  }, 60_000);
});
