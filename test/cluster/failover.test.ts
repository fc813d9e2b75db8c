/** Several fronts on one PostgreSQL: what was acknowledged is stored once, whoever dies or hangs, and when. */

import { expect } from "bun:test";
import { mulberry32 } from "../support/crash-load.ts";
import { TestFronts, testWithFronts } from "../support/fronts.ts";
import { expectAllOnce, FrontLoad, stopMerges } from "../support/fronts-load.ts";
import { until } from "../support/server.ts";

const test = testWithFronts("several fronts");
const rounds = Number(process.env.FLAGKEEP_TEST_CLUSTER_ROUNDS ?? 5);
const seed = Number(process.env.FLAGKEEP_TEST_SEED) || Date.now() % 1_000_000;
const random = mulberry32(seed);
/** A successor waits for the lease and for the deadline of the last insert, and a full machine is slow to start it. */
const takeoverMs = 120_000;

/** The loader's place in one of the lanes. */
interface Place {
  begun: number | null;
  loaded: number;
  applied: number;
}

async function places(fronts: TestFronts): Promise<Place[]> {
  return await fronts.askPeople<Place>(`
    SELECT load.begun_seq AS begun, load.seq AS loaded, coalesce(place.seq, 0) AS applied
    FROM outside_load AS load LEFT JOIN lane_cursor AS place USING (lane)`);
}

async function killLeader(fronts: TestFronts): Promise<void> {
  const number = await fronts.leader();
  await fronts.killWithEngine(number);
  await fronts.startFront(number);
}

/** What goes wrong in a round, in turn. */
const faults: Record<string, (fronts: TestFronts, load: FrontLoad) => Promise<void>> = {
  "the leader dies when its batch and the persons are noted": async (fronts) => {
    await until(
      async () => (await places(fronts)).some(({ begun, applied }) => begun !== null && applied >= begun),
      "a batch is begun",
    );
    await killLeader(fronts);
  },
  "the leader dies before its insert, which is done later": async (fronts, load) => {
    await fronts.clickhouse.holdInsert("before");
    await until(async () => (await fronts.clickhouse.inserts()).isHolding, "an insert is held");
    const { inserted } = await fronts.clickhouse.inserts();
    await killLeader(fronts);
    await until(
      async () => (await fronts.clickhouse.inserts()).inserted > inserted,
      "another one loads events",
      takeoverMs,
    );
    await fronts.clickhouse.release();
    await load.further(200);
  },
  "the leader dies when its insert is done": async (fronts) => {
    await fronts.clickhouse.holdInsert("after");
    await until(async () => (await fronts.clickhouse.inserts()).isHolding, "an answer is held");
    await killLeader(fronts);
    await fronts.clickhouse.release();
  },
  "the leader dies when a batch is noted as loaded": async (fronts) => {
    const before = await places(fronts);
    await until(
      async () =>
        (await places(fronts)).some(
          ({ loaded, begun }, lane) => begun === null && loaded > (before[lane]?.loaded ?? 0),
        ),
      "a batch is loaded",
    );
    await killLeader(fronts);
  },
  "the primary dies, and the standby is promoted": async (fronts, load) => {
    await fronts.failOver();
    await load.further(500);
  },
  "the primary dies and comes back": async (fronts, load) => {
    await fronts.postgres.kill();
    await Bun.sleep(random() * 1_000);
    await fronts.postgres.restart();
    await load.further(500);
  },
  "ClickHouse dies after an insert": async (fronts) => {
    await fronts.clickhouse.breakNext("die-after-insert");
    await until(() => !fronts.clickhouse.isRunning, "the server has died");
    await fronts.clickhouse.restart();
    await stopMerges(fronts);
  },
  "a front that does not lead dies": async (fronts) => {
    const leader = await fronts.leader();
    const other = [...fronts.running.keys()].find((number) => number !== leader)!;
    await fronts.killWithEngine(other);
    await fronts.startFront(other);
  },
  "the leader's engine alone hangs": async (fronts, load) => {
    const hung = fronts.running.get(await fronts.leader())!;
    const [pid] = await hung.enginePids();
    const [before] = await fronts.ask<{ epoch: number }>("SELECT epoch::int FROM flagkeep.lease");
    process.kill(pid!, "SIGSTOP");
    await until(async () => {
      const [now] = await fronts.ask<{ epoch: number }>("SELECT epoch::int FROM flagkeep.lease");
      return now!.epoch > before!.epoch;
    }, "another one loads events");
    await load.further(200);
    // Its front may have ended it meanwhile.
    if ((await hung.enginePids()).includes(pid!)) process.kill(pid!, "SIGCONT");
  },
  "the leader hangs, another one takes over, and it wakes up": async (fronts, load) => {
    const number = await fronts.leader();
    const hung = fronts.running.get(number)!;
    const pids = [hung.process.pid, ...(await hung.enginePids())];
    fronts.running.delete(number);
    for (const pid of pids) process.kill(pid, "SIGSTOP");
    await fronts.leader();
    await load.further(200);
    for (const pid of pids) process.kill(pid, "SIGCONT");
    fronts.running.set(number, hung);
  },
};

