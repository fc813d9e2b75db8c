/**
 * Events in ClickHouse: kills the engine and the server at every step of a load, cuts their connection before and after
 * inserts, and compares the client's own list of acknowledgements with what is stored at the end.
 */

import { expect } from "bun:test";
import { rmSync } from "node:fs";
import { TestClickHouse, testWithClickHouse } from "../support/clickhouse.ts";
import { everythingIsLoaded, Load, mulberry32 } from "../support/crash-load.ts";
import { initializedDirectory, ServerProcess, until } from "../support/server.ts";

const test = testWithClickHouse("kills around ClickHouse");
const rounds = Number(process.env.FLAGKEEP_TEST_CLICKHOUSE_ROUNDS ?? 6);
const seed = Number(process.env.FLAGKEEP_TEST_SEED) || Date.now() % 1_000_000;
const random = mulberry32(seed);

async function killEngine(server: ServerProcess): Promise<void> {
  for (const pid of await server.enginePids()) process.kill(pid, "SIGKILL");
}

/** Merges would remove duplicate rows before a test could see them. */
async function stopMerges(server: TestClickHouse): Promise<void> {
  await until(
    () =>
      server.run("SYSTEM STOP MERGES flagkeep.events").then(
        () => true,
        () => false,
      ),
    "the table is there",
  );
}

async function restart(server: TestClickHouse): Promise<void> {
  await server.restart();
  await stopMerges(server);
}

const soon = () => Bun.sleep(50 + random() * 250);

/** What goes wrong in a round, in turn. */
const faults: ((flagkeep: ServerProcess, server: TestClickHouse) => Promise<void>)[] = [
  // The border is fixed, the persons are committed, the insert is on its way and is done when its sender is gone.
  async (flagkeep, server) => {
    await server.breakNext("stall-before-insert");
    await Bun.sleep(700 + random() * 500);
    await killEngine(flagkeep);
  },
  // The rows are there, and no one was told.
  async (flagkeep, server) => {
    await server.breakNext("stall-after-insert");
    await Bun.sleep(700 + random() * 500);
    await killEngine(flagkeep);
  },
  async (_, server) => {
    await server.breakNext("die-after-insert");
    await until(() => !server.isRunning, "the server has died");
    await soon();
    await restart(server);
  },
  async (flagkeep, server) => {
    await server.breakNext("cut-after-insert", 3);
    await Bun.sleep(600 + random() * 600);
    await killEngine(flagkeep);
  },
  async (flagkeep, server) => {
    await soon();
    await server.kill();
    await soon();
    await killEngine(flagkeep);
    await restart(server);
  },
  async (_, server) => {
    await server.breakNext("die-before-insert");
    await until(() => !server.isRunning, "the server has died");
    await restart(server);
  },
  async (_, server) => {
    await server.breakNext("cut-before-insert", 2);
    await soon();
    await server.breakNext("cut-query", 3);
  },
  async (flagkeep, server) => {
    await server.breakNext("refuse-insert", 3);
    await soon();
    await killEngine(flagkeep);
  },
];

test(
  `every acknowledged event is in ClickHouse once after ${rounds} rounds of kills (seed ${seed})`,
  async () => {
    await using server = await TestClickHouse.start();
    await server.run("CREATE DATABASE flagkeep");
    const directory = await initializedDirectory();
    const args = ["--events-url", server.url("flagkeep")];
    const acknowledged = new Set<string>();
    const historicalOrder: string[] = [];
    for (let round = 0; round < rounds; round++) {
      const flagkeep = await ServerProcess.start({ directory, args });
      await stopMerges(server);
      const load = new Load(flagkeep, acknowledged, historicalOrder, `${seed}-${round}`, random);
      const writers = [load.singles(), load.batches(), load.historical()];
      await soon();
      await faults[round % faults.length]!(flagkeep, server);
      await soon();
      await flagkeep.kill();
      await Promise.all(writers);
    }
    {
      await using flagkeep = await ServerProcess.start({ directory, args });
      await everythingIsLoaded(flagkeep);
      const inOrder = async (historical: boolean) =>
        (
          await server.run(
            `SELECT toString(uuid) FROM flagkeep.events WHERE event = 'crash test' AND historical = ${historical} ORDER BY seq`,
          )
        ).map(([uuid]) => String(uuid));
      const historical = await inOrder(true);
      const stored = [...(await inOrder(false)), ...historical];
      const unique = new Set(stored);
      expect(acknowledged.size).toBeGreaterThan(rounds * 10);
      expect(stored.length - unique.size).toBe(0);
      expect([...acknowledged].filter((uuid) => !unique.has(uuid))).toEqual([]);
      const position = new Map(historical.map((uuid, index) => [uuid, index]));
      const positions = historicalOrder.map((uuid) => position.get(uuid)!);
      expect(positions).toEqual([...positions].sort((a, b) => a - b));
      // Each event counted once for its person, too.
      const listed = await flagkeep.events("event=crash+test");
      expect(listed.length).toBe(stored.length);
    }
    rmSync(directory.dataDir, { recursive: true, force: true });
  },
  rounds * 15_000 + 60_000,
);

test("an older data directory is rejected while ClickHouse is ahead, and captures continue", async () => {
  await using server = await TestClickHouse.start();
  await server.run("CREATE DATABASE flagkeep");
  const directory = await initializedDirectory();
  const args = ["--events-url", server.url("flagkeep")];
  const older = `${directory.dataDir}-older`;
  for (const round of [1, 2]) {
    await using server = await ServerProcess.start({ directory, args });
    await server.batch([
      { event: `round ${round}`, uuid: Bun.randomUUIDv7(), distinct_id: "a", properties: {} },
    ]);
    await everythingIsLoaded(server);
    await server.stop();
    if (round === 1) await Bun.$`cp -a ${directory.dataDir} ${older}`.quiet();
  }
  await using flagkeep = await ServerProcess.start({ directory: { ...directory, dataDir: older }, args });
  await until(
    () => flagkeep.logs.some(({ msg }) => String(msg).includes("it is older than the events")),
    "it is refused",
  );
  const answer = await flagkeep.batch([
    { event: "later", uuid: Bun.randomUUIDv7(), distinct_id: "a", properties: {} },
  ]);
  expect(answer.status).toBe(200);
  expect((await server.run("SELECT count() FROM flagkeep.events WHERE event = 'later'"))[0]).toEqual([0]);
}, 60_000);
