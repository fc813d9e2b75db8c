/** The recipe of docs/operations/cluster.md: PostgreSQL and ClickHouse, backed up while no one loads, come back as one. */

import { expect } from "bun:test";
import { cpSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { TestClickHouse } from "../support/clickhouse.ts";
import { TestCluster, testWithCluster } from "../support/cluster.ts";
import { ClusterLoad, expectAllOnce, stopMerges } from "../support/cluster-load.ts";
import { mulberry32 } from "../support/crash-load.ts";
import { ownFolder, runProgram, startPostgres } from "../support/postgres.ts";
import { flagkeep, temporaryFolder } from "../support/server.ts";

const test = testWithCluster("a backup of several nodes");
const page = readFileSync(join(import.meta.dir, "../../docs/operations/cluster.md"), "utf8");
/** The commands of the page. */
const [pause = "", goOn = ""] = [...page.matchAll(/^flagkeep (cluster .*?) --postgres-url "\$URL"/gm)].map(
  ([, command]) => command!,
);

async function runOn(cluster: TestCluster, command: string): Promise<void> {
  const { stderr, code } = await flagkeep([...command.split(" "), "--postgres-url", cluster.postgresUrl]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
}

test("a backup that is created under load holds each event of before once, and what waited is loaded", async () => {
  await using cluster = await TestCluster.start(2);
  await stopMerges(cluster);
  const load = new ClusterLoad(cluster, mulberry32(7));
  await load.further(500);
  await runOn(cluster, pause);
  await load.further(500);
  const before = load.log.length;
  const [waiting] = await cluster.ask<{ count: number }>(
    "SELECT count(*)::int AS count FROM flagkeep.journal",
  );
  expect(waiting!.count).toBeGreaterThan(0);

  const folder = ownFolder();
  const dump = join(folder, "flagkeep.dump");
  await runProgram("pg_dump", ["-Fc", "-f", dump, cluster.postgres.url("flagkeep")]);
  await cluster.clickhouse.kill();
  const copy = join(temporaryFolder(), "clickhouse");
  cpSync(cluster.clickhouse.folder, copy, { recursive: true });
  await cluster.clickhouse.restart();
  await stopMerges(cluster);
  await runOn(cluster, goOn);
  await load.further(500);
  await load.stop();
  await expectAllOnce(cluster, load.log);

  const postgres = await startPostgres();
  await postgres.create("flagkeep");
  await runProgram("pg_restore", ["-d", postgres.url("flagkeep"), dump]);
  await using restored = TestCluster.over(postgres, await TestClickHouse.start(copy));
  // No one was to load when the backup was created.
  await runOn(restored, goOn);
  await restored.startNode(0);
  await stopMerges(restored);
  // What came later may have been taken already when the journal was read, or not.
  const known = load.log.map((sent, index) =>
    index < before ? sent : { ...sent, outcome: "unknown" as const },
  );
  await expectAllOnce(restored, known);
  rmSync(dirname(folder), { recursive: true, force: true });
}, 120_000);
