import { expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { flagkeep, TestAppliance, temporaryFolder } from "../support/appliance.ts";

test("events, persons, groups and flags come out, from a running and from a stopped appliance", async () => {
  await using appliance = await TestAppliance.start();
  const { dataDir } = appliance;
  const folder = temporaryFolder();
  await appliance.batch([
    {
      event: "a",
      distinct_id: "x",
      timestamp: "2026-01-01T00:00:00Z",
      properties: { n: 1, $set: { p: true } },
    },
    { event: "b", distinct_id: "x", timestamp: "2026-01-02T00:00:00Z", properties: { t: 'q"u,o' } },
    {
      event: "$groupidentify",
      distinct_id: "x",
      properties: { $group_type: "company", $group_key: "acme", $group_set: { size: 3 } },
    },
  ]);
  const stored = await appliance.eventsWhenStored(3);
  const flag = await appliance.api(`/api/projects/${appliance.made.project.id}/feature_flags/`, {
    method: "POST",
    body: { key: "new", name: "New", filters: { groups: [{ properties: [], rollout_percentage: 50 }] } },
  });
  expect(await flag.json()).toMatchObject({ key: "new" });
  const run = async (...args: string[]) => {
    const { stdout, stderr, code } = await flagkeep([
      "export",
      ...args,
      "--project",
      "1",
      "--data-dir",
      dataDir,
    ]);
    if (code !== 0) throw new Error(stderr);
    return stdout;
  };
  const lines = (text: string) =>
    text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  for (const state of ["running", "stopped"]) {
    if (state === "stopped") await appliance.stop();
    const events = lines(await run("events"));
    expect(events.map(({ uuid }) => uuid)).toEqual(stored.map(({ uuid }) => uuid));
    expect(events[0]).toMatchObject({
      event: "a",
      distinct_id: "x",
      timestamp: "2026-01-01T00:00:00.000000Z",
      historical: false,
    });
    expect(events[1].properties).toEqual(stored[1]!.properties);
    expect(lines(await run("events", "--from", "2026-01-02", "--to", "2026-01-03"))).toHaveLength(1);
    expect(lines(await run("persons"))[0]).toMatchObject({ distinct_ids: ["x"], properties: { p: true } });
    expect(lines(await run("groups"))[0]).toMatchObject({
      type: "company",
      key: "acme",
      properties: { size: 3 },
    });
    expect(lines(await run("flags")).map(({ key }) => key)).toContain("new");
    expect(await run("events", "--format", "csv")).toContain('""t"":""q\\""u,o""');
    for (const subject of ["events", "persons", "groups"]) {
      const file = join(folder, `${state}-${subject}.parquet`);
      const answer = await run(subject, "--format", "parquet", file, "--json");
      expect(JSON.parse(answer)).toEqual({ rows: subject === "events" ? 3 : 1, file });
      expect(await Bun.file(file).slice(0, 4).text()).toBe("PAR1");
    }
  }
  rmSync(folder, { recursive: true });
}, 60_000);
