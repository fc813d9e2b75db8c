/**
 * Kills the process under load, again and again on the same data, and compares the client's own list of
 * acknowledgements with what is stored at the end.
 */

import { afterAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { initialisedDirectory, TestAppliance, until } from "../support/appliance.ts";

const rounds = Number(process.env.FLAGKEEP_TEST_CRASH_ROUNDS ?? 20);
const seed = Number(process.env.FLAGKEEP_TEST_SEED) || Date.now() % 1_000_000;
const random = mulberry32(seed);
const directory = await initialisedDirectory();
afterAll(() => rmSync(directory.dataDir, { recursive: true, force: true }));

test(
  `every acknowledged event is stored once after ${rounds} kills (seed ${seed})`,
  async () => {
    const acknowledged = new Set<string>();
    const historicalOrder: string[] = [];
    let sent = 0;
    for (let round = 0; round < rounds; round++) {
      const appliance = await TestAppliance.start({ directory });
      const load = new Load(appliance, acknowledged, historicalOrder, `${seed}-${round}`);
      const writers = [load.singles(), load.batches(), load.batches(), load.historical()];
      await Bun.sleep(50 + random() * (round % 4 === 0 ? 1_450 : 500));
      if (round % 3 === 1) {
        for (const pid of await appliance.enginePids()) process.kill(pid, "SIGKILL");
        await Bun.sleep(random() * 400);
      }
      await appliance.kill();
      await Promise.all(writers);
      sent += load.sent;
    }
    await using appliance = await TestAppliance.start({ directory });
    await everythingIsLoaded(appliance);
    const ofLane = async (historical: boolean) => {
      const events = await appliance.events(`order=seq&event=crash+test&historical=${historical}`);
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

/** Waits until a marker sent now, in each lane, is readable: then nothing before it waits in the journal. */
async function everythingIsLoaded(appliance: TestAppliance): Promise<void> {
  for (const historical of [false, true]) {
    const uuid = Bun.randomUUIDv7();
    const marker = { event: "marker", uuid, properties: { distinct_id: "marker" } };
    const response = await appliance.batch([marker], { historical_migration: historical });
    expect(response.status).toBe(200);
    await until(
      async () => (await appliance.events(`uuid=${uuid}`)).length === 1,
      "the marker is readable",
      60_000,
    );
  }
}

class Load {
  sent = 0;

  constructor(
    private readonly appliance: TestAppliance,
    private readonly acknowledged: Set<string>,
    private readonly historicalOrder: string[],
    private readonly label: string,
  ) {}

  singles(): Promise<void> {
    return this.untilDown(async () => {
      const event = this.event();
      const response = await this.appliance.capture(event);
      if (response.status === 200) this.acknowledged.add(event.uuid);
    });
  }

  batches(): Promise<void> {
    return this.untilDown(async () => {
      const events = Array.from({ length: 1 + Math.floor(random() * 50) }, () => this.event());
      const response = await this.appliance.batch(events);
      if (response.status === 200) for (const { uuid } of events) this.acknowledged.add(uuid);
    });
  }

  historical(): Promise<void> {
    return this.untilDown(async () => {
      const events = Array.from({ length: 1 + Math.floor(random() * 50) }, () => this.event());
      const response = await this.appliance.batch(events, { historical_migration: true });
      if (response.status !== 200) return;
      for (const { uuid } of events) {
        this.acknowledged.add(uuid);
        this.historicalOrder.push(uuid);
      }
    });
  }

  private event() {
    this.sent += 1;
    const number = Math.floor(random() * 30);
    return {
      event: "crash test",
      uuid: Bun.randomUUIDv7(),
      distinct_id: `user-${number}`,
      properties: {
        round: this.label,
        $set: { seen: this.sent },
        padding: "x".repeat(Math.floor(random() * 900)),
      },
    };
  }

  private async untilDown(work: () => Promise<void>): Promise<void> {
    for (;;) {
      try {
        await work();
      } catch {
        return;
      }
    }
  }
}

/** A small seeded random number generator, so that a failing run can be repeated. */
function mulberry32(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4_294_967_296;
  };
}
