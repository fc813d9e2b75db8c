/** A volume that fills up: events are rejected in time, what was acknowledged stays, and it continues by itself. */

import { describe, expect, test } from "bun:test";
import { rmSync, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, ServerProcess, until } from "../support/server.ts";
import { usableSizes, Volume } from "../support/volume.ts";

const MiB = 1024 * 1024;

const sizes = (process.env.FLAGKEEP_TEST_VOLUMES ?? "133m,256m").split(",");

const volumes = usableSizes(sizes);
for (const size of sizes.filter((size) => !volumes.includes(size)))
  console.log(`SKIPPED disk-full tests: this machine lets us mount no volume of ${size}.`);

async function onVolume(folder: string) {
  const dataDir = join(folder, "data");
  const created = JSON.parse((await flagkeep(["init", "--data-dir", dataDir, "--json"])).stdout);
  return { dataDir, initialized: created };
}

const getStatus = async (dataDir: string) =>
  JSON.parse((await flagkeep(["status", "--json", "--data-dir", dataDir])).stdout);

/** Sends until everything acknowledged can be read; fails when that takes longer than promised. */
async function expectRecovery(server: ServerProcess, acknowledged: string[]): Promise<void> {
  const end = performance.now() + recoveryMs;
  const uuid = Bun.randomUUIDv7();
  await until(
    async () => (await server.capture({ event: "again", distinct_id: "a", uuid })).status === 200,
    "events are taken again",
    recoveryMs,
  );
  acknowledged.push(uuid);
  await until(
    async () =>
      (await server.query("SELECT count(*)::INTEGER AS n FROM events"))[0]!.n === acknowledged.length,
    "everything acknowledged is stored",
    Math.max(1, end - performance.now()),
  );
  const stored = new Set((await server.events()).map(({ uuid }) => uuid));
  expect(acknowledged.filter((one) => !stored.has(one))).toEqual([]);
}

/** Time until writes succeed after disk space is available again; 10 s on a quiet machine. */
const recoveryMs = 25_000;

describe.skipIf(volumes.length === 0)("a volume that fills up", () => {
  for (const size of volumes) {
    test(`of ${size}: 503 with Retry-After before it is full, reads continue, it recovers without a restart`, async () => {
      using volume = Volume.mount(size)!;
      const directory = await onVolume(volume.folder);
      await using server = await ServerProcess.start({ directory });
      const acknowledged: string[] = [];
      await sendUntil(server, acknowledged, () => acknowledged.length >= 500);
      await server.eventsWhenStored(500);

      // Other files take the volume while events keep coming.
      const filler = await volume.fill((await volume.reserve()) + 33 * MiB);
      let rejected: Response | undefined;
      await sendUntil(server, acknowledged, (response) => {
        rejected = response.status === 200 ? undefined : response;
        return rejected !== undefined;
      });
      expect(rejected!.status).toBe(503);
      expect(Number(rejected!.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await volume.freeBytes()).toBeGreaterThan(0);
      expect((await server.api("/api/projects/1/feature_flags/")).status).toBe(200);

      // The rest of it goes as well; what was accepted before can wait, and be asked for.
      await volume.fill(0);
      await expectStill(server, acknowledged);
      rmSync(filler);
      await expectRecovery(server, acknowledged);
      await until(
        async () => (await getStatus(directory.dataDir)).engine.trouble === null,
        "nothing is wrong any more",
      );
    }, 120_000);
  }

  test("full while much waits: a start on it answers queries, and 25 MB more are enough to continue", async () => {
    using volume = Volume.mount("133m")!;
    const directory = await onVolume(volume.folder);
    const acknowledged: string[] = [];
    {
      await using server = await ServerProcess.start({ directory });
      await sendUntil(server, acknowledged, () => acknowledged.length >= 300);
      await server.eventsWhenStored(300);
      // Nothing is loaded while the engine stands still.
      const [engine] = await server.enginePids();
      process.kill(engine!, "SIGSTOP");
      await sendUntil(server, acknowledged, ({ status }) => status !== 200);
      process.kill(engine!, "SIGKILL");
      await server.kill();
    }
    const filler = await volume.fill(0);
    await using server = await ServerProcess.start({ directory });
    await expectStill(server, acknowledged);
    truncateSync(filler, Math.max(0, statSync(filler).size - 25 * MiB));
    await expectLoaded(server, acknowledged.length);
    rmSync(filler);
    await expectRecovery(server, acknowledged);
  }, 120_000);
});

/** On a full disk events are rejected, and queries answered. */
async function expectStill(server: ServerProcess, acknowledged: string[]): Promise<void> {
  await until(async () => {
    const uuid = Bun.randomUUIDv7();
    const { status } = await server.capture({ event: "more", distinct_id: "a", uuid });
    if (status === 200) acknowledged.push(uuid);
    return status === 503;
  }, "rejecting events");
  await until(
    async () => (await server.api("/api/projects/1/events/?limit=1")).status === 200,
    "events are read",
  );
  const probe = async (role: string) => (await fetch(`${server.url}/_readiness?role=${role}`)).status;
  expect(await Promise.all(["capture", "flags", "query"].map(probe))).toEqual([503, 200, 200]);
  expect((await fetch(`${server.url}/_readiness`)).status).toBe(503);
  // A write that failed at the same moment is told until the disk was looked at again.
  const health = await until(async () => {
    const reported = await flagkeep(["healthcheck", "--data-dir", server.dataDir]);
    return reported.stderr.includes("capture: The disk is almost full") && reported;
  }, "the healthcheck tells it");
  expect(health.code).toBe(1);
  expect((await flagkeep(["healthcheck", "--role", "flags", "--data-dir", server.dataDir])).code).toBe(0);
  const shown = (await flagkeep(["status", "--data-dir", server.dataDir])).stdout;
  expect(shown).toMatch(/^REJECTED {2}capture: The disk is almost full: \d+ MiB are free, /m);
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  expect(metrics).toMatch(/^flagkeep_refused_total\{role="capture",reason="disk_full"\} [1-9]/m);
  expect(metrics).toMatch(/^flagkeep_ready\{role="capture"\} 0$/m);
}

async function expectLoaded(server: ServerProcess, count: number): Promise<void> {
  await until(
    async () => (await server.query("SELECT count(*)::INTEGER AS n FROM events"))[0]!.n === count,
    `all ${count} events are loaded`,
    recoveryMs,
  );
}

/** Sends batches until the condition holds for an answer. */
async function sendUntil(
  server: ServerProcess,
  acknowledged: string[],
  isEnough: (response: Response) => boolean,
): Promise<void> {
  for (;;) {
    const batch = Array.from({ length: 100 }, () => ({
      event: "filling",
      uuid: Bun.randomUUIDv7(),
      properties: { distinct_id: "a", padding: Bun.randomUUIDv7().repeat(20) },
    }));
    const response = await server.batch(batch);
    if (response.status === 200) acknowledged.push(...batch.map(({ uuid }) => uuid));
    if (isEnough(response)) return;
  }
}
