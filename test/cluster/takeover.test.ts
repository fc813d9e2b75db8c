/** What happens when another node, or nobody, continues after the loading node has died. */

import { expect } from "bun:test";
import { TestFronts, testWithFronts } from "../support/fronts.ts";
import { flagkeep, until } from "../support/server.ts";

const test = testWithFronts("takeovers");

async function cluster(fronts: TestFronts, ...args: string[]): Promise<void> {
  const { stderr, code } = await flagkeep(["cluster", ...args, "--postgres-url", fronts.postgresUrl]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
}

const pauseLoading = async (fronts: TestFronts) => await cluster(fronts, "pause-loading", "--for", "10m");

test("a node that takes over loads nothing while ClickHouse is ahead of PostgreSQL, and says so", async () => {
  await using fronts = await TestFronts.start(2);
  const number = await fronts.leader();
  const other = fronts.fronts[1 - number]!;
  expect((await other.capture({ event: "before", distinct_id: "kim" })).status).toBe(200);
  await fronts.everythingIsLoaded();
  // As after the promotion of a standby that was not synchronous: PostgreSQL would assign these numbers again.
  await fronts.clickhouse.run(
    "INSERT INTO flagkeep.events SELECT * REPLACE (seq + 1000000 AS seq, generateUUIDv4() AS uuid) FROM flagkeep.events LIMIT 1",
  );
  await fronts.killWithEngine(number);
  expect((await other.capture({ event: "after", distinct_id: "kim" })).status).toBe(200);
  await until(async () => {
    const { stdout } = await flagkeep(["status", "--data-dir", other.dataDir, "--json"]);
    const { engine } = JSON.parse(stdout) as { engine: { trouble: { message: string } | null } };
    return /end at realtime entry 100\d{4}, but this data directory has loaded only/.test(
      engine.trouble?.message ?? "",
    );
  }, "the node says that ClickHouse is ahead");
  const [row] = await fronts.ask<{ left: number }>("SELECT count(*)::int AS left FROM flagkeep.journal");
  expect(row!.left).toBe(1);
}, 120_000);

test("a pause of loading begins when the load that has begun is stored", async () => {
  await using fronts = await TestFronts.start(1);
  const front = fronts.fronts[0]!;
  await fronts.leader();
  await fronts.clickhouse.holdInsert("before");
  expect((await front.capture({ event: "held", distinct_id: "kim" })).status).toBe(200);
  await until(async () => (await fronts.clickhouse.inserts()).isHolding, "an insert is held");
  let isPaused = false;
  const pausing = pauseLoading(fronts).then(() => {
    isPaused = true;
  });
  const getState = async () =>
    (await fronts.ask("SELECT paused_until > now() AS paused FROM flagkeep.lease"))[0];
  await until(async () => (await getState())!.paused === true, "the pause is known");
  const [before] = await fronts.ask<{ beat: number }>("SELECT beat::int FROM flagkeep.lease");
  await until(async () => {
    const [now] = await fronts.ask<{ beat: number }>("SELECT beat::int FROM flagkeep.lease");
    return now!.beat > before!.beat + 3;
  }, "the node has seen the pause, and keeps the lease");
  expect(isPaused).toBe(false);
  await fronts.clickhouse.release();
  await pausing;
  const stored = await fronts.clickhouse.run("SELECT count() FROM flagkeep.events WHERE event = 'held'");
  expect(stored).toEqual([[1]]);
}, 120_000);

test("a pause of loading begins although the loading node is dead, and no other one runs", async () => {
  await using fronts = await TestFronts.start(1);
  await fronts.leader();
  await fronts.killWithEngine(0);
  const startedAt = performance.now();
  await pauseLoading(fronts);
  // No insert of that node can be stored any more.
  expect(performance.now() - startedAt).toBeGreaterThan(4_000);
  expect(await fronts.ask("SELECT holder FROM flagkeep.lease")).toEqual([{ holder: null }]);
  await cluster(fronts, "resume");
  await fronts.startFront(0);
  await fronts.leader();
}, 120_000);
