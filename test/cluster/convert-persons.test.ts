/** `flagkeep cluster convert-persons` resumes after a kill, and preserves all persons in both directions. */

import { expect } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { SQL } from "bun";
import { Postgres } from "../../src/cluster/connection.ts";
import { parsePostgresUrl } from "../../src/lib/store-urls.ts";
import { paths } from "../../src/paths.ts";
import { openPersons } from "../../src/persons/open.ts";
import type { PersonReader } from "../../src/persons/person-reader.ts";
import { PostgresPersonReader } from "../../src/persons/postgres/reader.ts";
import { SqlitePersonReader } from "../../src/persons/sqlite-person-reader.ts";
import { TestCluster, testWithCluster } from "../support/cluster.ts";
import { executable, flagkeep, type ServerProcess, temporaryFolder, until } from "../support/server.ts";

const test = testWithCluster("converting persons");
const personCount = 3_000;

/** All data of persons, groups and members. */
async function dump(reader: PersonReader): Promise<unknown> {
  const persons = await reader.personPage(1, { limit: 100_000 });
  const ids = await reader.distinctIds(persons);
  const overrides = await reader.hashKeyOverrides(1, ["p1", "p2"]);
  return {
    persons: persons.map((person) => ({ ...person, ids: ids.get(person.id) })),
    members: (await reader.cohortMembers(1)).map(({ uuid }) => uuid),
    groups: await reader.groupPage(1, undefined, 100),
    overrides: [...overrides].map(([id, keys]) => [id, ...keys]),
  };
}

async function dumpRows(cluster: TestCluster): Promise<unknown> {
  const postgres = new Postgres(parsePostgresUrl(cluster.postgresUrl)!, { connections: 1, name: "test" });
  return await dump(new PostgresPersonReader(postgres)).finally(() => postgres.close());
}

async function dumpFile(dataDir: string): Promise<unknown> {
  const people = openPersons(paths(dataDir).people, { readonly: true });
  return await dump(new SqlitePersonReader(people)).finally(() => people.$client.close());
}

async function fill(node: ServerProcess): Promise<void> {
  const path = "/api/projects/1/cohorts/";
  const { id } = (await (
    await node.api(path, { method: "POST", body: { name: "Some", is_static: true } })
  ).json()) as { id: number };
  expect(id).toBe(1);
  const properties = (n: number) => ({ $set: { plan: "pro", n, text: `"\\ ключ ${n}` } });
  for (let from = 0; from < personCount; from += 1_000)
    await node.batch(
      Array.from({ length: 1_000 }, (_, n) => ({
        event: "seen",
        distinct_id: `p${from + n}`,
        properties: properties(from + n),
      })),
    );
  await node.batch([
    { event: "$identify", distinct_id: "p1", properties: { $anon_distinct_id: "anonymous" } },
    { event: "seen", distinct_id: "no person", properties: { $process_person_profile: false } },
    { event: "seen", distinct_id: "p5", properties: { $unset: ["n"] } },
    {
      event: "$groupidentify",
      distinct_id: "p1",
      properties: { $group_type: "company", $group_key: "acme", $group_set: { size: 5 } },
    },
  ]);
}

async function addMembers(node: ServerProcess): Promise<void> {
  const csv = new FormData();
  csv.append("csv", new Blob(["distinct_id\np1\np2\n"]), "some.csv");
  const headers = { Authorization: `Bearer ${node.directory.initialized.personal_api_key}` };
  const url = `${node.url}/api/projects/1/cohorts/1/`;
  expect((await fetch(url, { method: "PATCH", headers, body: csv })).status).toBe(200);
}

/** Waits until a statement waits for a lock. */
async function waitForLock(cluster: TestCluster): Promise<void> {
  const waiting = "SELECT count(*)::int AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
  await until(async () => (await cluster.ask<{ n: number }>(waiting))[0]!.n > 0, "the statement waits");
}

/** Kills a conversion that waits for a table's lock, acquired before it starts or when some of its work is done. */
async function killWaiting(
  cluster: TestCluster,
  args: string[],
  { before = "", lock, isReached }: { before?: string; lock?: string; isReached: () => Promise<boolean> },
): Promise<void> {
  const sql = new SQL(cluster.postgresUrl, { max: 1 });
  const blocker = await sql.reserve();
  await blocker.unsafe(`BEGIN; ${before}`);
  const run = Bun.spawn([executable, ...args], { stderr: "ignore", stdout: "ignore" });
  await until(isReached, "a part is converted");
  if (lock !== undefined) await blocker.unsafe(lock);
  await waitForLock(cluster);
  run.kill("SIGKILL");
  await run.exited;
  await cluster.ask(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'flagkeep%' OR wait_event_type = 'Lock'",
  );
  await blocker.unsafe("ROLLBACK");
  blocker.release();
  await sql.close();
}