test("each front is killed in turn", async () => {
  await using fronts = await TestFronts.start(3);
  await stopMerges(fronts);
  const load = new FrontLoad(fronts, random);
  for (const number of [0, 1, 2]) {
    await load.further(300);
    await fronts.kill(number);
    await load.further(300);
    await fronts.startFront(number);
  }
  await load.stop();
  await expectAllOnce(fronts, load.log);
}, 120_000);

test(
  `everything acknowledged is stored once after ${rounds} rounds of faults (seed ${seed})`,
  async () => {
    await using fronts = await TestFronts.start(2, { standby: true });
    await stopMerges(fronts);
    const load = new FrontLoad(fronts, random);
    const all = Object.entries(faults);
    for (let round = 0; round < rounds; round++) {
      const [name, fault] = all[round % all.length]!;
      await load.further(200);
      await fault(fronts, load).catch((error) => {
        throw new Error(`Round ${round}, ${name}: ${error}`);
      });
    }
    await load.further(200);
    await load.stop();
    await expectAllOnce(fronts, load.log);
  },
  rounds * 30_000 + 120_000,
);

/**
 * A leader is taken for dead while its insert is on its way.
 * @param without the guards that are missing @returns how many of a hundred events are stored in the end
 */
async function storedByZombie(without: { isUnnamed?: boolean; isUndated?: boolean }): Promise<number> {
  await using fronts = await TestFronts.start(2);
  const { clickhouse } = fronts;
  await stopMerges(fronts);
  const number = await fronts.leader();
  const hung = fronts.running.get(number)!;
  const [other] = fronts.fronts.filter((front) => front !== hung);
  const batch = Array.from({ length: 100 }, (_, index) => ({
    event: "once",
    uuid: Bun.randomUUIDv7(),
    distinct_id: `person-${index % 7}`,
  }));
  const stored = async () =>
    Number((await clickhouse.run("SELECT count() FROM flagkeep.events WHERE event = 'once'"))[0]![0]);
  await clickhouse.holdInsert("before", without);
  expect((await other!.batch(batch)).status).toBe(200);
  await until(async () => (await clickhouse.inserts()).isHolding, "an insert is held");
  const pids = [hung.process.pid, ...(await hung.enginePids())];
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  fronts.running.delete(number);
  await fronts.leader();
  await fronts.everythingIsLoaded();
  expect(await stored()).toBe(100);
  const before = await clickhouse.inserts();
  await clickhouse.release(without);
  await until(async () => {
    const { inserted, refused } = await clickhouse.inserts();
    return inserted + refused > before.inserted + before.refused;
  }, "the late insert is done or refused");
  for (const pid of pids) process.kill(pid, "SIGCONT");
  fronts.running.set(number, hung);
  expect((await hung.capture({ event: "later", distinct_id: "person-1" })).status).toBe(200);
  await fronts.everythingIsLoaded();
  expect(await fronts.leader()).not.toBe(number);
  return await stored();
}

test("what a leader that hung inserts late is not stored again", async () => {
  expect(await storedByZombie({ isUndated: true })).toBe(100);
}, 60_000);

test("nor is it where ClickHouse has forgotten the insert's name: it is behind its deadline", async () => {
  expect(await storedByZombie({ isUnnamed: true })).toBe(100);
}, 60_000);

test("without the inserts' names and deadlines it would be: this test can see it", async () => {
  expect(await storedByZombie({ isUnnamed: true, isUndated: true })).toBe(200);
}, 60_000);

test("a cohort that a front was counting when it died is counted by another one", async () => {
  await using fronts = await TestFronts.start(2);
  const [dying, other] = fronts.fronts;
  const person = { distinct_id: "ann", properties: { $set: { plan: "pro" } } };
  expect((await dying!.capture({ event: "seen", ...person })).status).toBe(200);
  await fronts.everythingIsLoaded();
  const isPro = { key: "plan", type: "person", value: "pro", operator: "exact" };
  const filters = { properties: { type: "AND", values: [{ type: "AND", values: [isPro] }] } };
  const path = "/api/projects/1/cohorts/";
  // It counts for ever.
  for (const pid of await dying!.enginePids()) process.kill(pid, "SIGSTOP");
  const answer = await dying!.api(path, { method: "POST", body: { name: "Pros", filters } });
  const { id } = (await answer.json()) as { id: number };
  const shown = async () =>
    (await (await other!.api(`${path}${id}/`)).json()) as { is_calculating?: boolean; count?: number };
  await until(async () => (await shown()).is_calculating, "the other one knows that it is counted");
  await fronts.killWithEngine(0);
  const isCounted = async () => (await shown()).is_calculating === false;
  await until(isCounted, "the cohort is counted");
  expect((await shown()).count).toBe(1);
}, 120_000);
