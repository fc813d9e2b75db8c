/** A cluster whose persons are rows in PostgreSQL: nodes read them when they need them. */

import { expect } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { paths } from "../../src/paths.ts";
import { TestCluster, testWithCluster } from "../support/cluster.ts";
import { flagkeep, type ServerProcess, temporaryFolder, until } from "../support/server.ts";
import { expectWithin } from "../support/times.ts";

const test = testWithCluster("persons as rows");
const args = ["--cluster-persons", "rows"];
const flagsPath = "/api/projects/1/feature_flags/";

const set = (distinctId: string, properties: object) => ({
  event: "seen",
  distinct_id: distinctId,
  properties: { $set: properties },
});

async function createFlag(node: ServerProcess, property: object): Promise<void> {
  const filters = { groups: [{ properties: [property], rollout_percentage: 100 }] };
  const body = { key: "pros", active: true, filters };
  expect((await node.api(flagsPath, { method: "POST", body })).status).toBe(201);
}

async function isOn(node: ServerProcess, distinctId: string): Promise<boolean | undefined> {
  const answer = await node.post("/flags/?v=2", { api_key: node.token, distinct_id: distinctId });
  const { flags } = (await answer.json()) as { flags: Record<string, { enabled: boolean }> };
  return flags.pros?.enabled;
}

type CacheMetric = "hits_total" | "misses_total" | "bytes" | "feed_age_seconds";

async function cacheMetrics(node: ServerProcess): Promise<Record<CacheMetric, number>> {
  const text = await (await fetch(`${node.url}/metrics`)).text();
  const found = [...text.matchAll(/^flagkeep_person_cache_(\S+) (.*)$/gm)];
  return Object.fromEntries(found.map(([, name, value]) => [name, Number(value)])) as never;
}

/** The first read of changes clears the cache. */
async function untilFollowed(node: ServerProcess): Promise<void> {
  let age = 0;
  const hasRead = async () => {
    const before = age;
    age = (await cacheMetrics(node)).feed_age_seconds;
    return age < before;
  };
  await until(hasRead, "the node has read what changed");
}

const isPro = { key: "plan", type: "person", value: "pro", operator: "exact" };

test("a node that is new answers for persons without copying them", async () => {
  await using cluster = await TestCluster.start(1, { args });
  const [node] = cluster.nodes;
  await createFlag(node!, isPro);
  const count = 100_000;
  await cluster.ask(`
    INSERT INTO flagkeep.person (id, project_id, uuid, version, main_distinct_id, is_main_alias, is_identified, joined_count,
      created_at, properties, property_times)
    SELECT 1000000 + n, 1, gen_random_uuid(), 0, 'many-' || n, false, true, 1, 1, '{"plan":"pro"}', '' FROM generate_series(1, ${count}) AS n`);
  await cluster.ask(`
    INSERT INTO flagkeep.distinct_id (project_id, id_hash, distinct_id, person_id, joined)
    SELECT 1, substr(encode(sha256(('many-' || n)::bytea), 'hex'), 1, 32)::uuid, 'many-' || n, 1000000 + n, 0
    FROM generate_series(1, ${count}) AS n`);
  const other = await cluster.startNode(1);
  await untilFollowed(other);
  expect(await isOn(other, `many-${count}`)).toBe(true);
  expect(await isOn(other, "someone")).toBe(false);
  await isOn(other, "someone");
  expect(await cacheMetrics(other)).toEqual({
    hits_total: 1,
    misses_total: 2,
    bytes: expect.any(Number),
    feed_age_seconds: expect.any(Number),
  });
  const status = JSON.parse((await flagkeep(["status", "--json", "--data-dir", other.dataDir])).stdout);
  expect(status.shared.person_cache).toMatchObject({ entries: 2, bytes_max: 64 << 20, hits: 1, misses: 2 });
  expect(await cluster.command("status")).toContain("Persons     in PostgreSQL only");
  const explain = (dataDir: string, env = {}) =>
    flagkeep(["flags", "explain", "pros", "--distinct-id", "many-1", "--json", "--data-dir", dataDir], env);
  for (const dataDir of [other.dataDir, join(temporaryFolder(), "none")]) {
    const explained = await explain(dataDir, { FLAGKEEP_POSTGRES_URL: cluster.postgresUrl });
    expect([explained.stderr, JSON.parse(explained.stdout)]).toEqual([
      "",
      expect.objectContaining({ value: true }),
    ]);
  }
  expect((await explain(other.dataDir)).stderr).toContain("Set --postgres-url");
  const { people } = paths(other.dataDir);
  expect(existsSync(people) && statSync(people).size).toBeLessThan(2_000_000);
}, 120_000);

