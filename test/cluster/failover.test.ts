/** Several nodes on one PostgreSQL: acknowledged events are stored once, whichever process dies or hangs. */

import { expect } from "bun:test";
import { TestCluster, takeoverMs, testWithCluster } from "../support/cluster.ts";
import { ClusterLoad, crashClickHouse, expectAllOnce, stopMerges } from "../support/cluster-load.ts";
import { mulberry32 } from "../support/crash-load.ts";
import { until } from "../support/server.ts";

const test = testWithCluster("several nodes");
const rounds = Number(process.env.FLAGKEEP_TEST_CLUSTER_ROUNDS ?? 5);
const seed = Number(process.env.FLAGKEEP_TEST_SEED) || Date.now() % 1_000_000;
const random = mulberry32(seed);
const layout = process.env.FLAGKEEP_TEST_CLUSTER_PERSONS ?? (seed % 2 === 0 ? "replica" : "rows");
const loading =
  process.env.FLAGKEEP_TEST_CLUSTER_LOADING ??
  (layout === "rows" && seed % 4 === 1 ? "partitions" : "single");
const args = ["--cluster-persons", layout, "--cluster-loading", loading];

/** The loader's position in one of the lanes. */
interface Position {
  started: number | null;
  loaded: number;
  applied: number;
}

async function positions(cluster: TestCluster): Promise<Position[]> {
  if (loading === "partitions")
    return await cluster.ask<Position>(`
      SELECT CASE WHEN max(applied) > min(loaded) THEN max(applied)::float8 END AS started, min(loaded)::float8 AS loaded,
        max(applied)::float8 AS applied
      FROM (SELECT 1 AS lane, applied_realtime AS applied, loaded_realtime AS loaded FROM flagkeep.partition
        UNION ALL SELECT 0, applied_historical, loaded_historical FROM flagkeep.partition) AS position
      GROUP BY lane ORDER BY lane`);
  return await cluster.askPeople<Position>(`
    SELECT load.begun_seq AS started, load.seq AS loaded, coalesce(lane_cursor.seq, 0) AS applied
    FROM outside_load AS load LEFT JOIN lane_cursor USING (lane)`);
}

async function killLeader(cluster: TestCluster): Promise<void> {
  await cluster.restart(await cluster.leader());
}

/** What goes wrong in a round, in turn. */
const faults: Record<string, (cluster: TestCluster, load: ClusterLoad) => Promise<void>> = {
  "the leader dies when its batch and the persons are recorded": async (cluster) => {
    await until(
      async () =>
        (await positions(cluster)).some(({ started, applied }) => started !== null && applied >= started),
      "a batch is started",
    );
    await killLeader(cluster);
  },
  "the leader dies before its insert, which is done later": async (cluster, load) => {
    await cluster.clickhouse.holdInsert("before");
    await until(async () => (await cluster.clickhouse.inserts()).isHolding, "an insert is held");
    const { inserted } = await cluster.clickhouse.inserts();
    await killLeader(cluster);
    await until(
      async () => (await cluster.clickhouse.inserts()).inserted > inserted,
      "another one loads events",
      takeoverMs,
    );
    await cluster.clickhouse.release();
    await load.further(200);
  },
  "the leader dies when its insert is done": async (cluster) => {
    await cluster.clickhouse.holdInsert("after");
    await until(async () => (await cluster.clickhouse.inserts()).isHolding, "an answer is held");
    await killLeader(cluster);
    await cluster.clickhouse.release();
  },
  "the leader dies when a batch is recorded as loaded": async (cluster) => {
    const before = await positions(cluster);
    await until(
      async () =>
        (await positions(cluster)).some(
          // With partitions, the next batch may be recorded as started in the same transaction.
          ({ loaded, started }, lane) =>
            (started === null || loading === "partitions") && loaded > (before[lane]?.loaded ?? 0),
        ),
      "a batch is loaded",
    );
    await killLeader(cluster);
  },
  "the primary dies, and the standby is promoted": async (cluster, load) => {
    await cluster.failOver();
    await load.further(500);
  },
  "the primary dies and comes back": async (cluster, load) => {
    await cluster.postgres.kill();
    await Bun.sleep(random() * 1_000);
    await cluster.postgres.restart();
    await load.further(500);
  },
  "ClickHouse dies after an insert": crashClickHouse,
  "a node that does not lead dies": async (cluster) => {
    const leader = await cluster.leader();
    const other = [...cluster.running.keys()].find((number) => number !== leader)!;
    await cluster.restart(other);
  },
  "the leader's engine alone hangs": async (cluster, load) => {
    const hung = cluster.running.get(await cluster.leader())!;
    const [pid] = await hung.enginePids();
    const [before] = await cluster.ask<{ epoch: number }>("SELECT epoch::int FROM flagkeep.lease");
    process.kill(pid!, "SIGSTOP");
    await until(async () => {
      const [now] = await cluster.ask<{ epoch: number }>("SELECT epoch::int FROM flagkeep.lease");
      return now!.epoch > before!.epoch;
    }, "another one loads events");
    await load.further(200);
    // Its server may have ended it meanwhile.
    if ((await hung.enginePids()).includes(pid!)) process.kill(pid!, "SIGCONT");
  },
  "the leader hangs, another one takes over, and it wakes up": async (cluster, load) => {
    const resume = await cluster.suspend(await cluster.leader());
    await cluster.leader();
    await load.further(200);
    resume();
  },
};

