/**
 * Kills the process under load, with and without HTTP workers, again and again on the same data, and compares the
 * client's own list of acknowledgements with what is stored at the end.
 */

import { afterAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { everythingIsLoaded, Load, mulberry32 } from "../support/crash-load.ts";
import { initializedDirectory, ServerProcess } from "../support/server.ts";

const rounds = Number(process.env.FLAGKEEP_TEST_CRASH_ROUNDS ?? 20);
const seed = Number(process.env.FLAGKEEP_TEST_SEED) || Date.now() % 1_000_000;
const random = mulberry32(seed);
const directory = await initializedDirectory();
afterAll(() => rmSync(directory.dataDir, { recursive: true, force: true }));

test(
  `every acknowledged event is stored once after ${rounds} kills (seed ${seed})`,
  async () => {
    const acknowledged = new Set<string>();
    const historicalOrder: string[] = [];
    let sent = 0;
    for (let round = 0; round < rounds; round++) {
      const workers = round % 2 === 0 ? 1 : 3;
      const server = await ServerProcess.start({ directory, args: ["--workers", String(workers)] });
      const load = new Load(server, acknowledged, historicalOrder, `${seed}-${round}`, random);
      const writers = [load.singles(), load.batches(), load.batches(), load.historical()];
      await Bun.sleep(50 + random() * (round % 4 === 0 ? 1_450 : 500));
      if (workers > 1 && round % 3 === 0) {
        process.kill((await server.workerPids())[round % workers]!, "SIGKILL");
        await Bun.sleep(random() * 400);
      }
      if (round % 3 === 1) {
        for (const pid of await server.enginePids()) process.kill(pid, "SIGKILL");
        await Bun.sleep(random() * 400);
      }
      await server.kill();
      await Promise.all(writers);
      sent += load.sent;
    }
    await using server = await ServerProcess.start({ directory });
    await everythingIsLoaded(server);
    const ofLane = async (historical: boolean) => {
      const events = await server.events(`order=seq&event=crash+test&historical=${historical}`);
      return events.map((event) => event.uuid);
    };
    const realtime = await ofLane(false);
    const historical = await ofLane(true);
    const stored = [...realtime, ...historical];
    const unique = new Set(stored);
    expect(acknowledged.size).toBeGreaterThan(rounds * 10);
    expect(stored.length - unique.size).toBe(0);
    expect([...acknowledged].filter((uuid) => !unique.has(uuid))).toEqual([]);
    expect(stored.length).toBeLessThanOrEqual(sent);
    // What was acknowledged in the historical lane is in the order in which it was sent.
    const position = new Map(historical.map((uuid, index) => [uuid, index]));
    const positions = historicalOrder.map((uuid) => position.get(uuid)!);
    expect(positions).toEqual([...positions].sort((a, b) => a - b));
  },
  rounds * 15_000 + 60_000,
);
