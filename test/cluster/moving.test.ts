/** A data directory becomes that of a node and comes back, and commands work for all nodes, as an operator does it. */

import { Database } from "bun:sqlite";
import { expect } from "bun:test";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { paths } from "../../src/paths.ts";
import { TestCluster, testWithCluster } from "../support/cluster.ts";
import { flagkeep, initializedDirectory, ServerProcess, temporaryFolder } from "../support/server.ts";

const test = testWithCluster("moving to several nodes");
const flagsPath = "/api/projects/1/feature_flags/";

/** Copies the persons of an earlier copy of a replica into it. */
function putPersonsBack(path: string, before: string): void {
  using earlier = new Database(before);
  using file = new Database(path);
  for (const table of ["person", "distinct_id"]) {
    const rows = earlier.query(`SELECT * FROM ${table}`).values() as string[][];
    for (const row of rows) file.run(`INSERT INTO ${table} VALUES (${row.map(() => "?").join(", ")})`, row);
    expect(rows.length).toBeGreaterThan(0);
  }
  file.run("DELETE FROM copy_changed");
}

test.each([
  ["replica", "single"],
  ["rows", "single"],
  ["rows", "partitions"],
])(
  "a data directory is migrated to %s with loading %s, served by nodes, and migrated back",
  async (layout, loading) => {
    await using cluster = await TestCluster.prepare();
    const directory = await initializedDirectory();
    const { dataDir } = directory;
    const layouts = ["--cluster-persons", layout, "--cluster-loading", loading];
    const to = ["migrate-to", "--data-dir", dataDir, ...cluster.settings, ...layouts];
    await using alone = await ServerProcess.start({ directory });
    const created = await alone.api(flagsPath, {
      method: "POST",
      body: { key: "kept", active: true },
    });
    expect(created.status).toBe(201);
    for (let batch = 0; batch < 3; batch++) {
      const events = Array.from({ length: 300 }, (_, index) => ({
        event: "moved",
        uuid: Bun.randomUUIDv7(),
        distinct_id: `u${batch}.${index}`,
        properties: { $set: { text: `ü\u2028"\\ ${index}` }, number: batch * 300 + index },
      }));
      expect((await alone.batch(events)).status).toBe(200);
    }
    const whileRunning = await flagkeep(to);
    expect([whileRunning.code, whileRunning.stderr]).toEqual([1, expect.stringContaining("in use")]);
    await alone.stop();
    const { people } = paths(dataDir);
    const before = join(temporaryFolder(), "people.sqlite");
    copyFileSync(people, before);

    const own = await flagkeep(["serve", "--port", "0", "--data-dir", dataDir, ...cluster.settings]);
    expect([own.code, own.stderr]).toEqual([1, expect.stringContaining("migrate-to")]);
    const imported = await flagkeep([...to, "--json"]);
    expect(imported.stderr).not.toContain("flagkeep:");
    expect(JSON.parse(imported.stdout)).toEqual({
      metadata_rows: expect.any(Number),
      people_rows: expect.any(Number),
    });
    const again = await flagkeep(to);
    expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("belongs to a cluster node")]);
    // Two directories cannot be taken over into one.
    const another = await initializedDirectory();
    const second = await flagkeep(["migrate-to", "--data-dir", another.dataDir, ...cluster.settings]);
    expect(second.code).toBe(1);

    // A migration that was interrupted when everything was copied has not deleted the persons.
    if (layout === "rows") putPersonsBack(people, before);

    {
      const args = cluster.settings;
      await using node = await ServerProcess.start({ directory, args });
      await using fresh = await ServerProcess.start({
        directory: { dataDir: join(temporaryFolder(), "data"), initialized: directory.initialized },
        args,
      });
      for (const each of [node, fresh]) {
        const { results } = (await (await each.api(flagsPath)).json()) as { results: { key: string }[] };
        expect(results.map(({ key }) => key)).toEqual(["kept"]);
        expect(await each.eventsWhenStored(900, "event=moved")).toHaveLength(900);
        const person = await each.api("/api/projects/1/persons/?distinct_id=u2.299");
        expect(await person.json()).toMatchObject({ results: [{ properties: { text: 'ü\u2028"\\ 299' } }] });
      }
      expect((await fresh.capture({ event: "later", distinct_id: "u0.0" })).status).toBe(200);
      await cluster.everythingIsLoaded();
      const back = ["migrate-from", "--data-dir", join(temporaryFolder(), "back"), ...cluster.settings];
      const early = await flagkeep(back);
      expect([early.code, early.stderr]).toEqual([1, expect.stringContaining("is running")]);
      await Promise.all([node.stop(), fresh.stop()]);
      using file = new Database(people, { readonly: true });
      const count = file.query<{ count: number }, []>("SELECT count(*) AS count FROM person").get()!.count;
      expect(count > 0).toBe(layout === "replica");
    }
    const back = join(temporaryFolder(), "back");
    const brought = await flagkeep(["migrate-from", "--data-dir", back, ...cluster.settings]);
    expect(brought).toMatchObject({ code: 0, stderr: "" });
    // Two that load into one ClickHouse would give the same numbers to different events.
    const late = join(temporaryFolder(), "late");
    const one = await flagkeep(["serve", "--port", "0", "--data-dir", late, ...cluster.settings]);
    expect([one.code, one.stderr]).toEqual([1, expect.stringContaining(`data directory ${back}, 20`)]);
    const eventsUrl = cluster.settings.slice(cluster.settings.indexOf("--events-url"));
    await using single = await ServerProcess.start({
      directory: { dataDir: back, initialized: directory.initialized },
      args: eventsUrl,
    });
    expect(await single.eventsWhenStored(901)).toHaveLength(901);
    expect((await single.capture({ event: "last", distinct_id: "u0.0" })).status).toBe(200);
    expect(await single.eventsWhenStored(902)).toHaveLength(902);
  },
  120_000,
);

