/** A volume that fills up: events are refused in time, what was acknowledged stays, and it goes on by itself. */

import { afterAll, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, TestAppliance, temporaryFolder, until } from "../support/appliance.ts";

const volume = temporaryFolder();
const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=256m", "tmpfs", volume]).exitCode === 0;
if (!mounted) console.log("SKIPPED disk-full tests: this machine lets us mount no small volume.");
afterAll(() => {
  if (mounted) Bun.spawnSync(["umount", "-l", volume]);
  rmSync(volume, { recursive: true, force: true });
});

test.skipIf(!mounted)(
  "503 with Retry-After before the volume is full; reads go on; it recovers without a restart",
  async () => {
    const dataDir = join(volume, "data");
    const made = JSON.parse((await flagkeep(["init", "--data-dir", dataDir, "--json"])).stdout);
    await using appliance = await TestAppliance.start({ directory: { dataDir, made } });
    const acknowledged: string[] = [];
    await sendUntil(appliance, acknowledged, () => acknowledged.length >= 500);
    await appliance.eventsWhenStored(500);

    // Other files take the volume while events keep coming.
    const filler = join(volume, "filler");
    const { bavail, bsize } = await import("node:fs/promises").then(({ statfs }) => statfs(volume));
    writeFileSync(filler, Buffer.alloc(Number(bavail) * Number(bsize) - 24 * 1024 * 1024));
    let refused: Response | undefined;
    await sendUntil(appliance, acknowledged, (response) => {
      refused = response.status === 200 ? undefined : response;
      return refused !== undefined;
    });
    expect(refused!.status).toBe(503);
    expect(Number(refused!.headers.get("retry-after"))).toBeGreaterThan(0);
    const { bavail: left } = await import("node:fs/promises").then(({ statfs }) => statfs(volume));
    expect(Number(left)).toBeGreaterThan(0);
    expect((await appliance.api("/api/projects/1/feature_flags/")).status).toBe(200);

    rmSync(filler);
    const uuid = Bun.randomUUIDv7();
    await until(
      async () => (await appliance.capture({ event: "again", distinct_id: "a", uuid })).status === 200,
      "events are taken again",
    );
    acknowledged.push(uuid);
    const stored = await until(
      async () => {
        const uuids = new Set((await appliance.events()).map(({ uuid }) => uuid));
        return acknowledged.every((uuid) => uuids.has(uuid)) && uuids;
      },
      "everything acknowledged is stored",
      30_000,
    );
    expect(stored.size).toBe(acknowledged.length);
  },
  120_000,
);

/** Sends batches until the condition holds for an answer. */
async function sendUntil(
  appliance: TestAppliance,
  acknowledged: string[],
  isEnough: (response: Response) => boolean,
): Promise<void> {
  for (;;) {
    const batch = Array.from({ length: 100 }, () => ({
      event: "filling",
      uuid: Bun.randomUUIDv7(),
      properties: { distinct_id: "a", padding: Bun.randomUUIDv7().repeat(20) },
    }));
    const response = await appliance.batch(batch);
    if (response.status === 200) acknowledged.push(...batch.map(({ uuid }) => uuid));
    if (isEnough(response)) return;
  }
}
