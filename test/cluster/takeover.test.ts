/** What happens when another node, or no one, continues after the loading node has died. */

import { expect } from "bun:test";
import { TestCluster, testWithCluster } from "../support/cluster.ts";
import { flagkeep, type ServerProcess, until } from "../support/server.ts";

const test = testWithCluster("takeovers");

const pauseLoading = (cluster: TestCluster) => cluster.command("pause-loading", "--for", "10m");

/** As after the promotion of a standby that was not synchronous: PostgreSQL would assign these numbers again. */
async function advanceClickHouse(cluster: TestCluster): Promise<void> {
  expect((await cluster.nodes[0]!.capture({ event: "before", distinct_id: "kim" })).status).toBe(200);
  await cluster.everythingIsLoaded();
  await cluster.clickhouse.run(
    "INSERT INTO flagkeep.events SELECT * REPLACE (seq + 1000000 AS seq, generateUUIDv4() AS uuid) FROM flagkeep.events LIMIT 1",
  );
}

async function untilReported({ dataDir }: ServerProcess): Promise<void> {
  await until(async () => {
    const { stdout } = await flagkeep(["status", "--data-dir", dataDir, "--json"]);
    const { engine } = JSON.parse(stdout) as { engine: { trouble: { message: string } | null } };
    return /end at realtime entry 100\d{4}, but this data directory has loaded only/.test(
      engine.trouble?.message ?? "",
    );
  }, "the node says that ClickHouse is ahead");
}

test("a node that becomes leader loads nothing while ClickHouse is ahead of PostgreSQL, and reports it", async () => {
  await using cluster = await TestCluster.start(2);
  const number = await cluster.leader();
  const other = cluster.nodes[1 - number]!;
  await advanceClickHouse(cluster);
  await cluster.killWithEngine(number);
  expect((await other.capture({ event: "after", distinct_id: "kim" })).status).toBe(200);
  await untilReported(other);
  const [row] = await cluster.ask<{ left: number }>("SELECT count(*)::int AS left FROM flagkeep.journal");
  expect(row!.left).toBe(1);
}, 120_000);

test("a node that acquires partitions loads nothing while ClickHouse is ahead of PostgreSQL, and reports it", async () => {
  const args = ["--cluster-persons", "rows", "--cluster-loading", "partitions"];
  await using cluster = await TestCluster.start(2, { args });
  await until(async () => {
    const holders = await cluster.ask("SELECT DISTINCT holder FROM flagkeep.partition");
    return holders.length === 2 && holders.every(({ holder }) => holder !== null);
  }, "both nodes hold partitions");
  await advanceClickHouse(cluster);
  // The engine of the other one neither acquires the lease nor restarts.
  const leader = await cluster.leader();
  const other = cluster.nodes[leader]!;
  await cluster.killWithEngine(1 - leader);
  await untilReported(other);
  expect((await other.capture({ event: "after", distinct_id: "kim" })).status).toBe(200);
  const [row] = await cluster.ask<{ left: number }>("SELECT count(*)::int AS left FROM flagkeep.journal");
  expect(row!.left).toBe(1);
}, 120_000);

test("a pause of loading starts when the current load is stored", async () => {
  await using cluster = await TestCluster.start(1);
  const node = cluster.nodes[0]!;
  await cluster.leader();
  await cluster.clickhouse.holdInsert("before");
  expect((await node.capture({ event: "held", distinct_id: "kim" })).status).toBe(200);
  await until(async () => (await cluster.clickhouse.inserts()).isHolding, "an insert is held");
  let isPaused = false;
  const pausing = pauseLoading(cluster).then(() => {
    isPaused = true;
  });
  const getState = async () =>
    (await cluster.ask("SELECT paused_until > now() AS paused FROM flagkeep.lease"))[0];
  await until(async () => (await getState())!.paused === true, "the pause is known");
  const [before] = await cluster.ask<{ beat: number }>("SELECT beat::int FROM flagkeep.lease");
  await until(async () => {
    const [now] = await cluster.ask<{ beat: number }>("SELECT beat::int FROM flagkeep.lease");
    return now!.beat > before!.beat + 3;
  }, "the node has seen the pause, and keeps the lease");
  expect(isPaused).toBe(false);
  await cluster.clickhouse.release();
  await pausing;
  const stored = await cluster.clickhouse.run("SELECT count() FROM flagkeep.events WHERE event = 'held'");
  expect(stored).toEqual([[1]]);
}, 120_000);

test("a pause of loading begins although the loading node is dead, and no other one runs", async () => {
  await using cluster = await TestCluster.start(1);
  await cluster.leader();
  await cluster.killWithEngine(0);
  const startedAt = performance.now();
  await pauseLoading(cluster);
  // No insert of that node can be stored any more.
  expect(performance.now() - startedAt).toBeGreaterThan(4_000);
  expect(await cluster.ask("SELECT holder FROM flagkeep.lease")).toEqual([{ holder: null }]);
  await cluster.command("resume");
  await cluster.startNode(0);
  await cluster.leader();
}, 120_000);
