/** Random faults while several nodes load partitions of the projects: acknowledged events are stored once and counted. */

import { TestCluster, takeoverMs, testWithCluster } from "../support/cluster.ts";
import { ClusterLoad, crashClickHouse, expectAllOnce, stopMerges } from "../support/cluster-load.ts";
import { mulberry32 } from "../support/crash-load.ts";
import { type ServerProcess, until } from "../support/server.ts";

const test = testWithCluster("faults of several loading nodes");
const rounds = Number(process.env.FLAGKEEP_TEST_PARTITION_ROUNDS ?? 4);
const seed = Number(process.env.FLAGKEEP_TEST_SEED) || 29;
/** Of the faults; the load has one of its own, so that a seed repeats their order. */
const random = mulberry32(seed);
const args = ["--cluster-persons", "rows", "--cluster-loading", "partitions"];
const nodeCount = 3;
const projects = 6;
/** Longer than a lease, with some probability. */
const suspendedMsMax = 9_000;
const stallsMax = 6;
/** Lines of each node's log in an error. */
const loggedLinesMax = 5;

interface HeldPartition {
  id: number;
  url: string;
  isOpen: boolean;
}

/** The partitions that a node holds, and whether their last batch is applied but not loaded. */
const getPartitions = async (cluster: TestCluster) =>
  await cluster.ask<HeldPartition>(`
    SELECT p.id, split_part(f.name, ' ', 2) AS url,
      applied_realtime > loaded_realtime OR applied_historical > loaded_historical AS "isOpen"
    FROM flagkeep.partition p JOIN flagkeep.loader l ON l.id = p.holder JOIN flagkeep.front f ON f.id = l.node
    ORDER BY p.id`);

const oneOf = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!;

/** A node with an open batch. */
async function findLoader(cluster: TestCluster): Promise<number> {
  return await until(async () => {
    const urls = (await getPartitions(cluster)).filter(({ isOpen }) => isOpen).map(({ url }) => url);
    return [...cluster.running].find(([, node]) => urls.includes(node.url))?.[0];
  }, "a node has an open batch");
}

/** Every partition is held by a node that runs, none of those by others. */
async function allAreHeld(cluster: TestCluster): Promise<void> {
  await until(
    async () => {
      const urls = cluster.nodes.map(({ url }) => url);
      const held = await getPartitions(cluster);
      return held.length === 64 && held.every(({ url }) => urls.includes(url));
    },
    "running nodes hold all partitions",
    takeoverMs,
  );
}

/** Waits until an insert is held before or after it is done. @returns the number of its node */
async function holdInsert(cluster: TestCluster, moment: "before" | "after"): Promise<number> {
  const { clickhouse } = cluster;
  await clickhouse.holdInsert(moment);
  return await until(async () => {
    const { isHolding, heldName } = await clickhouse.inserts();
    if (!isHolding || heldName === null) return undefined;
    // Names of inserts contain the engine's id.
    const [row] = await cluster.ask<{ url: string }>(
      `SELECT split_part(f.name, ' ', 2) AS url FROM flagkeep.loader l JOIN flagkeep.front f ON f.id = l.node
      WHERE position(l.id::text IN '${heldName}') > 0`,
    );
    return [...cluster.running].find(([, { url }]) => url === row?.url)?.[0];
  }, "an insert is held");
}

/** Waits until a node wants a partition of another one. */
async function untilWanted(cluster: TestCluster): Promise<void> {
  await until(
    async () => {
      const rows = await cluster.ask("SELECT 1 FROM flagkeep.partition WHERE wanted IS NOT NULL LIMIT 1");
      return rows.length > 0;
    },
    "partitions move",
    takeoverMs,
  );
}

/** Stops a node in order and starts it, so that it requests partitions. */
async function rejoin(cluster: TestCluster): Promise<ServerProcess> {
  const number = oneOf([...cluster.running.keys()]);
  const node = cluster.running.get(number)!;
  cluster.running.delete(number);
  await node.stop();
  await allAreHeld(cluster);
  return await cluster.startNode(number);
}

