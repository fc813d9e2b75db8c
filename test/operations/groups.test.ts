/** Commands of dashboards, insights, persons, usage, definitions, activity and imports, in a data directory and on a server. */

import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { flagkeep } from "../support/server.ts";
import { server, useServer } from "../support/use-server.ts";

useServer();
beforeAll(async () => {
  await server.batch([
    { event: "$identify", distinct_id: "kim", properties: { $set: { plan: "pro" } } },
    { event: "order paid", distinct_id: "kim" },
    { event: "order paid", distinct_id: "bob" },
  ]);
  await server.eventsWhenStored(3);
});

const local = () => ["--data-dir", server.dataDir];
const remote = () => ["--url", server.url, "--key", server.initialized.personal_api_key];
const places = [
  ["in a data directory", local],
  ["on a server", remote],
] as const;

async function json(args: string[], where: string[]): Promise<unknown> {
  const { stdout, stderr, code } = await flagkeep([...args, ...where, "--json"]);
  expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
  return JSON.parse(stdout);
}

describe.each(places)("%s", (place, where) => {
  const name = `Orders ${place}`;

  test("dashboards are created, shown and deleted", async () => {
    const created = (await json(["dashboards", "create", name], where())) as { id: number };
    expect(created).toMatchObject({ name, tiles: [] });
    expect(await json(["dashboards", "show", name], where())).toEqual(created as never);
    expect(await json(["dashboards", "delete", name], where())).toMatchObject({
      id: created.id,
      deleted: true,
    });
    expect((await flagkeep(["dashboards", "show", name, ...where()])).stderr).toContain("does not exist");
  });

  test("insights are created, shown and deleted", async () => {
    const query = '{"kind":"TrendsQuery","series":[{"kind":"EventsNode","event":"order paid"}]}';
    const { short_id: id } = (await json(["insights", "create", name, "--query", query], where())) as {
      short_id: string;
    };
    const shown = (await json(["insights", "show", id], where())) as { result: { count: number }[] | null };
    // Only a server has the events.
    expect(shown.result?.[0]?.count ?? null).toBe(where === local ? null : 2);
    expect(await json(["insights", "list", "--search", name], where())).toMatchObject([
      { name, short_id: id },
    ]);
    expect(await json(["insights", "delete", id], where())).toMatchObject({ short_id: id, deleted: true });
  });

  test("persons are listed, and shown by uuid and distinct id", async () => {
    const persons = (await json(["persons", "list"], where())) as { uuid: string; name: string }[];
    expect(persons.map((one) => one.name).sort()).toEqual(["bob", "kim"]);
    const kim = persons.find((one) => one.name === "kim")!;
    for (const key of ["kim", kim.uuid, kim.uuid.toUpperCase()])
      expect(await json(["persons", "get", key], where())).toEqual(kim as never);
    expect(kim).toMatchObject({ properties: { plan: "pro" }, version: 0 });
    for (const key of ["nobody", ""])
      expect((await flagkeep(["persons", "get", key, ...where()])).stderr).toContain(
        `Person ${key} does not exist.`,
      );
  });

  test("usage, definitions and activity are shown", async () => {
    expect(await json(["usage"], where())).toMatchObject({
      results: [{ project_id: 1, billable: 3 }],
      totals: { billable: 3 },
    });
    const names = (await json(["events", "definitions", "--search", "paid"], where())) as object[];
    expect(names).toMatchObject([{ name: "order paid" }]);
    expect(await json(["events", "properties", "--type", "person"], where())).toMatchObject([
      { name: "plan", property_type: "String" },
    ]);
    await json(["flags", "create", name.toLowerCase().replaceAll(" ", "-")], where());
    const last = await json(["activity", "list", "--scope", "FeatureFlag", "--limit", "1"], where());
    expect(last).toMatchObject([
      { activity: "created", detail: { name: expect.stringMatching(/^orders-/) } },
    ]);
    const all = await json(["activity", "organization"], where());
    expect(all).toContainEqual(expect.objectContaining({ scope: "PersonalAPIKey" }));
  });
});

test("imports are shown by a server", async () => {
  const file = join(server.dataDir, "..", "one.ndjson");
  await Bun.write(
    file,
    `${JSON.stringify({ event: "old", distinct_id: "ann", timestamp: "2025-01-02T03:04:05Z" })}\n`,
  );
  expect((await flagkeep(["import", file, ...local()])).code).toBe(0);
  const { results } = (await json(["imports", "list"], remote())) as { results: { id: string }[] };
  expect(results).toMatchObject([{ name: "one.ndjson", state: "done", progress: { records: 1 } }]);
  expect(await json(["imports", "get", results[0]!.id], remote())).toEqual(results[0]! as never);
  expect(await flagkeep(["imports", "list", ...local()])).toEqual({
    stdout: "",
    stderr: "flagkeep: Imports are shown by a running server. Use --url.\n",
    code: 2,
  });
});

test("a person is deleted on a server", async () => {
  await server.batch([{ event: "seen", distinct_id: "gone" }]);
  await server.eventsWhenStored(5);
  expect(await json(["persons", "delete", "gone"], remote())).toMatchObject({ state: "deleted" });
  expect((await flagkeep(["persons", "get", "gone", ...remote()])).code).toBe(1);
});