test("what a cached person has is as new on all nodes", async () => {
  await using cluster = await TestCluster.start(2, { args });
  await createFlag(cluster.nodes[0]!, isPro);
  const on = (wanted: boolean, distinctId: string) =>
    Promise.all(
      cluster.nodes.map((node) =>
        until(
          async () => (await isOn(node, distinctId)) === wanted,
          `the flag of ${distinctId} is ${wanted}`,
          5_000,
        ),
      ),
    );
  await on(false, "ann");
  // An ID without a person gets one, whose value changes, and is merged into another one.
  await cluster.nodes[0]!.batch([set("ann", { plan: "pro" })]);
  await on(true, "ann");
  await cluster.nodes[1]!.batch([set("ann", { plan: "free" })]);
  await on(false, "ann");
  await cluster.nodes[1]!.batch([
    set("kim", { plan: "pro" }),
    { event: "$identify", distinct_id: "kim", properties: { $anon_distinct_id: "ann" } },
  ]);
  await on(true, "ann");
  // Commands on the data directory of a node read them from PostgreSQL.
  const at = ["--json", "--data-dir", cluster.nodes[0]!.dataDir];
  const merged = { distinct_ids: expect.arrayContaining(["ann", "kim"]), properties: { plan: "pro" } };
  for (const [args, expected] of [
    [["persons", "list"], [merged]],
    [["persons", "get", "ann"], merged],
  ] as const) {
    const { stdout } = await flagkeep([...args, ...at], { FLAGKEEP_POSTGRES_URL: cluster.postgresUrl });
    expect(JSON.parse(stdout)).toMatchObject(expected);
    expect((await flagkeep([...args, ...at])).stderr).toContain("Set --postgres-url");
  }
}, 120_000);

test("members of a cohort are found on all nodes, and leave with their person", async () => {
  await using cluster = await TestCluster.start(2, { args });
  const [one, other] = cluster.nodes as [ServerProcess, ServerProcess];
  await one.batch([set("ann", { plan: "pro" }), set("kim", {})]);
  await cluster.everythingIsLoaded();
  const path = "/api/projects/1/cohorts/";
  const created = await one.api(path, { method: "POST", body: { name: "Some", is_static: true } });
  const { id } = (await created.json()) as { id: number };
  const csv = new FormData();
  csv.append("csv", new Blob(["distinct_id\nann\nkim\nnobody"]), "some.csv");
  const filled = await fetch(`${other.url}${path}${id}/`, {
    method: "PATCH",
    headers: { Authorization: `Bearer ${other.directory.initialized.personal_api_key}` },
    body: csv,
  });
  expect(filled.status).toBe(200);
  const count = async (node: ServerProcess) => {
    const answer = await node.api(`${path}${id}/persons/`);
    return ((await answer.json()) as { results: unknown[] }).results.length;
  };
  for (const node of [one, other]) await until(async () => (await count(node)) === 2, "both are members");
  await createFlag(one, { key: "id", type: "cohort", value: id });
  for (const node of [one, other]) await until(() => isOn(node, "kim"), "a member has the flag");
  const [person] = (
    (await (await one.api("/api/projects/1/persons/?distinct_id=kim")).json()) as {
      results: { uuid: string }[];
    }
  ).results;
  await one.api(`/api/projects/1/persons/${person!.uuid}/`, { method: "DELETE" });
  for (const node of [one, other]) {
    await until(async () => (await count(node)) === 1, "one is left");
    await until(async () => (await isOn(node, "kim")) === false, "the flag is off", 5_000);
  }
}, 120_000);

test("cached persons are used while PostgreSQL is unavailable, and flags without persons are evaluated", async () => {
  await using cluster = await TestCluster.start(1, { args });
  const [node] = cluster.nodes as [ServerProcess];
  await createFlag(node, isPro);
  await node.batch([set("ann", { plan: "pro" }), set("kim", { plan: "pro" })]);
  await until(() => isOn(node, "ann"), "the person is known");
  const before = await cacheMetrics(node);
  await cluster.postgres.kill();
  expect(await isOn(node, "ann")).toBe(true);
  let answer = new Response();
  await expectWithin(2_000, async () => {
    answer = await node.post("/flags/?v=2", { api_key: node.token, distinct_id: "kim" });
  });
  const body = (await answer.json()) as {
    flags: Record<string, object>;
    errorsWhileComputingFlags: boolean;
  };
  expect([answer.status, body.errorsWhileComputingFlags]).toEqual([200, true]);
  expect(body.flags.pros).toMatchObject({ failed: true, reason: { code: "database_error" } });
  const after = await cacheMetrics(node);
  expect([after.hits_total - before.hits_total, after.misses_total - before.misses_total]).toEqual([1, 1]);
  const hasWarning = async () => {
    const { warnings } = (await (await fetch(`${node.url}/_readiness`)).json()) as { warnings?: string[] };
    return warnings?.some((warning) => warning.startsWith("Changes of persons have not been read for 1"));
  };
  await until(hasWarning, "the missing feed is a warning", 20_000);
  expect((await cacheMetrics(node)).feed_age_seconds).toBeGreaterThanOrEqual(10);
  await cluster.postgres.restart();
  await until(() => isOn(node, "kim"), "the person is read");
  await until(async () => !(await hasWarning()), "the warning ends");
}, 120_000);

test("the way in which a cluster stores persons is not changed by a setting", async () => {
  await using cluster = await TestCluster.start(1, { args });
  const start = (layout: string) =>
    flagkeep([
      "serve",
      "--port",
      "0",
      "--data-dir",
      `${cluster.nodes[0]!.dataDir}-other`,
      ...cluster.settings,
      "--cluster-persons",
      layout,
    ]);
  const rejected = await start("replica");
  expect([rejected.code, rejected.stderr]).toEqual([1, expect.stringContaining('stores persons as "rows"')]);
}, 120_000);
