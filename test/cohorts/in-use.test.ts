/** Cohorts that active flags use stay usable: what the API accepts never makes a flag impossible to compute. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { evaluate } from "../../src/flags/evaluate/evaluate.ts";
import { requestFor } from "../flags/make.ts";
import { flagsPath, TestServer } from "../support/management-server.ts";

const cohortsPath = "/api/projects/1/cohorts/";
const inCohort = (id: number) => ({ key: "id", type: "cohort", value: id, operator: "in" });
const dependsOn = (id: number) => ({
  key: String(id),
  type: "flag",
  value: true,
  operator: "flag_evaluates_to",
});
const named = { key: "name", type: "person", operator: "exact", value: "x" };
const rules = (...values: object[]) => ({ properties: { type: "OR", values: [{ type: "AND", values }] } });
const groups = (...properties: object[]) => ({ groups: [{ properties, rollout_percentage: 100 }] });
const empty = { properties: { type: "OR", values: [] } };

/** Cohort 1, cohort 2 that names it, and a flag that uses cohort 2. */
async function started(): Promise<TestServer> {
  const server = new TestServer();
  await server.ask("POST", cohortsPath, { body: { name: "inner", filters: rules(named) } });
  await server.ask("POST", cohortsPath, { body: { name: "outer", filters: rules(inCohort(1)) } });
  await server.ask("POST", flagsPath, { body: { key: "beta", filters: groups(inCohort(2)) } });
  return server;
}

describe("a cohort that an active flag uses, directly or through another cohort", () => {
  const losses = [
    [{ deleted: true }, "deleted"],
    [{ is_static: true }, "is_static"],
    [{ filters: { properties: {} } }, "filters"],
    [{ filters: empty }, "filters"],
  ] as const;
  for (const [change, attr] of losses) {
    test(`rejects ${JSON.stringify(change)}, naming the flags`, async () => {
      using server = await started();
      for (const id of [1, 2]) {
        for (const [method, body] of [
          ["PATCH", change],
          ["PUT", { name: "x", ...change }],
        ] as const)
          expect(await server.ask(method, `${cohortsPath}${id}/`, { body })).toMatchObject({
            status: 400,
            body: { code: "invalid_input", attr, detail: expect.stringContaining("beta") },
          });
      }
      await server.ask("PATCH", `${flagsPath}1/`, { body: { active: false } });
      expect((await server.ask("PATCH", `${cohortsPath}1/`, { body: change })).status).toBe(200);
    });
  }

  test("a flag that lost its cohort is neither enabled nor restored, immediately or later", async () => {
    using server = await started();
    const flag = (body: object) => server.ask("PATCH", `${flagsPath}1/`, { body });
    const lost = { status: 400, body: { code: "cohort_does_not_exist", attr: "filters" } };
    await flag({ active: false });
    // Without the inner cohort the outer one cannot be computed either.
    expect((await server.ask("PATCH", `${cohortsPath}1/`, { body: { deleted: true } })).status).toBe(200);
    expect(await flag({ active: true })).toMatchObject(lost);
    const scheduled_at = "2099-01-01T00:00:00Z";
    const payload = { operation: "update_status", value: true };
    for (const [path, body] of [
      ["change_requests", { flag_id: 1, changes: { active: true } }],
      ["scheduled_changes", { model_name: "FeatureFlag", record_id: 1, payload, scheduled_at }],
      ["feature_flags", { key: "other", filters: groups(inCohort(2)) }],
    ] as const)
      expect(await server.ask("POST", `/api/projects/1/${path}/`, { body })).toMatchObject(lost);
    expect((await flag({ name: "still off" })).status).toBe(200);
    await flag({ deleted: true });
    expect(await flag({ deleted: false })).toMatchObject(lost);
    expect((await flag({ deleted: false, active: true, filters: groups(named) })).status).toBe(200);
  });

  test("a cohort is restored only with the cohorts that it names", async () => {
    using server = await started();
    await server.ask("PATCH", `${flagsPath}1/`, { body: { active: false } });
    const cohort = (id: number, body: object) => server.ask("PATCH", `${cohortsPath}${id}/`, { body });
    for (const id of [2, 1]) expect((await cohort(id, { deleted: true })).status).toBe(200);
    expect(await cohort(2, { deleted: false })).toMatchObject({ status: 400 });
    for (const id of [1, 2]) expect((await cohort(id, { deleted: false })).status).toBe(200);
    expect((await server.ask("PATCH", `${flagsPath}1/`, { body: { active: true } })).status).toBe(200);
  });

  test("no sequence of accepted changes leaves a flag that cannot be computed", async () => {
    const id = fc.integer({ min: 1, max: 4 });
    const cohortFilters = fc.oneof(
      fc.constant(rules(named)),
      id.map((other) => rules(inCohort(other))),
      fc.constant({ properties: {} }),
      fc.constant(rules({ key: "bought", type: "behavioral", value: "performed_event" })),
    );
    const list = fc.constantFrom("groups", "super_groups", "holdout_groups");
    const conditions = fc.oneof(id.map(inCohort), id.map(dependsOn), fc.constant(named));
    const flagFilters = fc
      .tuple(list, conditions)
      .map(([name, one]) => ({ groups: [], [name]: groups(one).groups }));
    const change = fc.oneof(
      fc.record({ path: fc.constant(cohortsPath), id, body: fc.record({ filters: cohortFilters }) }),
      fc.record({ path: fc.constant(cohortsPath), id, body: fc.record({ deleted: fc.boolean() }) }),
      fc.record({ path: fc.constant(cohortsPath), id, body: fc.record({ is_static: fc.boolean() }) }),
      fc.record({ path: fc.constant(flagsPath), id, body: fc.record({ filters: flagFilters }) }),
      fc.record({ path: fc.constant(flagsPath), id, body: fc.record({ deleted: fc.boolean() }) }),
      fc.record({ path: fc.constant(flagsPath), id, body: fc.record({ active: fc.boolean() }) }),
    );
    let accepted = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 5, maxLength: 40 }), async (changes) => {
        using server = new TestServer();
        for (const number of [1, 2, 3, 4]) {
          await server.ask("POST", cohortsPath, { body: { name: `c${number}`, filters: rules(named) } });
          await server.ask("POST", flagsPath, {
            body: {
              key: `f${number}`,
              filters: groups(inCohort(number)),
              _should_create_usage_dashboard: false,
            },
          });
        }
        for (const { path, id: number, body } of changes) {
          if ((await server.ask("PATCH", `${path}${number}/`, { body })).status === 200) accepted++;
          const { set } = server.deps.flagSets.get(1);
          const person = { properties: { name: "x" } };
          expect(evaluate(set, requestFor("a", { person })).errorsWhileComputing).toBe(false);
          expect(evaluate(set, requestFor("b")).errorsWhileComputing).toBe(false);
        }
      }),
      { numRuns: 12 },
    );
    expect(accepted).toBeGreaterThan(20);
  }, 60_000);
});
