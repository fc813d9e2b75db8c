/** Whom a flag reaches, with the real engine behind the routes. */

import { describe, expect, test } from "bun:test";
import { rolloutPosition } from "../../../src/flags/evaluate/bucketing.ts";
import { ServerWithEngine } from "../../support/engine.ts";
import { addGroup, addPerson, emailContains } from "../../support/management-people.ts";
import { flagsPath } from "../../support/management-server.ts";

describe("blast radius", () => {
  async function peopled() {
    const it = await ServerWithEngine.start();
    for (let n = 0; n < 4; n++) addPerson(it.server, [`p${n}`], { email: `p${n}@${n < 3 ? "a" : "b"}.com` });
    addGroup(it.server, 0, "acme", { plan: "pro" }, "company");
    addGroup(it.server, 0, "other", { plan: "free" });
    const ask = async (body: object) => {
      const answer = await it.server.ask("POST", `${flagsPath}user_blast_radius/`, { body });
      return answer.status === 200 ? [answer.body.users_affected, answer.body.total_users] : answer.body;
    };
    return { ask, server: it.server, [Symbol.asyncDispose]: () => it[Symbol.asyncDispose]() };
  }
  for (const [name, body, expected] of [
    ["everybody", { condition: {} }, [4, 4]],
    ["everybody, null", { condition: null }, [4, 4]],
    [
      "a property, whatever the rollout",
      { condition: { properties: [emailContains("@a.com")], rollout_percentage: 0 } },
      [3, 4],
    ],
    ["two properties", { condition: { properties: [emailContains("@a.com"), emailContains("p1")] } }, [1, 4]],
    ["all groups", { condition: {}, group_type_index: 0 }, [2, 2]],
    [
      "groups by a property",
      {
        condition: {
          properties: [{ key: "plan", type: "group", operator: "exact", value: "pro", group_type_index: 0 }],
        },
        group_type_index: 0,
      },
      [1, 2],
    ],
    [
      "groups by key",
      {
        condition: {
          properties: [
            { key: "$group_key", type: "group", group_type_index: 0, operator: "exact", value: "acme" },
          ],
        },
        group_type_index: 0,
      },
      [1, 2],
    ],
    ["a type without groups", { condition: {}, group_type_index: 3 }, [0, 0]],
    ["a flag without condition sets", { filters: {} }, [0, 4]],
    ["a flag for everybody", { filters: { groups: [{}] } }, [4, 4]],
    [
      "all condition sets of a flag together, whatever their rollouts",
      {
        filters: {
          groups: [
            { properties: [emailContains("p0")], rollout_percentage: 0 },
            { properties: [emailContains("p1")], rollout_percentage: 50 },
            { properties: [emailContains("@a.com"), emailContains("p1")] },
            { properties: [emailContains("p3")] },
          ],
        },
      },
      [3, 4],
    ],
    [
      "the same with rollouts",
      {
        filters: {
          groups: [
            { properties: [emailContains("p0")], rollout_percentage: 0 },
            { properties: [emailContains("p1")] },
            { properties: [emailContains("p2")], rollout_percentage: null },
          ],
        },
        apply_rollout: true,
      },
      [2, 4],
    ],
    ["a rollout beside the condition sets", { rollout_percentage: 0, apply_rollout: true }, [0, 4]],
    [
      "a flag of groups",
      {
        filters: {
          aggregation_group_type_index: 0,
          groups: [
            { properties: [{ key: "plan", type: "group", value: "pro", group_type_index: 0 }] },
            { properties: [{ key: "plan", type: "group", value: "none", group_type_index: 0 }] },
          ],
        },
      },
      [1, 2],
    ],
  ] as const) {
    test(name, async () => {
      await using it = await peopled();
      expect(await it.ask(body)).toEqual(expected);
    });
  }
  describe("a filter on `distinct_id` tests the main ID, as evaluation does", () => {
    const byId = (operator: string, value: unknown) => ({
      key: "distinct_id",
      type: "person",
      operator,
      value,
    });
    for (const [operator, value, expected] of [
      ["exact", ["p1", "P2", "nobody"], ["p1", "p2"]],
      ["is_not", ["p1"], ["p0", "p2", "p3"]],
      ["regex", "[01]$", ["p0", "p1"]],
      ["is_not_set", "is_not_set", []],
    ] as const) {
      test(`${operator} ${JSON.stringify(value)}`, async () => {
        await using it = await peopled();
        const filter = byId(operator, value);
        expect(await it.ask({ condition: { properties: [filter] } })).toEqual([expected.length, 4]);
        const properties = { type: "AND", values: [filter] };
        const cohorts = "/api/projects/1/cohorts/";
        const cohort = await it.server.ask("POST", cohorts, {
          body: { name: "ids", filters: { properties } },
        });
        const isMember = { key: "id", type: "cohort", value: cohort.body.id };
        expect(await it.ask({ condition: { properties: [isMember] } })).toEqual([expected.length, 4]);
        const search = encodeURIComponent(JSON.stringify([filter]));
        for (const path of [`persons/?properties=${search}`, `cohorts/${cohort.body.id}/persons/`]) {
          const { body } = await it.server.ask("GET", `/api/projects/1/${path}`);
          const found = body.results.map((person: { distinct_ids: string[] }) => person.distinct_ids[0]);
          expect([path, ...found]).toEqual([path, ...expected]);
        }
      });
    }
    test("next to other properties, and with the rollout of the main ID", async () => {
      await using it = await peopled();
      const properties = [byId("exact", ["p0", "p1", "p3"]), emailContains("@a.com")];
      expect(await it.ask({ condition: { properties } })).toEqual([2, 4]);
      const filters = { groups: [{ properties, rollout_percentage: 50 }] };
      const isOn = ["p0", "p1"].filter((id) => rolloutPosition("half", id) <= 0.5);
      expect(await it.ask({ filters, key: "half", apply_rollout: true })).toEqual([isOn.length, 4]);
    });
  });
  test("both generations of names", async () => {
    await using it = await peopled();
    const { body } = await it.server.ask("POST", `${flagsPath}user_blast_radius/`, {
      body: { condition: {} },
    });
    expect(body).toEqual({ users_affected: 4, total_users: 4, affected: 4, total: 4 });
  });
  for (const [name, body, attr, detail, code = "invalid_input"] of [
    ["no condition", {}, null, "Missing condition for which to get blast radius"],
    [
      "a condition beside filters",
      { condition: {}, filters: { groups: [] } },
      null,
      "Send either `filters` or `condition`, not both.",
    ],
    [
      "condition sets about persons and about groups",
      { filters: { groups: [{ aggregation_group_type_index: 0 }, {}] } },
      null,
      "The condition sets use different group types. Send them separately.",
    ],
    [
      "no percentage",
      { filters: { groups: [{ rollout_percentage: 101 }] } },
      "filters",
      "groups[0].rollout_percentage must be between 0 and 100, got 101",
    ],
    [
      "a property of another kind of group",
      {
        condition: { properties: [{ key: "plan", type: "group", value: "x", group_type_index: 1 }] },
        group_type_index: 0,
      },
      null,
      "Invalid group type index for feature flag condition.",
    ],
    [
      "an unknown cohort",
      { condition: { properties: [{ key: "id", type: "cohort", value: 9 }] } },
      "filters",
      "Cohort with id 9 does not exist",
      "cohort_does_not_exist",
    ],
  ] as const) {
    test(`refused: ${name}`, async () => {
      await using it = await peopled();
      expect(await it.ask(body)).toMatchObject({ code, attr, detail });
    });
  }
});

