/** Numbers that JavaScript's do not hold keep their digits from the request over the store to evaluations and answers. */

import { expect, test } from "bun:test";
import { exactNumber } from "../../../src/lib/json/exact.ts";
import type { Json } from "../../../src/lib/json/value.ts";
import { ServerProcess, until } from "../../support/server.ts";

const digits = "12345678901234567890";
const wanted = exactNumber(digits) as Json;
/** The same to JavaScript. */
const neighbor = exactNumber("12345678901234567891") as Json;
const project = "/api/projects/1";

const about = (operator: string, value: Json) => ({
  groups: [{ properties: [{ key: "account", type: "person", operator, value }], rollout_percentage: 100 }],
});

async function post(server: ServerProcess, path: string, body: unknown) {
  const response = await server.api(`${project}/${path}/`, { method: "POST", body });
  return { status: response.status, text: await response.text() };
}

test("in conditions and payloads of flags", async () => {
  await using server = await ServerProcess.start();
  const ids: number[] = [];
  for (const [key, filters] of Object.entries({
    one: { ...about("exact", wanted), payloads: { true: { account: wanted } } },
    listed: about("exact", [3, wanted]),
    others: about("is_not", wanted),
  })) {
    const created = await post(server, "feature_flags", { key, filters });
    expect(created.status).toBe(201);
    expect(created.text).toContain(digits);
    ids.push(JSON.parse(created.text).id);
  }
  const flag = `${project}/feature_flags/${ids[0]}/`;
  expect((await server.api(flag, { method: "PATCH", body: { name: "renamed" } })).status).toBe(200);
  for (const path of [flag, `${project}/feature_flags/`])
    expect(await (await server.api(path)).text()).toContain(`"value":${digits}`);
  // SDKs would round it, so they are to ask.
  const definitions = await (await server.api(`${project}/feature_flags/local_evaluation/`)).text();
  expect(definitions.match(/"value":\d+/g)).toEqual(['"value":0', '"value":0', '"value":0']);
  const enabled = async (account: Json) => {
    const body = { api_key: server.token, distinct_id: "ann", person_properties: { account } };
    const { flags } = (await (await server.post("/flags/?v=2", body)).json()) as {
      flags: Record<string, { enabled: boolean; metadata: { payload: string | null } }>;
    };
    return [flags.one!, flags.listed!, flags.others!].map((each) => each.metadata.payload ?? each.enabled);
  };
  expect(await enabled(wanted)).toEqual([`{"account":${digits}}`, true, false]);
  expect(await enabled(neighbor)).toEqual([false, false, true]);
}, 30_000);

test("as the whole value of a field that takes any JSON", async () => {
  await using server = await ServerProcess.start();
  const fields = {
    feature_flags: ["rollback_conditions", { key: "one" }],
    cohorts: ["query", { name: "one" }],
  };
  for (const [path, [field, others]] of Object.entries(fields) as [string, [string, object]][]) {
    const created = await post(server, path, { ...others, is_static: true, [field]: wanted });
    expect(created.status).toBe(201);
    expect(created.text).toContain(`"${field}":${digits}`);
    const { id } = JSON.parse(created.text) as { id: number };
    for (const value of [neighbor, [wanted], -5, null]) {
      const body = { [field]: value };
      const updated = await server.api(`${project}/${path}/${id}/`, { method: "PATCH", body });
      expect([updated.status, await updated.text()]).toEqual([
        200,
        expect.stringContaining(JSON.stringify(body).slice(1, -1)),
      ]);
    }
  }
}, 30_000);

test("in conditions of cohorts, and in properties of their members", async () => {
  await using server = await ServerProcess.start();
  const person = (distinct_id: string, account: Json) => ({
    event: "seen",
    distinct_id,
    properties: { $set: { account } },
  });
  await server.batch([person("ann", wanted), person("bob", neighbor)]);
  await server.eventsWhenStored(2);
  const condition = { type: "person", key: "account", operator: "exact", value: wanted };
  const created = await post(server, "cohorts", {
    name: "one",
    filters: { properties: { type: "AND", values: [condition] } },
  });
  expect(created.status).toBe(201);
  const path = `${project}/cohorts/${JSON.parse(created.text).id}/`;
  const isFilled = async () =>
    !((await (await server.api(path)).json()) as Json & { is_calculating: boolean }).is_calculating;
  await until(isFilled, "the cohort is filled");
  expect(await (await server.api(path)).text()).toContain(`"value":${digits}`);
  const members = await (await server.api(`${path}persons/`)).text();
  expect(members).toContain(`"account":${digits}`);
  expect(members).not.toContain("bob");
}, 30_000);

test("where another kind of value is wanted, they are numbers that do not fit", async () => {
  await using server = await ServerProcess.start();
  for (const [body, detail] of [
    [wanted, "Invalid data. Expected a dictionary, but got int."],
    [{ key: "a", filters: wanted }, 'Expected a dictionary of items but got type "int".'],
    [{ key: "a", tags: wanted }, 'Expected a list of items but got type "int".'],
    [{ key: "a", version: wanted, filters: { groups: wanted } }, "groups must be a list"],
    [
      { key: "a", filters: { groups: [{ rollout_percentage: wanted }] } },
      "groups[0].rollout_percentage must be between 0 and 100, got 12345678901234567000",
    ],
  ] as const) {
    const { status, text } = await post(server, "feature_flags", body);
    expect([status, JSON.parse(text).detail]).toEqual([400, detail]);
  }
  const created = await post(server, "feature_flags", { key: wanted });
  expect([created.status, JSON.parse(created.text).key]).toEqual([201, digits]);
}, 30_000);