test("commands work for all nodes by the address of PostgreSQL, and not on a node's directory alone", async () => {
  await using cluster = await TestCluster.start(2);
  const [one, other] = cluster.nodes as [ServerProcess, ServerProcess];
  const key = await flagkeep([
    "keys",
    "create",
    "--label",
    "mine",
    "--scope",
    "*",
    "--json",
    ...cluster.settings.slice(0, 2),
  ]);
  const { value } = JSON.parse(key.stdout) as { value: string };
  for (const node of [one, other]) {
    const answer = await fetch(`${node.url}${flagsPath}`, { headers: { Authorization: `Bearer ${value}` } });
    expect(answer.status).toBe(200);
  }
  expect((await one.api(flagsPath, { method: "POST", body: { key: "a", active: true } })).status).toBe(201);
  const env = { FLAGKEEP_POSTGRES_URL: cluster.postgresUrl };
  expect((await flagkeep(["flags", "disable", "a"], env)).code).toBe(0);
  const flags = (await (await other.api(flagsPath)).json()) as { results: { active: boolean }[] };
  expect(flags.results[0]!.active).toBe(false);
  const failed = await flagkeep(["flags", "disable", "nope"], env);
  expect([failed.code, failed.stdout]).toEqual([1, ""]);

  // Where the console is, only a node knows.
  const link = ["users", "link", "new@example.com", "--json"];
  const nowhere = await flagkeep(link, env);
  expect([nowhere.code, nowhere.stderr]).toEqual([1, expect.stringContaining("--public-url")]);
  for (const [more, base] of [
    [["--data-dir", other.dataDir], other.url],
    [["--public-url", "https://flags.example.com"], "https://flags.example.com"],
  ] as const) {
    const created = await flagkeep([...link, ...more], env);
    expect(JSON.parse(created.stdout)).toMatchObject({
      console_url: expect.stringMatching(new RegExp(`^${base.replaceAll(".", "\\.")}/`)),
    });
  }

  const alone = await flagkeep(["keys", "list", "--data-dir", one.dataDir]);
  expect([alone.code, alone.stderr]).toEqual([1, expect.stringContaining("--postgres-url")]);
  const backup = await flagkeep(["backup", "create", "--data-dir", one.dataDir]);
  expect([backup.code, backup.stderr]).toEqual([1, expect.stringContaining("docs/operations/cluster.md")]);
  const asked = await one.api("/api/instance/doctor/", { key: value });
  expect(await asked.text()).toContain("2 nodes run");
  const doctor = await flagkeep(["doctor", "--json", "--data-dir", one.dataDir, ...cluster.settings]);
  const { findings } = JSON.parse(doctor.stdout) as {
    findings: { check: string; level: string; message: string }[];
  };
  expect(findings.filter(({ check }) => check === "fronts")).toEqual([
    expect.objectContaining({ level: "ok", message: expect.stringContaining("PostgreSQL 1") }),
    expect.objectContaining({ level: "warning", message: expect.stringContaining("no synchronous standby") }),
    expect.objectContaining({ level: "ok", message: expect.stringContaining("2 nodes run") }),
  ]);
}, 120_000);