test("rollouts take in the persons and groups that the flag is on for", async () => {
  await using it = await ServerWithEngine.start();
  const { server } = it;
  const persons = Array.from({ length: 200 }, (_, n) => `person ${n}`);
  for (const id of persons) addPerson(server, [id], { plan: "pro" });
  addGroup(server, 0, "first", {}, "company");
  const groups = Array.from({ length: 60 }, (_, n) => `group ${n}`);
  for (const id of groups) addGroup(server, 0, id);
  const flag = async (key: string, filters: object) => {
    await server.ask("POST", flagsPath, { body: { key, filters } });
    const body = { key, filters, apply_rollout: true };
    return (await server.ask("POST", `${flagsPath}user_blast_radius/`, { body })).body.affected;
  };
  const isOn = async (key: string, query: string) =>
    (await server.ask("GET", `${flagsPath}evaluation_reasons/?${query}`)).body[key].value;
  const ofPersons = await flag("some", {
    groups: [
      { properties: [{ key: "plan", type: "person", value: "pro" }], rollout_percentage: 33.3 },
      { properties: [], rollout_percentage: 10 },
    ],
  });
  let on = 0;
  for (const id of persons) if (await isOn("some", `distinct_id=${encodeURIComponent(id)}`)) on += 1;
  expect(ofPersons).toBe(on);
  expect(on).toBeGreaterThan(40);
  const ofGroups = await flag("few", {
    aggregation_group_type_index: 0,
    groups: [{ rollout_percentage: 25 }],
  });
  let groupsOn = 0;
  for (const company of ["first", ...groups]) {
    const query = `distinct_id=x&groups=${encodeURIComponent(JSON.stringify({ company }))}`;
    if (await isOn("few", query)) groupsOn += 1;
  }
  expect(ofGroups).toBe(groupsOn);
  expect(groupsOn).toBeGreaterThan(5);
});

