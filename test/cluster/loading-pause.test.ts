/** `flagkeep cluster`: what it shows of the nodes, and pauses of loading, during which everything else works. */

import { afterAll, beforeAll, expect } from "bun:test";
import { SQL } from "bun";
import { canRunCluster, TestCluster, testWithCluster } from "../support/cluster.ts";
import { flagkeep, until } from "../support/server.ts";

const test = testWithCluster("flagkeep cluster");

let testCluster: TestCluster;
/** What the nodes have logged. */
const logged: unknown[] = [];
const onLog = ({ msg }: Record<string, unknown>) => void logged.push(msg);

if (canRunCluster) {
  beforeAll(async () => {
    testCluster = await TestCluster.prepare();
    for (const number of [0, 1]) await testCluster.startNode(number, onLog);
  }, 60_000);
  afterAll(async () => await testCluster[Symbol.asyncDispose]());
}

async function cluster(...args: string[]): Promise<Record<string, unknown>> {
  return JSON.parse(await testCluster.command(...args, "--json"));
}

const capture = async (event: string) =>
  (await testCluster.nodes[0]!.capture({ event, distinct_id: "kim" })).status;
const getCount = async (event: string) =>
  (await testCluster.clickhouse.run(`SELECT count() FROM flagkeep.events WHERE event = '${event}'`))[0]![0];
const getReadiness = async () => {
  const response = await fetch(`${testCluster.nodes[1]!.url}/_readiness`);
  return { ...((await response.json()) as { warnings?: string[] }), code: response.status };
};
const getMetric = async (name: string) => {
  const text = await (await fetch(`${testCluster.nodes[1]!.url}/metrics`)).text();
  return Number(new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1]);
};

test("status names the nodes, the one that loads, and what waits", async () => {
  interface State {
    nodes: { name: string; loads_events: boolean }[];
    lanes: object[];
    loading_paused_until: null;
  }
  await testCluster.leader();
  const urls = JSON.stringify(testCluster.nodes.map(({ url }) => url).sort());
  const state = await until(async () => {
    const found = (await cluster("status")) as unknown as State;
    return JSON.stringify(found.nodes.map(({ name }) => name.split(" ")[1]).sort()) === urls && found;
  }, "both nodes have reported their addresses");
  expect(state.nodes.filter((node) => node.loads_events).length).toBe(1);
  expect(state.loading_paused_until).toBeNull();
  expect(state.lanes).toMatchObject([{ lane: "realtime" }, { lane: "historical" }]);
  const shown = await testCluster.command("status");
  // Numbers have gaps: the last one is not a count of events.
  expect(shown).toMatch(/^LANE +LAST NUMBER +WAITING +BYTES$/m);
}, 60_000);

test("while loading is paused, events are accepted and wait, and the operator is notified", async () => {
  expect(await capture("before")).toBe(200);
  const { loading_paused_until } = await cluster("pause-loading", "--for", "10m");
  await until(() => logged.includes("restarting the engine: loading is paused"), "its log says so");
  expect(logged).not.toContain("restarting the engine: no node has the lease");
  // What was acknowledged before is loaded, or waits.
  expect(await capture("meanwhile")).toBe(200);
  const waits = `Loading is paused until ${loading_paused_until}.`;
  await until(async () => (await getReadiness()).warnings?.includes(waits), "readiness says so");
  await until(async () => (await getReadiness()).code === 200, "both roles and queries are ready");
  expect(await getMetric("flagkeep_cluster_loading_paused")).toBe(1);
  // A node may have read the state between the begin of the pause and the release of the lease.
  await until(async () => (await getMetric("flagkeep_cluster_loading")) === 0, "the metric says so");
  const status = await flagkeep(["status", "--data-dir", testCluster.nodes[1]!.dataDir, "--json"]);
  expect(JSON.parse(status.stdout).shared).toMatchObject({ loading_paused_until });
  // A node that starts during a pause does not load either.
  await testCluster.startNode(2, onLog);
  expect(await getCount("meanwhile")).toBe(0);
  const state = await cluster("status");
  expect(state).toMatchObject({ loading_paused_until, lanes: [{ lane: "realtime" }, {}] });
  expect((state.lanes as { waiting_entries: number }[])[0]!.waiting_entries).toBeGreaterThan(0);

  // An engine that starts when the pause ends acquires the lease without a restart.
  for (const { url } of testCluster.nodes)
    await until(async () => (await fetch(`${url}/_readiness`)).status === 200, "its engine follows");
  await cluster("resume");
  await testCluster.everythingIsLoaded();
  await until(() => logged.includes("restarting the engine: no node has the lease"), "a follower takes over");
  expect([await getCount("before"), await getCount("meanwhile")]).toEqual([1, 1]);
  await until(async () => (await getMetric("flagkeep_cluster_loading")) === 1, "the metric says so");
  await until(async () => (await getReadiness()).warnings === undefined, "readiness has no warning");
}, 120_000);

test("a pause ends automatically", async () => {
  await testCluster.leader();
  await cluster("pause-loading", "--for", "5s");
  expect(await capture("later")).toBe(200);
  await testCluster.everythingIsLoaded();
  expect(await getCount("later")).toBe(1);
}, 60_000);

test("a transaction of another program that delays loading is named everywhere, and then loading continues", async () => {
  await testCluster.leader();
  await using other = new SQL(testCluster.postgres.url("postgres"), { max: 1 });
  const open = await other.reserve();
  await open`BEGIN`;
  await open`SELECT pg_current_xact_id()`;
  const [{ pid }] = (await open`SELECT pg_backend_pid() AS pid`) as [{ pid: number }];
  expect(await capture("delayed")).toBe(200);
  const isNamed = (text: string) => text.includes(`Loading waits for a transaction of process ${pid} `);
  await until(async () => (await getReadiness()).warnings?.some(isNamed), "readiness names it");
  expect(await getMetric("flagkeep_cluster_loading_held_back_seconds")).toBeGreaterThanOrEqual(5);
  const heldBack = { pid, name: expect.any(String), seconds: expect.any(Number) };
  expect(await cluster("status")).toMatchObject({ loading_held_back_by: heldBack });
  const status = await flagkeep(["status", "--data-dir", testCluster.nodes[1]!.dataDir, "--json"]);
  expect(JSON.parse(status.stdout).shared).toMatchObject({ loading_held_back_by: heldBack });
  const doctor = await flagkeep([
    "doctor",
    "--data-dir",
    testCluster.nodes[1]!.dataDir,
    ...testCluster.settings,
  ]);
  expect(doctor.stdout).toContain(`Loading waits for a transaction of process ${pid} `);
  expect(await getCount("delayed")).toBe(0);
  await open`ROLLBACK`;
  open.release();
  await testCluster.everythingIsLoaded();
  expect(await getCount("delayed")).toBe(1);
  await until(async () => (await getReadiness()).warnings === undefined, "readiness has no warning");
}, 60_000);

test("a database without a cluster is rejected, and nothing is created in it", async () => {
  const url = await testCluster.postgres.create("empty");
  const { stderr, code } = await flagkeep(["cluster", "status", "--postgres-url", url]);
  expect(code).toBe(1);
  expect(stderr).toContain("contains no Flagkeep data");
  expect(
    await testCluster.postgres.run("SELECT 1 FROM pg_namespace WHERE nspname = 'flagkeep'", "empty"),
  ).toEqual([]);
}, 60_000);
