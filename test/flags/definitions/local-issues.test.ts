/** Which flags SDKs cannot evaluate themselves, and why; over HTTP and the command line. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { LocalIssues } from "../../../src/flags/definitions/local-issues.ts";
import type { CohortDefinition, FlagDefinition } from "../../../src/flags/rules/types.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { flagkeep } from "../../support/server.ts";
import { server, useServer } from "../../support/use-server.ts";
import { dependsOn, flag, inCohort, person, when } from "../make.ts";

const cohort = (id: number, name: string, properties: JsonObject | undefined): CohortDefinition => ({
  id,
  name,
  isStatic: properties === undefined,
  filters: properties === undefined ? null : { properties },
});
const all = (...values: JsonObject[]): JsonObject => ({ type: "OR", values: [{ type: "AND", values }] });
const cohorts = [
  cohort(1, "Static", undefined),
  cohort(2, "Pros", all({ type: "person", key: "plan", operator: "exact", value: "pro" })),
  cohort(3, "Buyers", all({ type: "behavioral", key: "bought", value: "performed_event" })),
  cohort(4, "Aged", all({ type: "person", key: "age", operator: "between", value: [1, 2] })),
  cohort(5, "Outer", all({ type: "cohort", key: "id", value: 1 })),
  cohort(6, "Selves", all({ type: "cohort", key: "id", value: 6 })),
  cohort(7, "Fractions", all({ type: "person", key: "age", operator: "exact", value: 1.5 })),
  cohort(8, "Outer pros", all({ type: "cohort", key: "id", value: 2 })),
];
const flags = new Map<number, FlagDefinition>();
const add = (id: number, filters: JsonObject, more: Partial<FlagDefinition> = {}) => {
  const created = { ...flag(id, `flag-${id}`, filters), ...more };
  flags.set(id, created);
  return created;
};
add(1, when([]));
add(2, when([]), { ensureExperienceContinuity: true });
add(3, when([]), { ensureExperienceContinuity: true, active: false });
add(4, when([dependsOn("5")]));
add(5, when([dependsOn("4")]));
add(6, when([]), { deleted: true });
const getIssues = (definition: FlagDefinition) =>
  new LocalIssues({
    flag: (id) => flags.get(id),
    cohort: (id) => cohorts.find((one) => one.id === id),
    hasGroupType: (index) => index === 0,
  }).getIssues(definition);
const cases: [string, JsonObject, string | undefined, Partial<FlagDefinition>?][] = [
  ["for everybody", when([]), undefined],
  ["without condition sets", { groups: [] }, undefined],
  ["by properties", when([person("plan", "exact", "pro"), person("age", "gt", "3")]), undefined],
  ["about a known group type", { ...when([]), aggregation_group_type_index: 0 }, undefined],
  ["in a readable cohort", when([inCohort(2)]), undefined],
  ["in a cohort of readable cohorts", when([inCohort(8)]), undefined],
  ["depending on a flag that SDKs evaluate", when([dependsOn("1")]), undefined],
  ["depending on a flag that is off", when([dependsOn("3")]), undefined],
  ["with early exit", { ...when([]), early_exit: true }, undefined],
  ["with continuity", when([]), "Experience continuity", { ensureExperienceContinuity: true }],
  ["with encrypted payloads", when([]), "Encrypted payloads", { hasEncryptedPayloads: true }],
  ["of a survey", when([]), "Survey flag", { key: "survey-targeting-x" }],
  ["with a super condition", { ...when([]), super_groups: [{ properties: [] }] }, "Early access"],
  ["with enrollment", { ...when([]), feature_enrollment: true }, "Early access"],
  ["with a holdout", { ...when([]), holdout: { id: 1, exclusion_percentage: 10 } }, "Holdout"],
  ["with an older holdout", { ...when([]), holdout_groups: [{ properties: [] }] }, "Holdout"],
  [
    "about an unknown group type",
    { ...when([]), aggregation_group_type_index: 3 },
    "group type 3 does not exist",
  ],
  [
    "about an unknown group type in the second set",
    { groups: [{}, { aggregation_group_type_index: 2 }] },
    "Condition set 2: group type 2 does not exist",
  ],
  ["in a static cohort", when([inCohort(1)]), 'cohort "Static" is static'],
  ["in a behavioral cohort", when([inCohort(3)]), 'cohort "Buyers" has a behavioral filter'],
  ["in a cohort with an operator", when([inCohort(4)]), 'cohort "Aged" has the operator between'],
  ["in a cohort with a fraction", when([inCohort(7)]), 'cohort "Fractions" has a value of property "age"'],
  ["in a cohort of a static one", when([inCohort(5)]), 'cohort "Outer" contains the cohort "Static"'],
  ["in a cohort of itself", when([inCohort(6)]), 'cohort "Selves" contains the cohort "Selves"'],
  ["in a missing cohort", when([inCohort(99)]), "cohort 99 does not exist"],
  ["by another operator", when([person("age", "between", ["1", "2"])]), "the operator between"],
  ["by several texts", when([person("mail", "icontains_multi", ["a"])]), "the operator icontains_multi"],
  [
    "by a fraction",
    when([person("age", "exact", 1.5)]),
    'property "age" has a value that not every SDK supports',
  ],
  ["depending on continuity", when([dependsOn("2")]), 'it depends on flag "flag-2"'],
  ["depending on a missing flag", when([dependsOn("77")]), 'flag "77" does not exist'],
  ["depending on a deleted flag", when([dependsOn("6")]), 'flag "6" does not exist'],
  ["depending on a circle", when([dependsOn("4")]), 'it depends on flag "flag-4"'],
];
describe("a flag", () => {
  for (const [name, filters, issue, more] of cases) {
    test(name, () => {
      const issues = getIssues({ ...flag(50, "f", filters), ...more });
      if (issue === undefined) expect(issues).toEqual([]);
      else expect(issues).toEqual([expect.stringContaining(issue)]);
    });
  }
  test("issues are reported once, and at most 20", () => {
    expect(getIssues(flag(50, "f", when([inCohort(1), inCohort(1)])))).toHaveLength(1);
    const many = Array.from({ length: 100 }, (_, id) => inCohort(1_000 + id));
    const issues = getIssues(flag(50, "f", when(many)));
    expect([issues.length, issues.at(-1)]).toEqual([20, "81 more issues."]);
  });
  test("a long chain of flags, and one of many branches, end", () => {
    for (const needs of [(id: number) => [id + 1], (id: number) => [id + 1, id + 2, id + 3]]) {
      const chain = new Map(
        Array.from({ length: 5_000 }, (_, id) => [
          id,
          flag(id, `c-${id}`, when(needs(id).map((needed) => dependsOn(String(needed))))),
        ]),
      );
      const issues = new LocalIssues({ flag: (id) => chain.get(id), cohort: () => undefined });
      for (const definition of chain.values()) expect(issues.getIssues(definition).length).toBeGreaterThan(0);
    }
  });
  test("any filters at all give a list of sentences", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom("groups", "holdout", "super_groups"), fc.jsonValue()),
        (filters) => {
          const issues = getIssues(flag(50, "f", filters as JsonObject));
          expect(issues.every((issue) => typeof issue === "string" && issue.endsWith("."))).toBe(true);
        },
      ),
    );
  });
});

describe("is reported", () => {
  useServer();
  const create = async (path: string, body: object) => {
    const response = await server.api(`/api/projects/1/${path}/`, { method: "POST", body });
    expect(response.status).toBe(201);
    return (await response.json()) as { id: number; local_evaluation_issues: string[] };
  };

  test("by the API, the definitions and the command line, and follows changes", async () => {
    const { id } = await create("cohorts", { name: "Beta", is_static: true });
    const filters = when([{ type: "cohort", key: "id", operator: "in", value: id }]);
    const created = await create("feature_flags", { key: "beta", filters });
    const plain = await create("feature_flags", { key: "plain", rollout_percentage: 50 });
    const above = await create("feature_flags", {
      key: "above",
      filters: when([{ type: "flag", key: String(created.id), operator: "flag_evaluates_to", value: true }]),
    });
    const issue = 'Condition set 1: cohort "Beta" is static: only the server knows its members.';
    expect([created, plain, above].map((one) => one.local_evaluation_issues)).toEqual([
      [issue],
      [],
      ['Condition set 1: it depends on flag "beta", which SDKs cannot evaluate.'],
    ]);
    const read = async (path: string) => await (await server.api(`/api/projects/1/${path}`)).json();
    expect((await read(`feature_flags/${created.id}/`)).local_evaluation_issues).toEqual([issue]);
    const { results } = await read("feature_flags/?key=beta");
    expect(results[0].local_evaluation_issues).toEqual([issue]);
    for (const path of ["feature_flags/local_evaluation/", "feature_flags/local_evaluation/?send_cohorts"]) {
      const { flags } = (await read(path)) as { flags: { key: string; local_evaluation_issues: string[] }[] };
      const reported = Object.fromEntries(flags.map((one) => [one.key, one.local_evaluation_issues]));
      expect(reported).toMatchObject({ beta: [issue], plain: [] });
    }
    const secret = { key: "secret", is_remote_configuration: true, has_encrypted_payloads: true };
    await create("feature_flags", { ...secret, filters: { payloads: { true: "1" } } });
    const definitions = await read("feature_flags/local_evaluation/");
    expect(definitions.local_evaluation_issues).toEqual({
      secret: ["Encrypted payloads: the flag is excluded from local evaluation."],
    });
    expect(definitions.flags.map(({ key }: { key: string }) => key)).not.toContain("secret");
    const get = (...args: string[]) =>
      flagkeep(["flags", "get", "beta", ...args, "--data-dir", server.dataDir]);
    expect((await get()).stdout).toContain(`# SDKs cannot evaluate it locally. ${issue}\n`);
    expect(JSON.parse((await get("--json")).stdout).local_evaluation_issues).toEqual([issue]);
    const changed = await server.api(`/api/projects/1/feature_flags/${created.id}/`, {
      method: "PATCH",
      body: { filters: when([]), ensure_experience_continuity: true },
    });
    expect(((await changed.json()) as { local_evaluation_issues: string[] }).local_evaluation_issues).toEqual(
      ["Experience continuity: only the server knows the ID before a user was identified."],
    );
    // What it prints is still a file to import.
    const { stdout } = await get();
    expect(stdout).toContain("# SDKs cannot evaluate it locally. Experience continuity");
    const file = `${server.dataDir}-get.yaml`;
    await Bun.write(file, stdout);
    const again = await flagkeep(["flags", "import", file, "--data-dir", server.dataDir]);
    await Bun.file(file).delete();
    expect([again.code, again.stdout]).toEqual([0, "No differences.\n"]);
  }, 30_000);
});