test("a killed conversion resumes and preserves all persons, to rows and back", async () => {
  await using cluster = await TestCluster.start(1);
  const node = cluster.nodes[0]!;
  const { dataDir } = node;
  await fill(node);
  await cluster.everythingIsLoaded();
  await addMembers(node);
  await cluster.everythingIsLoaded();
  const command = (to: string, folder: string) => [
    "cluster",
    "convert-persons",
    "--to",
    to,
    "--json",
    "--data-dir",
    folder,
    "--postgres-url",
    cluster.postgresUrl,
  ];
  const other = join(temporaryFolder(), "other");
  const whileRunning = await flagkeep(command("rows", other));
  expect([whileRunning.code, whileRunning.stderr]).toEqual([1, expect.stringContaining("A node is running")]);

  await node.stop();
  const before = await dumpFile(dataDir);
  expect(before).toMatchObject({ members: [expect.any(String), expect.any(String)] });
  const rows = async () =>
    (
      await cluster.ask("SELECT count(*)::int AS n, sum(xmin::text::bigint)::text AS by FROM flagkeep.person")
    )[0];
  await killWaiting(cluster, command("rows", dataDir), {
    before: "LOCK TABLE flagkeep.distinct_id IN ACCESS SHARE MODE",
    isReached: async () => (await rows())!.n === personCount,
  });
  const copied = await rows();
  const start = await flagkeep(["serve", "--port", "0", "--data-dir", dataDir, ...cluster.settings]);
  expect([start.code, start.stderr]).toEqual([1, expect.stringContaining("convert-persons --to rows")]);
  const opposite = await flagkeep(command("replica", dataDir));
  expect([opposite.code, opposite.stderr]).toEqual([1, expect.stringContaining("has not finished")]);

  const done = await flagkeep(command("rows", dataDir));
  expect([done.stderr, done.stdout]).toEqual(["", expect.stringContaining('"is_changed":true')]);
  expect(await rows()).toEqual(copied);
  expect(await dumpRows(cluster)).toEqual(before);
  const again = await flagkeep(command("rows", dataDir));
  expect(again.stdout).toContain('"is_changed":false');
  const [left] = await cluster.ask("SELECT count(*)::int AS n FROM flagkeep.row WHERE tbl = 'person'");
  expect(left!.n).toBe(0);
  const wrong = ["--cluster-persons", "replica"];
  const rejected = await flagkeep([
    "serve",
    "--port",
    "0",
    "--data-dir",
    dataDir,
    ...cluster.settings,
    ...wrong,
  ]);
  expect(rejected.stderr).toContain("cluster convert-persons --to replica");

  // The node works with rows, and its persons change.
  const withRows = await cluster.startNode(0);
  await withRows.batch([{ event: "seen", distinct_id: "p7", properties: { $set: { plan: "changed" } } }]);
  await cluster.everythingIsLoaded();
  await withRows.stop();
  const changed = await dumpRows(cluster);
  expect(JSON.stringify(changed)).toContain('"plan":"changed"');
  const sent = async () =>
    (
      await cluster.ask(
        "SELECT count(*)::int AS n, min(revision)::int AS first FROM flagkeep.row WHERE tbl = 'distinct_id'",
      )
    )[0] as { n: number; first: number };
  await killWaiting(cluster, command("replica", other), {
    lock: "LOCK TABLE flagkeep.row IN SHARE MODE",
    isReached: async () => (await sent()).n > 0,
  });
  const { n, first } = await sent();
  expect(n).toBeLessThan(personCount);
  const back = await flagkeep(command("replica", other));
  expect([back.stderr, back.stdout]).toEqual(["", expect.stringContaining('"is_changed":true')]);
  expect((await sent()).first).toBe(first);
  expect(existsSync(paths(other).peopleConversion)).toBe(false);
  const withReplica = await cluster.startNode(0);
  expect(await dumpFile(dataDir)).toEqual(changed);
  await withReplica.batch([{ event: "seen", distinct_id: "p8", properties: { $set: { plan: "last" } } }]);
  await cluster.everythingIsLoaded();
  await until(
    async () => JSON.stringify(await dumpFile(dataDir)).includes('"plan":"last"'),
    "the replica has the change",
  );
}, 180_000);

test("a node exits if persons are converted while it starts or is suspended", async () => {
  await using cluster = await TestCluster.start(1);
  const node = cluster.nodes[0]!;
  // As when a suspended node resumes.
  await cluster.ask("UPDATE flagkeep.layout SET persons = 'rows'");
  expect(await node.process.exited).toBe(1);
  await cluster.ask("UPDATE flagkeep.layout SET persons = 'replica'");
  const serve = ["serve", "--port", "0", "--data-dir", node.dataDir, ...cluster.settings];
  for (const [change, reason] of [
    ["UPDATE flagkeep.layout SET persons = 'rows'", "Start the node again"],
    [
      `INSERT INTO flagkeep.secret VALUES ('persons conversion', '{"to":"rows"}')`,
      "convert-persons --to rows",
    ],
  ] as const) {
    const sql = new SQL(cluster.postgresUrl, { max: 1 });
    const conversion = await sql.reserve();
    await conversion.unsafe("BEGIN; LOCK TABLE flagkeep.secret IN SHARE MODE");
    const start = flagkeep(serve);
    await waitForLock(cluster);
    // The node has not sent a heartbeat yet, and has found no conversion.
    await conversion.unsafe(change);
    await conversion.unsafe("COMMIT");
    conversion.release();
    await sql.close();
    const { code, stderr, stdout } = await start;
    expect([code, stderr]).toEqual([1, expect.stringContaining(reason)]);
    expect(stdout).not.toContain("listening");
    await cluster.ask("UPDATE flagkeep.layout SET persons = 'replica'");
  }
}, 60_000);
