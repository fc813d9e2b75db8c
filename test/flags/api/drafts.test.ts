/** Drafts of flags: what they would be, whom they would reach, and how often saved ones were asked for. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { ServerWithEngine } from "../../support/engine.ts";
import { addGroup, addPerson } from "../../support/management-people.ts";
import { flagsPath } from "../../support/management-server.ts";
import { dependsOn, person } from "../make.ts";

let it: ServerWithEngine;
beforeAll(async () => {
  it = await ServerWithEngine.start();
  for (let n = 0; n < 20; n++) {
    addPerson(it.server, [`user-${n}`], { plan: n % 2 === 0 ? "pro" : "free", visits: n });
  }
  addGroup(it.server, 0, "acme", { size: 100 }, "company");
  addGroup(it.server, 0, "tiny", { size: 2 });
});
afterAll(() => it[Symbol.asyncDispose]());

const ask = (method: string, path: string, body?: object) =>
  it.server.ask(method, `${flagsPath}${path}`, { body });

const conditions = fc.oneof(
  fc.constantFrom("pro", "free", "other").map((plan) => person("plan", "exact", plan)),
  fc.integer({ min: -1, max: 21 }).map((visits) => person("visits", "gt", String(visits))),
  fc.constant(person("email", "is_not_set", "")),
);
const filters: fc.Arbitrary<JsonObject> = fc.record({
  groups: fc.array(
    fc.record({
      properties: fc.array(conditions, { maxLength: 2 }),
      rollout_percentage: fc.constantFrom(0, 20, 50, 80, 100),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  multivariate: fc.constantFrom(null, {
    variants: [
      { key: "control", rollout_percentage: 50 },
      { key: "test", rollout_percentage: 50 },
    ],
  }),
}) as never;

test("a draft is what the flag is once it is saved", async () => {
  let count = 0;
  await fc.assert(
    fc.asyncProperty(
      filters,
      filters,
      fc.array(fc.integer({ min: 0, max: 30 }), { minLength: 1, maxLength: 5 }),
      async (first, second, ids) => {
        const key = `draft-${count++}`;
        const subjects = [...new Set(ids)].map((id) => ({ distinct_id: `user-${id}` }));
        const values = async (id: number) =>
          Promise.all(
            subjects.map(async ({ distinct_id }) => {
              const saved = await ask("POST", "explain/", { id, subjects: [{ distinct_id }] });
              expect(saved.body.results[0].draft).toEqual(saved.body.results[0].saved);
              return saved.body.results[0].saved.value;
            }),
          );
        const draft = await ask("POST", "explain/", { key, filters: first, subjects });
        expect([draft.status, draft.body.results[0].saved]).toEqual([200, null]);
        const { id } = (await ask("POST", "", { key, filters: first })).body;
        expect(draft.body.results.map((one: { draft: { value: unknown } }) => one.draft.value)).toEqual(
          await values(id),
        );
        const changed = await ask("POST", "explain/", { id, filters: second, subjects });
        expect((await ask("PATCH", `${id}/`, { filters: second })).status).toBe(200);
        expect(changed.body.results.map((one: { draft: { value: unknown } }) => one.draft.value)).toEqual(
          await values(id),
        );
      },
    ),
    { numRuns: 40 },
  );
});

describe("a draft", () => {
  test("uses other flags as stored, and the draft as sent", async () => {
    const base = (
      await ask("POST", "", {
        key: "base",
        filters: { groups: [{ properties: [person("plan", "exact", "pro")] }] },
      })
    ).body;
    const body = {
      key: "on-top",
      filters: { groups: [{ properties: [dependsOn(String(base.id))] }] },
      subjects: [
        { distinct_id: "user-0" },
        { distinct_id: "user-1" },
        { distinct_id: "user-1", person_properties: { plan: "pro" } },
        { distinct_id: "nobody" },
      ],
    };
    const { results } = (await ask("POST", "explain/", body)).body;
    expect(results.map((one: { draft: { value: unknown } }) => one.draft.value)).toEqual([
      true,
      false,
      true,
      false,
    ]);
    expect((await ask("GET", "?search=on-top")).body.count).toBe(0);
  });

  test.each([
    ["no subjects", { key: "x", subjects: [] }, "subjects"],
    [
      "too many",
      { key: "x", subjects: Array.from({ length: 21 }, () => ({ distinct_id: "a" })) },
      "subjects",
    ],
    ["no key", { subjects: [{ distinct_id: "a" }] }, "key"],
    ["an unknown id", { id: 9_999, subjects: [{ distinct_id: "a" }] }, "id"],
    [
      "what could not be saved",
      { key: "x", filters: { groups: 1 }, subjects: [{ distinct_id: "a" }] },
      "filters",
    ],
    [
      "variants that do not add up",
      {
        key: "x",
        filters: { groups: [], multivariate: { variants: [{ key: "a", rollout_percentage: 10 }] } },
        subjects: [{ distinct_id: "a" }],
      },
      "filters",
    ],
  ])("is rejected with %s", async (_, body, attr) => {
    const { status, body: answer } = await ask("POST", "explain/", body);
    expect([status, answer.attr]).toEqual([400, attr]);
  });
});

describe("reach", () => {
  test("of condition sets, each and together, is what persons counted one by one get", async () => {
    const wanted = {
      groups: [
        { properties: [person("plan", "exact", "pro")], rollout_percentage: 50 },
        { properties: [person("visits", "gt", "14")], variant: "test" },
      ],
      multivariate: {
        variants: [
          { key: "control", rollout_percentage: 50 },
          { key: "test", rollout_percentage: 50 },
        ],
      },
    };
    const { body } = await ask("POST", "reach/", { key: "counted", filters: wanted });
    const subjects = Array.from({ length: 20 }, (_, n) => ({ distinct_id: `user-${n}` }));
    const { results } = (await ask("POST", "explain/", { key: "counted", filters: wanted, subjects })).body;
    const on = results.filter((one: { draft: { value: unknown } }) => one.draft.value !== false);
    expect(body.populations).toEqual([
      { group_type_index: null, total: 20, matching: 13, reached: on.length },
    ]);
    expect(body.sets).toMatchObject([
      { index: 0, matching: 10, variant: null },
      { index: 1, matching: 5, reached: 5, variant: "test" },
    ]);
    const split = body.variants.map(({ reached }: { reached: number }) => reached);
    expect(split[0] + split[1]).toBeGreaterThanOrEqual(on.length - 1);
    expect(split[1]).toBeGreaterThanOrEqual(5);
  });

  test("of persons and of groups is counted apart; without sets no one is reached", async () => {
    const company = { key: "size", type: "group", operator: "gt", value: "50", group_type_index: 0 };
    const mixed = {
      groups: [{ properties: [] }, { properties: [company], aggregation_group_type_index: 0 }],
    };
    const { body } = await ask("POST", "reach/", { filters: mixed });
    expect(body.populations).toEqual([
      { group_type_index: null, total: 20, matching: 20, reached: 20 },
      { group_type_index: 0, total: 2, matching: 1, reached: 1 },
    ]);
    const noMatches = await ask("POST", "reach/", { filters: { groups: [] } });
    expect(noMatches.body.populations).toEqual([
      { group_type_index: null, total: 20, matching: 0, reached: 0 },
    ]);
    expect((await ask("POST", "reach/", { filters: { groups: [{ properties: 7 }] } })).status).toBe(400);
    expect((await ask("POST", "reach/", {})).status).toBe(400);
  });
});

describe("usage", () => {
  test("is counted by value and day in the project's time zone", async () => {
    const { id } = (await ask("POST", "", { key: "used" })).body;
    const { id: unused } = (await ask("POST", "", { key: "unused" })).body;
    await it.server.ask("PATCH", "/api/projects/1/", { body: { timezone: "Europe/Berlin" } });
    const call = async (at: string, response: unknown, flag = "used") => {
      const properties = JSON.stringify({ $feature_flag: flag, $feature_flag_response: response });
      await it.addEvent("$feature_flag_called", "user-1", new Date(at), properties);
    };
    // 23:30 UTC is the next day in Berlin.
    await call("2026-02-27T23:30:00Z", true);
    await call("2026-02-28T10:00:00Z", true);
    await call("2026-03-01T10:00:00Z", "it's");
    await call("2026-03-01T10:00:00Z", null);
    await call("2026-02-10T10:00:00Z", true);
    await call("2026-03-01T10:00:00Z", true, "other");
    const { body } = await ask("GET", `usage/?ids=${unused},${id},9999&days=3`);
    expect(body.days).toEqual(["2026-02-27", "2026-02-28", "2026-03-01"]);
    expect(body.results).toEqual([
      { id: unused, key: "unused", last_called_at: null, total: 0, values: [] },
      {
        id,
        key: "used",
        last_called_at: null,
        total: 4,
        values: [
          { value: "true", total: 2, counts: [0, 2, 0] },
          { value: "false", total: 1, counts: [0, 0, 1] },
          { value: "it's", total: 1, counts: [0, 0, 1] },
        ],
      },
    ]);
    for (let n = 0; n < 30; n++) await call("2026-03-01T10:00:00Z", `variant-${n}`, "unused");
    const many = (await ask("GET", `usage/?ids=${unused}`)).body.results[0];
    expect([many.total, many.values.length]).toEqual([30, 26]);
    expect(many.values[0]).toMatchObject({ value: "$other", total: 5 });
  });

  test.each(["", "?ids=", "?ids=x", "?ids=1&days=0", "?ids=1&days=91", `?ids=${"1,".repeat(500)}1`])(
    "rejects %p",
    async (query) => {
      expect((await ask("GET", `usage/${query}`)).status).toBe(400);
    },
  );
});
