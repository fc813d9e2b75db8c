/** The recipe of docs/operations/cluster.md: PostgreSQL and ClickHouse, backed up while nobody loads, come back as one. */

import { expect } from "bun:test";
import { cpSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { TestClickHouse } from "../support/clickhouse.ts";
import { mulberry32 } from "../support/crash-load.ts";
import { TestFronts, testWithFronts } from "../support/fronts.ts";
import { expectAllOnce, FrontLoad, stopMerges } from "../support/fronts-load.ts";
import { ownFolder, runProgram, startPostgres } from "../support/postgres.ts";
import { flagkeep, temporaryFolder } from "../support/server.ts";

const test = testWithFronts("a backup of several fronts");
const page = readFileSync(join(import.meta.dir, "../../docs/operations/cluster.md"), "utf8");
/** The commands of the page. */
const [pause = "", goOn = ""] = [...page.matchAll(/^flagkeep (cluster .*?) --postgres-url "\$URL"/gm)].map(
  ([, command]) => command!,
);

async function runOn(fronts: TestFronts, command: string): Promise<void> {
  const { stderr, code } = await flagkeep([...command.split(" "), "--postgres-url", fronts.postgresUrl]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
}

test("a backup that is made under load holds each event of before once, and what waited is loaded", async () => {
  await using fronts = await TestFronts.start(2);
  await stopMerges(fronts);
  const load = new FrontLoad(fronts, mulberry32(7));
  await load.further(500);
  await runOn(fronts, pause);
  await load.further(500);
  const before = load.log.length;
  const [waiting] = await fronts.ask<{ count: number }>(
    "SELECT count(*)::int AS count FROM flagkeep.journal",
  );
  expect(waiting!.count).toBeGreaterThan(0);

  const folder = ownFolder();
  const dump = join(folder, "flagkeep.dump");
  await runProgram("pg_dump", ["-Fc", "-f", dump, fronts.postgres.url("flagkeep")]);
  await fronts.clickhouse.kill();
  const copy = join(temporaryFolder(), "clickhouse");
  cpSync(fronts.clickhouse.folder, copy, { recursive: true });
  await fronts.clickhouse.restart();
  await stopMerges(fronts);
  await runOn(fronts, goOn);
  await load.further(500);
  await load.stop();
  await expectAllOnce(fronts, load.log);

  const postgres = await startPostgres();
  await postgres.create("flagkeep");
  await runProgram("pg_restore", ["-d", postgres.url("flagkeep"), dump]);
  await using restored = TestFronts.over(postgres, await TestClickHouse.start(copy));
  // Nobody was to load when the backup was made.
  await runOn(restored, goOn);
  await restored.startFront(0);
  await stopMerges(restored);
  // What came later may have been taken already when the journal was read, or not.
  const known = load.log.map((sent, index) =>
    index < before ? sent : { ...sent, outcome: "unknown" as const },
  );
  await expectAllOnce(restored, known);
  rmSync(dirname(folder), { recursive: true, force: true });
}, 120_000);