test("commands for all nodes know the types of groups, and persons where a node has them", async () => {
  await using cluster = await TestCluster.start(1);
  const node = cluster.running.get(0)!;
  for (const type of ["organization", "company"]) {
    const properties = { $group_type: type, $group_key: "acme", $group_set: {} };
    expect((await node.capture({ event: "$groupidentify", distinct_id: "kim", properties })).status).toBe(
      200,
    );
  }
  const $set = { plan: "pro" };
  expect((await node.capture({ event: "seen", distinct_id: "kim", properties: { $set } })).status).toBe(200);
  await cluster.everythingIsLoaded();
  const isPro = { key: "plan", value: ["pro"], operator: "exact", type: "person" };
  for (const body of [
    {
      key: "for-companies",
      filters: { aggregation_group_type_index: 1, groups: [{ properties: [], rollout_percentage: 100 }] },
    },
    { key: "for-pro", filters: { groups: [{ properties: [isPro], rollout_percentage: 100 }] } },
  ])
    expect((await node.api(flagsPath, { method: "POST", body })).status).toBe(201);
  const env = { FLAGKEEP_POSTGRES_URL: cluster.postgresUrl };
  const exported = await flagkeep(["flags", "export", "--json"], env);
  expect(exported.stderr).toBe("");
  const document = JSON.parse(exported.stdout) as { group_types: object; flags: { key: string }[] };
  expect(document.group_types).toEqual({ "1": "company" });
  // From another server, where companies have another number.
  const file = join(temporaryFolder(), "flags.json");
  const flags = JSON.stringify(document.flags.filter(({ key }) => key === "for-companies"))
    .replace("for-companies", "moved")
    .replaceAll('"aggregation_group_type_index":1', '"aggregation_group_type_index":0');
  await Bun.write(
    file,
    JSON.stringify({ ...document, group_types: { "0": "company" }, flags: JSON.parse(flags) }),
  );
  const imported = await flagkeep(["flags", "import", file], env);
  expect([imported.code, imported.stderr]).toEqual([0, ""]);
  const { results } = (await (await node.api(`${flagsPath}?search=moved`)).json()) as {
    results: { filters: object }[];
  };
  expect(results[0]!.filters).toMatchObject({ aggregation_group_type_index: 1 });

  const explain = ["flags", "explain", "for-pro", "--distinct-id", "kim", "--json"];
  const away = await flagkeep([...explain, "--data-dir", join(temporaryFolder(), "none")], env);
  expect([away.code, away.stderr]).toEqual([1, expect.stringContaining("on a node with its --data-dir")]);
  const here = [...explain, "--data-dir", node.dataDir];
  for (const explained of [await flagkeep(here, env), await flagkeep(here)])
    expect([explained.stderr, JSON.parse(explained.stdout)]).toEqual([
      "",
      expect.objectContaining({ value: true }),
    ]);
}, 120_000);
