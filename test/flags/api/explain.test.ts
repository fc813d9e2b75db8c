/** Why a flag has its value: over the API, and as text for people. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { getGuard } from "../../../src/accounts/api/guard.ts";
import { createKey } from "../../../src/accounts/personal-keys.ts";
import { formatExplanation } from "../../../src/flags/api/explanation-text.ts";
import { rolloutPosition } from "../../../src/flags/evaluate/bucketing.ts";
import { explainFlag } from "../../../src/flags/evaluation-context/explanation.ts";
import type { ExplanationBody } from "../../../src/flags/evaluation-context/explanation-shape.ts";
import { FlagSets, groupTypesFrom } from "../../../src/flags/store/flag-sets.ts";
import { createApp } from "../../../src/http/app.ts";
import { TrustedProxies } from "../../../src/http/trusted-proxies.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { explainOperations } from "../../../src/operations/flags.ts";
import { operationRoutes } from "../../../src/operations/routes.ts";
import { SqlitePersonReader } from "../../../src/persons/sqlite-person-reader.ts";
import { getError } from "../../http/json-schema.ts";
import { event, set } from "../../persons/support.ts";
import { dependsOn, inCohort, person, when } from "../make.ts";
import { fixedNow, TestEvaluation } from "./support.ts";

let server: TestEvaluation;
let app: ReturnType<typeof createApp>;
let flagSets: FlagSets;
let halfId: number;
let ann: string;
beforeAll(() => {
  server = new TestEvaluation();
  const { metadata, people } = server;
  flagSets = new FlagSets(metadata, groupTypesFrom(people.db));
  app = createApp({
    guard: getGuard(metadata),
    log: { error: () => {} },
    routes: operationRoutes(explainOperations, {
      metadata,
      flagSets,
      persons: new SqlitePersonReader(people.db),
    }),
    origins: new TrustedProxies([]),
    now: () => fixedNow,
  });
  people.apply(
    set("ann", { plan: "pro", visits: 3 }),
    event({
      event: "$groupidentify",
      properties: { $group_type: "company", $group_key: "acme", $group_set: { size: "large" } },
    }),
  );
  ann = people.person("ann")!.uuid;
  const half = server.flag("half", when([], 50));
  halfId = half.id;
  const cohort = server.cohort({
    name: "Visitors",
    filters: { properties: { type: "AND", values: [person("visits", "gt", "10")] } },
  });
  server.flag("steps", {
    groups: [
      { properties: [person("plan", "exact", "free")], rollout_percentage: 100 },
      { properties: [inCohort(cohort)], rollout_percentage: 100 },
      { properties: [dependsOn(String(half.id))], rollout_percentage: 0 },
      {
        properties: [{ key: "size", type: "group", operator: "exact", value: "large", group_type_index: 0 }],
        rollout_percentage: 100,
        aggregation_group_type_index: 0,
      },
      { properties: [person("plan", "exact", "pro"), person("email", "is_not_set", "")] },
    ],
    multivariate: {
      variants: [
        { key: "control", rollout_percentage: 50 },
        { key: "test", rollout_percentage: 50 },
      ],
    },
    payloads: { control: "1", test: "2" },
  });
  server.flag("inactive", when([]), { active: false });
});
afterAll(() => server[Symbol.dispose]());

async function ask(path: string, key: string = server.initialized.personal_api_key) {
  const response = await app.handle(
    new Request(`http://localhost/api/projects/1/feature_flags/${path}`, {
      headers: { authorization: `Bearer ${key}` },
    }),
  );
  return { status: response.status, body: (await response.json()) as ExplanationBody & JsonObject };
}

describe("over the API", () => {
  test("contains for every condition set the comparisons, the hash position and the result", async () => {
    const { status, body } = await ask("steps/explain/?distinct_id=ann");
    expect(status).toBe(200);
    const isHalfOn = rolloutPosition("half", "ann") <= 0.5;
    expect(body).toMatchObject({
      flag_key: "steps",
      distinct_id: "ann",
      person: { uuid: ann },
      status: "evaluated",
      value: expect.stringMatching(/^(control|test)$/),
      payload: expect.stringMatching(/^[12]$/),
      failed: false,
      reason: { code: "condition_match", condition_index: 4, description: "Matched condition set 5" },
      dependencies: [{ id: halfId, key: "half", value: isHalfOn }],
    });
    const [free, visitors, dependent, company, pro] = body.conditions;
    expect(free).toMatchObject({
      index: 0,
      outcome: "no_condition_match",
      identity: { kind: "distinct_id", id: "ann" },
      filters: [
        {
          type: "person",
          key: "plan",
          operator: "exact",
          value: "free",
          found: "pro",
          source: "stored",
          result: "mismatch",
        },
      ],
    });
    expect(visitors!.filters[0]).toMatchObject({ type: "cohort", source: "cohort", result: "mismatch" });
    expect(dependent!.filters[0]).toMatchObject({ type: "flag", source: "flag", found: isHalfOn });
    expect(company).toMatchObject({ outcome: "no_group_type", identity: null, filters: [], rollout: null });
    expect(pro!.filters.map(({ result, source }) => [result, source])).toEqual([
      ["match", "stored"],
      ["match", "missing"],
    ]);
    expect(body.variant).toMatchObject({
      chosen: body.value as string,
      is_forced: false,
      hashed: "steps.annvariant",
      shares: [
        { key: "control", from: 0, below: 0.5 },
        { key: "test", from: 0.5, below: 1 },
      ],
    });
  });

  test("agrees with the values that clients get", async () => {
    for (const distinct_id of ["ann", "bob", "7", "a b"]) {
      const values = await server.values({ distinct_id });
      for (const key of ["half", "steps"]) {
        const { body } = await ask(`${key}/explain/?distinct_id=${encodeURIComponent(distinct_id)}`);
        expect([key, distinct_id, body.value]).toEqual([key, distinct_id, values[key]!]);
      }
    }
  });

  test("values of the request override stored ones", async () => {
    const query = new URLSearchParams({
      distinct_id: "ann",
      person_properties: '{"plan":"free"}',
      groups: '{"company":"acme"}',
    });
    const { body } = await ask(`steps/explain?${query}`);
    expect(body.reason).toMatchObject({ condition_index: 0 });
    expect(body.conditions[0]!.filters[0]).toMatchObject({ found: "free", source: "override" });
    const others = new URLSearchParams({
      distinct_id: "bob",
      person_properties: '{"plan":"none"}',
      groups: '{"company":"acme"}',
      group_properties: '{"company":{"size":"small"}}',
    });
    const small = await ask(`steps/explain/?${others}`);
    expect(small.body.conditions[3]).toMatchObject({
      outcome: "no_condition_match",
      identity: { kind: "group", id: "acme" },
      filters: [{ found: "small", source: "override", result: "mismatch" }],
    });
  });

  test("by id as by key", async () => {
    const byId = await ask(`${halfId}/explain/?distinct_id=ann`);
    const byKey = await ask("half/explain/?distinct_id=ann");
    expect(byId).toEqual(byKey);
    expect(byId.body.conditions[0]!.rollout).toEqual({
      percentage: 50,
      hashed: "half.ann",
      place: rolloutPosition("half", "ann"),
      is_in: rolloutPosition("half", "ann") <= 0.5,
    });
  });

  test("a flag that is switched off, and one that does not exist", async () => {
    const { body } = await ask("inactive/explain/?distinct_id=ann");
    expect(body).toMatchObject({ status: "inactive", value: null, reason: null, conditions: [] });
    expect((await ask("nothing/explain/?distinct_id=ann")).status).toBe(404);
  });

  test("refusals", async () => {
    expect((await ask("half/explain/")).body).toMatchObject({ attr: "distinct_id", code: "required" });
    for (const bad of ["{", "[]", "7"]) {
      const { status, body } = await ask(`half/explain/?distinct_id=a&groups=${encodeURIComponent(bad)}`);
      expect([status, body.attr]).toEqual([400, "groups"]);
    }
    const getKey = (scopes: string[]) =>
      createKey(server.metadata, { userEmail: "ann@example.com", label: "t", scopes }, { now: fixedNow })
        .value;
    expect((await ask("half/explain/?distinct_id=a", getKey(["cohort:read"]))).status).toBe(403);
    expect((await ask("half/explain/?distinct_id=a", getKey(["feature_flag:read"]))).status).toBe(200);
    expect((await ask("half/explain/?distinct_id=a", "phx_wrong")).status).toBe(401);
  });

  test("nothing is written", async () => {
    const before = server.people.dump();
    await ask("steps/explain/?distinct_id=ann");
    expect(server.people.dump()).toEqual(before);
  });

  test("is documented, and every explanation has the documented shape", async () => {
    const response = await app.handle(new Request("http://localhost/api/schema/"));
    const document = (await response.json()) as JsonObject;
    const paths = document.paths as Record<string, { get: { responses: Record<string, JsonObject> } }>;
    const operation = paths["/api/projects/{project_id}/feature_flags/{id}/explain/"]!.get;
    const { schema, example } = (operation.responses["200"]!.content as Record<string, JsonObject>)[
      "application/json"
    ]!;
    const schemas = (document.components as { schemas: never }).schemas;
    const bodies = [example, (await ask("steps/explain/?distinct_id=ann")).body];
    bodies.push((await ask("inactive/explain/?distinct_id=ann")).body);
    for (const body of bodies) expect(getError(body, schema as never, schemas)).toBeUndefined();
  });
});

describe("for people", () => {
  const getText = async (flagKey: string, distinctId: string, more: object = {}) => {
    const question = { projectId: 1, timezone: "UTC", flagKey, distinctId, now: fixedNow, ...more };
    return formatExplanation(
      await explainFlag(new SqlitePersonReader(server.people.db), flagSets.get(1).set, question),
    );
  };

  test("each step in a line", async () => {
    expect((await getText("steps", "ann")).replace(ann, "UUID")).toBe(
      [
        'steps is on, variant control for "ann".',
        "Why: Matched condition set 5.",
        "",
        "Person UUID.",
        "Payload: 1",
        "Depends on half: on.",
        "Condition set 1 does not match",
        '  no   plan exact "free": found "pro" (stored)',
        "  yes  rollout 100%",
        "Condition set 2 does not match",
        "  no   in cohort 1: no member; Cohort “Visitors”",
        "  yes  rollout 100%",
        "Condition set 3 matches, but is excluded by the rollout",
        "  yes  flag 1 is on: it is on; Flag “half”",
        '  no   rollout 0%: "steps.ann" hashes to 80.63%',
        "Condition set 4 requires a group that is not set",
        "Condition set 5 matches",
        '  yes  plan exact "pro": found "pro" (stored)',
        '  yes  email is_not_set "": missing',
        "  yes  rollout 100%",
        "Variant control",
        '  "steps.annvariant" hashes to 5.09%',
        "  -> control: 0.00% to 50.00%",
        "     test: 50.00% to 100.00%",
      ].join("\n"),
    );
  });

  test("the rollout of a plain flag", async () => {
    const place = (rolloutPosition("half", "nobody") * 100).toFixed(2);
    const isOn = rolloutPosition("half", "nobody") <= 0.5;
    expect((await getText("half", "nobody")).split("\n")).toEqual([
      `half is ${isOn ? "on" : "off"} for "nobody".`,
      `Why: ${isOn ? "Matched condition set 1" : "Out of rollout bound"}.`,
      "",
      'No person has the distinct id "nobody"; only the given properties apply.',
      `Condition set 1 ${isOn ? "matches" : "matches, but is excluded by the rollout"}`,
      "  yes  no filters: everyone",
      `  ${isOn ? "yes" : "no "}  rollout 50%: "half.nobody" hashes to ${place}%`,
    ]);
  });

  test("flags that are not computed", async () => {
    expect(await getText("inactive", "ann")).toStartWith("inactive is disabled");
    expect(await getText("nothing", "ann")).toBe("Flag nothing does not exist.");
  });
});
