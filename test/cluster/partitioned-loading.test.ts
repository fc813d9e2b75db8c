/** Nodes that all load events: which node loads which partitions, and that no event is lost, repeated or out of order when this changes. */

import { afterAll, beforeAll, expect } from "bun:test";
import type { Sent } from "../kill-test/checker.ts";
import { canRunCluster, TestCluster, testWithCluster } from "../support/cluster.ts";
import { ClusterLoad, expectAllOnce, stopMerges } from "../support/cluster-load.ts";
import { mulberry32 } from "../support/crash-load.ts";
import { until } from "../support/server.ts";
import { expectWithin } from "../support/times.ts";

const test = testWithCluster("loading by several nodes");
const projects = 6;
const args = ["--cluster-persons", "rows", "--cluster-loading", "partitions"];
const random = mulberry32(Number(process.env.FLAGKEEP_TEST_SEED) || Date.now() % 1_000_000);

let cluster: TestCluster;
const tokens: string[] = [];

if (canRunCluster) {
  beforeAll(async () => {
    cluster = await TestCluster.start(2, { args });
    tokens.push(...(await cluster.createProjects(projects)));
    await stopMerges(cluster);
  }, 60_000);
  afterAll(async () => await cluster[Symbol.asyncDispose]());
}

interface Holder {
  url: string;
  partitions: number;
}

/** How many partitions the engine of each node holds. */
const getHolders = async () =>
  await cluster.ask<Holder>(`
    SELECT split_part(f.name, ' ', 2) AS url, count(*)::int AS partitions
    FROM flagkeep.partition p JOIN flagkeep.loader l ON l.id = p.holder JOIN flagkeep.front f ON f.id = l.node
    GROUP BY 1 ORDER BY 1`);

const getShares = async () => (await getHolders()).map(({ partitions }) => partitions).sort((a, b) => a - b);

async function sharesBecome(expected: readonly number[], withinMs: number): Promise<void> {
  await until(
    async () => Bun.deepEquals(await getShares(), expected),
    `the shares are ${expected.join(", ")}`,
    withinMs,
  );
}

/** All requests so far. */
const log: Sent[] = [];

async function expectNothingLost(load: ClusterLoad): Promise<void> {
  await load.stop();
  log.push(...load.log);
  await expectAllOnce(cluster, log);
}

/** After one of two nodes was killed: the other one loads its partitions, and gives half back when it is restarted. */
async function expectTakeover(load: ClusterLoad, dead: number): Promise<void> {
  await sharesBecome([64], 12_000);
  await load.further(200);
  await expectNothingLost(load);
  await cluster.startNode(dead);
  await sharesBecome([32, 32], 30_000);
}

const startLoad = () => new ClusterLoad(cluster, random, { senders: projects, historical: 3, tokens });

test("two nodes hold half of the partitions each, and both load", async () => {
  await sharesBecome([32, 32], 30_000);
  const load = startLoad();
  await load.further(300);
  await expectNothingLost(load);
  // Projects with consecutive ids are spread over both.
  const held = await cluster.ask<{ id: number; holder: string }>(
    `SELECT id, holder FROM flagkeep.partition WHERE id BETWEEN 1 AND ${projects}`,
  );
  expect(new Set(held.map(({ holder }) => holder)).size).toBe(2);
}, 120_000);

test("cluster status shows the node of each partition, and no pending entries", async () => {
  await cluster.everythingIsLoaded();
  const state = JSON.parse(await cluster.command("status", "--json")) as {
    nodes: { name: string; loads_events: boolean }[];
    partitions: { partition: number; node: string }[];
  };
  expect(state.nodes.map((node) => node.loads_events)).toEqual([true, true]);
  expect(state.partitions.length).toBe(64);
  expect(new Set(state.partitions.map(({ node }) => node))).toEqual(
    new Set(state.nodes.map(({ name }) => name)),
  );
  expect(state.partitions[7]).toMatchObject({ waiting_realtime: 0, waiting_historical: 0, open_batch: null });
  expect(await cluster.command("status")).toMatch(/^32 +\S+ \S+ +\d s +0 +0 +0$/m);
  for (const node of cluster.nodes) {
    const metrics = async () => await (await fetch(`${node.url}/metrics`)).text();
    await until(
      async () => /^flagkeep_unheld_partitions 0$/m.test(await metrics()),
      "engines hold all partitions",
    );
    const isLoaded = async () =>
      /^flagkeep_partition_lag_entries\{partition="63"\} 0$/m.test(await metrics());
    await until(isLoaded, "no entries are pending");
  }
}, 60_000);