describe("the list of persons", () => {
  test("by properties and of a cohort, in pages that are no longer than others can wait for", async () => {
    await using it = await ServerWithEngine.start();
    const { server } = it;
    server.deps.people.$client.transaction(() => {
      for (let n = 0; n < 11_003; n++) addPerson(server, [`p${n}`], { plan: "free" });
    })();
    const filter = { key: "plan", value: "free", operator: "exact", type: "person" };
    const properties = { type: "OR", values: [{ type: "AND", values: [filter] }] };
    await server.ask("POST", "/api/projects/1/cohorts/", { body: { name: "Free", filters: { properties } } });
    const filters = encodeURIComponent(JSON.stringify([filter]));
    for (const path of [`persons/?properties=${filters}&`, "persons/?cohort=1&", "cohorts/1/persons/?"]) {
      const page = await server.ask("GET", `/api/projects/1/${path}limit=100000000&offset=1002`);
      expect([path, page.body.results.length]).toEqual([path, 10_000]);
      expect(page.body.results[0].distinct_ids).toEqual(["p1002"]);
      const rest = await server.ask("GET", page.body.next.replace("http://localhost", ""));
      expect(rest.body).toMatchObject({ next: null, results: [{ distinct_ids: ["p11002"] }] });
    }
  });

  test("large ones, in shorter pages", async () => {
    await using it = await ServerWithEngine.start();
    const { server } = it;
    const text = "x".repeat(500_000);
    server.deps.people.$client.transaction(() => {
      for (let n = 0; n < 250; n++) addPerson(server, [`p${n}`], { text });
    })();
    const filters = encodeURIComponent(JSON.stringify([{ key: "text", operator: "is_set" }]));
    const seen: string[] = [];
    let next = `/api/projects/1/persons/?properties=${filters}&limit=1000`;
    while (next !== null) {
      const { body } = await server.ask("GET", next.replace("http://localhost", ""));
      expect(body.results.length).toBeLessThan(150);
      seen.push(...body.results.map((person: { distinct_ids: string[] }) => person.distinct_ids[0]!));
      next = body.next;
    }
    expect(seen).toEqual(Array.from({ length: 250 }, (_, n) => `p${n}`));
  });

  test("by properties, in pages", async () => {
    await using it = await ServerWithEngine.start();
    for (let n = 0; n < 5; n++)
      addPerson(it.server, [`p${n}`], { email: `p${n}@x.com`, plan: n % 2 ? "pro" : "free" });
    const filters = encodeURIComponent(JSON.stringify([{ key: "plan", value: "free", operator: "exact" }]));
    const page = await it.server.ask("GET", `/api/projects/1/persons/?properties=${filters}&limit=2`);
    const ids = (body: { results: { distinct_ids: string[] }[] }) =>
      body.results.map((person) => person.distinct_ids[0]);
    expect(ids(page.body)).toEqual(["p0", "p2"]);
    const rest = await it.server.ask("GET", page.body.next.replace("http://localhost", ""));
    expect([ids(rest.body), rest.body.next]).toEqual([["p4"], null]);
    const skipped = await it.server.ask("GET", `/api/projects/1/persons/?properties=${filters}&offset=2`);
    expect([ids(skipped.body), skipped.body.next]).toEqual([["p4"], null]);
    const behindAll = await it.server.ask("GET", `/api/projects/1/persons/?properties=${filters}&offset=9`);
    expect([ids(behindAll.body), behindAll.body.next]).toEqual([[], null]);
    for (const wrong of ["{", "[1]", "[{}]", '"x"']) {
      const answer = await it.server.ask(
        "GET",
        `/api/projects/1/persons/?properties=${encodeURIComponent(wrong)}`,
      );
      expect(answer).toMatchObject({ status: 400, body: { attr: "properties" } });
    }
    expect((await it.server.ask("GET", "/api/projects/1/persons/?properties=[]")).body.results).toHaveLength(
      5,
    );
  });
});