test("each node is killed in turn", async () => {
  await using cluster = await TestCluster.start(3, { args });
  await stopMerges(cluster);
  const load = new ClusterLoad(cluster, random);
  for (const number of [0, 1, 2]) {
    await load.further(300);
    await cluster.kill(number);
    await load.further(300);
    await cluster.startNode(number);
  }
  await load.stop();
  await expectAllOnce(cluster, load.log);
}, 120_000);

test(
  `everything acknowledged is stored once after ${rounds} rounds of faults (seed ${seed}, persons as ${layout}, loading ${loading})`,
  async () => {
    await using cluster = await TestCluster.start(2, { standby: true, args });
    await stopMerges(cluster);
    const load = new ClusterLoad(cluster, random);
    const all = Object.entries(faults);
    for (let round = 0; round < rounds; round++) {
      const [name, fault] = all[round % all.length]!;
      await load.further(200);
      await fault(cluster, load).catch((error) => {
        throw new Error(`Round ${round}, ${name}: ${error}`);
      });
    }
    await load.further(200);
    await load.stop();
    await expectAllOnce(cluster, load.log);
  },
  rounds * 30_000 + 120_000,
);

/**
 * A leader is considered dead while its insert is on its way.
 * @param without the guards that are missing @returns how many of a hundred events are stored in the end
 */
async function storedByZombie(without: { isUnnamed?: boolean; isUndated?: boolean }): Promise<number> {
  await using cluster = await TestCluster.start(2);
  const { clickhouse } = cluster;
  await stopMerges(cluster);
  const number = await cluster.leader();
  const hung = cluster.running.get(number)!;
  const [other] = cluster.nodes.filter((node) => node !== hung);
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
  const resume = await cluster.suspend(number);
  await cluster.leader();
  await cluster.everythingIsLoaded();
  expect(await stored()).toBe(100);
  const before = await clickhouse.inserts();
  await clickhouse.release(without);
  await until(async () => {
    const { inserted, refused: rejected } = await clickhouse.inserts();
    return inserted + rejected > before.inserted + before.refused;
  }, "the late insert is done or rejected");
  resume();
  expect((await hung.capture({ event: "later", distinct_id: "person-1" })).status).toBe(200);
  await cluster.everythingIsLoaded();
  expect(await cluster.leader()).not.toBe(number);
  return await stored();
}

test("late inserts of a leader that hung are not stored again", async () => {
  expect(await storedByZombie({ isUndated: true })).toBe(100);
}, 60_000);

test("nor after ClickHouse has discarded the insert's name: its deadline has passed", async () => {
  expect(await storedByZombie({ isUnnamed: true })).toBe(100);
}, 60_000);

test("without the inserts' names and deadlines it would be: this test can see it", async () => {
  expect(await storedByZombie({ isUnnamed: true, isUndated: true })).toBe(200);
}, 60_000);

test("a cohort that a node was counting when it died is counted by another one", async () => {
  await using cluster = await TestCluster.start(2);
  const [dying, other] = cluster.nodes;
  const person = { distinct_id: "ann", properties: { $set: { plan: "pro" } } };
  expect((await dying!.capture({ event: "seen", ...person })).status).toBe(200);
  await cluster.everythingIsLoaded();
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
  await cluster.killWithEngine(0);
  const isCounted = async () => (await shown()).is_calculating === false;
  await until(isCounted, "the cohort is counted");
  expect((await shown()).count).toBe(1);
}, 120_000);