test("no engine loads while loading is paused", async () => {
  await cluster.command("pause-loading", "--for", "10m");
  expect(await getShares()).toEqual([]);
  const send = (token: string) =>
    cluster.nodes[0]!.post("/capture/", { api_key: token, event: "paused", distinct_id: "kim" });
  expect((await Promise.all(tokens.map(send))).map(({ status }) => status)).toEqual(tokens.map(() => 200));
  const count = async () =>
    (await cluster.clickhouse.run("SELECT count() FROM flagkeep.events WHERE event = 'paused'"))[0]![0];
  expect(await count()).toBe(0);
  await cluster.command("resume");
  await cluster.everythingIsLoaded();
  expect(await count()).toBe(projects);
  await sharesBecome([32, 32], 30_000);
}, 120_000);

test("when a node dies, the other holds all partitions within 12 s", async () => {
  const load = startLoad();
  await load.further(200);
  const dead = [...cluster.running.keys()].find((number) => number !== 0)!;
  await cluster.killWithEngine(dead);
  await expectTakeover(load, dead);
}, 180_000);

test("when the node with the lease dies during an insert, the events of the insert are loaded once", async () => {
  const load = startLoad();
  await load.further(200);
  await cluster.clickhouse.holdInsert("after");
  await until(
    async () => (await cluster.clickhouse.inserts()).isHolding,
    "the response to an insert is held",
  );
  const dead = await cluster.leader();
  await cluster.killWithEngine(dead);
  await cluster.clickhouse.release();
  await expectTakeover(load, dead);
}, 180_000);

test("a new node gets its share of the partitions, and no partition moves twice", async () => {
  const load = startLoad();
  await load.further(200);
  const getEpochs = () =>
    cluster.ask<{ epoch: number }>("SELECT epoch::int FROM flagkeep.partition ORDER BY id");
  const before = await getEpochs();
  await cluster.startNode(2);
  await sharesBecome([21, 21, 22], 40_000);
  await load.further(200);
  const after = await getEpochs();
  const moves = after.map(({ epoch }, id) => epoch - before[id]!.epoch);
  // Each is released once and acquired once, or stays.
  expect(moves.filter((count) => count !== 0 && count !== 2)).toEqual([]);
  expect(moves.filter((count) => count === 2).length).toBeLessThanOrEqual(22);
  await expectNothingLost(load);
}, 180_000);

test("a stopped node releases its partitions within 3 s", async () => {
  const load = startLoad();
  await load.further(200);
  let stopping: Promise<number> | undefined;
  await expectWithin(3_000, async (restartClock) => {
    await stopping;
    const node = cluster.running.get(2) ?? (await cluster.startNode(2));
    await sharesBecome([21, 21, 22], 40_000);
    cluster.running.delete(2);
    restartClock();
    stopping = node.stop();
    await sharesBecome([32, 32], 40_000);
  });
  expect(await stopping).toBe(0);
  await load.further(200);
  await expectNothingLost(load);
}, 180_000);

test("a suspended engine loses its partitions, and commits nothing when it resumes", async () => {
  const load = startLoad();
  await load.further(200);
  const leader = await cluster.leader();
  const resume = await cluster.suspend([...cluster.running.keys()].find((number) => number !== leader)!);
  await sharesBecome([64], 12_000);
  await load.further(300);
  resume();
  await sharesBecome([32, 32], 30_000);
  await load.further(200);
  await expectNothingLost(load);
}, 180_000);