const faults: Record<string, (cluster: TestCluster, load: ClusterLoad) => Promise<void>> = {
  "a loader dies with an open batch": async (cluster) => {
    await cluster.restart(await findLoader(cluster));
  },
  "a loader dies before its insert, which arrives after the takeover": async (cluster, load) => {
    const number = await holdInsert(cluster, "before");
    await cluster.killWithEngine(number);
    await allAreHeld(cluster);
    await cluster.clickhouse.release();
    await load.further(200);
    await cluster.startNode(number);
  },
  "a loader dies when its insert is done": async (cluster) => {
    await cluster.restart(await holdInsert(cluster, "after"));
    await cluster.clickhouse.release();
  },
  "a loader is suspended during its insert, which arrives after the takeover": async (cluster, load) => {
    const resume = await cluster.suspend(await holdInsert(cluster, oneOf(["before", "after"])));
    await allAreHeld(cluster);
    await cluster.clickhouse.release();
    await load.further(200);
    resume();
  },
  "a node is suspended for a random time": async (cluster) => {
    const resume = await cluster.suspend(oneOf([...cluster.running.keys()]));
    await Bun.sleep(random() * suspendedMsMax);
    resume();
  },
  "an engine alone is suspended until others hold its partitions": async (cluster) => {
    const node = oneOf(cluster.nodes);
    const [pid] = await node.enginePids();
    if (pid === undefined) return;
    process.kill(pid, "SIGSTOP");
    await until(
      async () => (await getPartitions(cluster)).every(({ url }) => url !== node.url),
      "its partitions are released",
      takeoverMs,
    );
    // Its server may have ended it meanwhile.
    if ((await node.enginePids()).includes(pid)) process.kill(pid, "SIGCONT");
  },
  "the primary dies, and the standby is promoted": async (cluster, load) => {
    await cluster.failOver();
    await load.further(200);
  },
  "the standby is promoted while partitions move": async (cluster, load) => {
    await rejoin(cluster);
    await untilWanted(cluster);
    await cluster.failOver();
    await load.further(200);
  },
  "the primary dies and comes back": async (cluster, load) => {
    await cluster.postgres.kill();
    await Bun.sleep(random() * 1_000);
    await cluster.postgres.restart();
    await load.further(200);
  },
  "PostgreSQL is suspended for a random time": async (cluster, load) => {
    cluster.postgres.hang();
    await Bun.sleep(random() * suspendedMsMax);
    cluster.postgres.wake();
    await load.further(200);
  },
  "ClickHouse dies after an insert": crashClickHouse,
  "ClickHouse stalls, rejects inserts or cuts connections": async (cluster, load) => {
    const kind = oneOf([
      "stall-before-insert",
      "stall-after-insert",
      "refuse-insert",
      "cut-before-insert",
      "cut-after-insert",
    ] as const);
    await cluster.clickhouse.breakNext(kind, stallsMax);
    await load.further(300);
    await cluster.clickhouse.release();
  },
  "a node stops in order during an insert, and joins again": async (cluster) => {
    await cluster.clickhouse.breakNext("stall-before-insert", stallsMax);
    await rejoin(cluster);
    await cluster.clickhouse.release();
  },
  "a node dies while partitions move": async (cluster) => {
    await rejoin(cluster);
    await untilWanted(cluster);
    await cluster.restart(oneOf([...cluster.running.keys()]));
  },
  "loading is paused and resumed": async (cluster, load) => {
    await cluster.command("pause-loading", "--for", "10m");
    await load.further(200);
    await cluster.command("resume");
  },
  "all nodes die": async (cluster) => {
    const numbers = [...cluster.running.keys()];
    await Promise.all(numbers.map((number) => cluster.killWithEngine(number)));
    await Promise.all(numbers.map((number) => cluster.startNode(number)));
  },
};

/** What tells where events are stuck. */
async function describeState(cluster: TestCluster): Promise<string> {
  const statements = [
    "SELECT lane, first_seq::text, entries FROM flagkeep.journal ORDER BY lane, first_seq LIMIT 3",
    "SELECT * FROM flagkeep.partition WHERE id <= 6 OR holder IS NULL OR wanted IS NOT NULL ORDER BY id LIMIT 10",
    "SELECT *, clock_timestamp() AS now FROM flagkeep.loader",
  ];
  const rows = await Promise.all(statements.map((statement) => cluster.ask(statement).catch(String)));
  const nodes = cluster.nodes.map(({ url, logs }) => ({ url, logs: logs.slice(-loggedLinesMax) }));
  return JSON.stringify({ rows, nodes, inserts: await cluster.clickhouse.inserts().catch(String) });
}

/** All faults in random order, again and again. */
function* randomFaults() {
  const choose = mulberry32(seed);
  for (;;) {
    const left = Object.entries(faults);
    while (left.length > 0) yield left.splice(Math.floor(choose() * left.length), 1)[0]!;
  }
}

test(
  `everything acknowledged is stored once and counted after ${rounds} random faults (seed ${seed})`,
  async () => {
    await using cluster = await TestCluster.start(nodeCount, { standby: true, args });
    const tokens = await cluster.createProjects(projects);
    await stopMerges(cluster);
    const load = new ClusterLoad(cluster, mulberry32(seed), { senders: projects, historical: 3, tokens });
    const order = randomFaults();
    const done: string[] = [];
    try {
      for (let round = 0; round < rounds; round++) {
        const [name, fault] = order.next().value!;
        done.push(name);
        await load.further(50 + Math.floor(random() * 300));
        await allAreHeld(cluster);
        await fault(cluster, load);
      }
      await load.further(200);
      await allAreHeld(cluster);
      await load.stop();
      await expectAllOnce(cluster, load.log);
    } catch (error) {
      const after = done.map((name) => `“${name}”`).join(", ");
      throw new Error(`After ${after}: ${error}\n${await describeState(cluster)}`, { cause: error });
    }
  },
  rounds * 60_000 + 120_000,
);
