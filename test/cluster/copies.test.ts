/** The copies in a node's data directory are changed by one at a time: its front at the start, then its engine. */

import { expect } from "bun:test";
import { TestCluster, testWithCluster } from "../support/cluster.ts";
import { ClusterLoad, expectAllOnce, stopMerges } from "../support/cluster-load.ts";
import { mulberry32 } from "../support/crash-load.ts";
import { flagkeep, type ServerProcess, until } from "../support/server.ts";

const test = testWithCluster("the copies of nodes");

/** Changes whenever the file's triggers are created again, as by an update of the copy. */
const getVersion = (cluster: TestCluster, node: ServerProcess) =>
  cluster.askPersonsOf(node, "PRAGMA schema_version");

test("a second node on the same data directory is rejected before it changes anything", async () => {
  await using cluster = await TestCluster.start(1);
  await cluster.leader();
  const node = cluster.running.get(0)!;
  const before = getVersion(cluster, node);
  const second = await flagkeep(["serve", ...cluster.settings, "--port", "0", "--data-dir", node.dataDir]);
  expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining("is in use by another Flagkeep") });
  expect(getVersion(cluster, node)).toEqual(before);
}, 60_000);

test("a node that was killed alone is followed when its engine has ended, too", async () => {
  await using cluster = await TestCluster.start(1);
  await stopMerges(cluster);
  const load = new ClusterLoad(cluster, mulberry32(1));
  await load.further(300);
  const killed = cluster.running.get(0)!;
  const pids = await killed.enginePids();
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  await cluster.kill(0);
  const before = getVersion(cluster, killed);
  const lines: unknown[] = [];
  const starting = cluster.startNode(0, ({ msg }) => lines.push(msg));
  await until(() => lines.includes("waiting for the engine of the previous node to exit"), "the front waits");
  expect(getVersion(cluster, killed)).toEqual(before);
  for (const pid of pids) process.kill(pid, "SIGCONT");
  await starting;
  await load.further(300);
  await load.stop();
  await expectAllOnce(cluster, load.log);
}, 60_000);
