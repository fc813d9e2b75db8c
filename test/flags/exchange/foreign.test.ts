/** Flags of other products: what their files say, for whom it holds here, and what is told not to have a place. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { initialise } from "../../../src/accounts/initialise.ts";
import { type Metadata, openMetadata } from "../../../src/accounts/metadata.ts";
import { createProject } from "../../../src/accounts/projects.ts";
import { clientValue, evaluate } from "../../../src/flags/evaluate/evaluate.ts";
import { readForeign } from "../../../src/flags/exchange/foreign/read-foreign.ts";
import { importDocument } from "../../../src/flags/exchange/import-document.ts";
import { DocumentUnusable, parseFile } from "../../../src/flags/exchange/read-document.ts";
import { FlagInput, flagFields } from "../../../src/flags/fields.ts";
import { FlagSets } from "../../../src/flags/store/flag-sets.ts";
import { payloadCipher } from "../../../src/flags/store/payload-cipher.ts";
import { parseFields } from "../../../src/http/fields.ts";
import type { Json, JsonObject } from "../../../src/lib/json.ts";
import { requestFor } from "../make.ts";

const now = new Date("2026-03-01T12:00:00Z");
const folder = mkdtempSync(join(tmpdir(), "flagkeep-foreign-"));
let metadata: Metadata;
let organizationId: string;
beforeAll(() => {
  metadata = openMetadata(join(folder, "m.sqlite"));
  const made = initialise(metadata, { organization: "Acme", project: "One", email: "ann@example.com" }, now);
  organizationId = made.organization.id;
});
afterAll(() => {
  metadata.close();
  rmSync(folder, { recursive: true });
});

/** A file imported into a project of its own, with all the rules for flags. */
function imported(text: string, environment?: string) {
  const reading = readForeign(parseFile(text), environment);
  if (reading === undefined) throw new Error("The file is of no known product.");
  const project = createProject(metadata, { organizationId, name: "Own" }, null, now);
  importDocument(
    { metadata, payloads: payloadCipher(Buffer.alloc(32, 7)) },
    {
      ...{
        by: null,
        projectId: project.id,
        document: reading.document,
        groupTypes: [],
        now,
        isDryRun: false,
      },
      toFields: (item) => flagFields(parseFields(FlagInput, item)),
    },
  );
  const { set } = new FlagSets(metadata, () => []).of(project.id);
  return {
    ...reading,
    told: reading.notMapped.map(({ flag, part, reason }) => `${flag}, ${part}: ${reason}`),
    flag: (key: string) => reading.document.flags.find((flag) => flag.key === key)!,
    /** The value for somebody; false when off. */
    value(key: string, distinctId: string, personPropertyOverrides: JsonObject = {}): string | boolean {
      const result = evaluate(set, requestFor(distinctId, { personPropertyOverrides })).results.get(key);
      return result === undefined ? false : clientValue(result);
    },
    payload(key: string, distinctId: string): Json {
      const { payload } = evaluate(set, requestFor(distinctId)).results.get(key)!;
      return payload === null ? null : (JSON.parse(payload) as Json);
    },
    /** Shares in percent of the values over many persons. */
    shares(key: string, personProperties: JsonObject = {}): Record<string, number> {
      const counts: Record<string, number> = {};
      for (let i = 0; i < 2_000; i++) {
        const value = String(this.value(key, `person ${i}`, personProperties));
        counts[value] = (counts[value] ?? 0) + 0.05;
      }
      return counts;
    },
  };
}

/** Within five of so many percent. */
const near = (percent: number) => expect.closeTo(percent, -1);
const json = (value: unknown) => JSON.stringify(value);

describe("LaunchDarkly", () => {
  const state = {
    on: true,
    targets: [{ values: ["vip"], variation: 0 }],
    contextTargets: [],
    prerequisites: [],
    offVariation: 1,
    rules: [
      {
        _id: "1",
        description: "not for trials",
        variation: 1,
        clauses: [{ attribute: "plan", op: "in", values: ["trial"], contextKind: "user", negate: false }],
      },
      {
        _id: "2",
        rollout: {
          contextKind: "user",
          variations: [
            { variation: 0, weight: 25_000 },
            { variation: 1, weight: 75_000 },
          ],
        },
        clauses: [{ attribute: "email", op: "endsWith", values: ["@acme.com"], negate: false }],
      },
      {
        _id: "3",
        variation: 0,
        clauses: [{ attribute: "age", op: "greaterThan", values: [64], negate: false }],
      },
    ],
    fallthrough: { variation: 1 },
  };
  const boolean = {
    key: "new.checkout",
    name: "New checkout",
    kind: "boolean",
    tags: ["web"],
    variations: [
      { _id: "a", value: true, name: "On" },
      { _id: "b", value: false, name: "Off" },
    ],
    environments: { production: state, test: { ...state, on: false } },
  };

  test("answers of the API: targets, rules, shares, in their order", () => {
    const file = imported(json({ items: [boolean], totalCount: 1 }));
    expect([file.product, file.environment]).toEqual(["LaunchDarkly", "production"]);
    expect(file.told).toEqual([`new-checkout, its key: was "new.checkout": ask for the new one`]);
    expect(file.flag("new-checkout")).toMatchObject({ name: "New checkout", active: true, tags: ["web"] });
    expect(file.value("new-checkout", "vip", { plan: "trial" })).toBe(true);
    expect(file.value("new-checkout", "x", { plan: "trial", age: 70 })).toBe(false);
    expect(file.value("new-checkout", "x", { age: 70 })).toBe(true);
    expect(file.value("new-checkout", "x", { age: 60 })).toBe(false);
    // The rule decides for everybody whom it fits: those outside of its share are off whatever comes behind.
    expect(file.shares("new-checkout", { email: "ann@acme.com", age: 70 })).toEqual({
      true: near(25),
      false: near(75),
    });
  });

  test("the environment: the named one, else production, else it is asked for", () => {
    expect(imported(json({ items: [boolean] }), "test").flag("new-checkout").active).toBe(false);
    expect(() => readForeign({ items: [boolean] } as never, "nope")).toThrow("production, test");
    const others = { ...boolean, environments: { a: state, b: state } };
    expect(() => readForeign({ items: [others] } as never)).toThrow(DocumentUnusable);
  });

  test("flag data: text and JSON variations, segments, prerequisites, own shares of a rule", () => {
    const file = imported(
      json({
        flags: {
          button: {
            on: true,
            variations: ["blue", "dark red", { hex: "#0a0" }],
            offVariation: 0,
            prerequisites: [{ key: "base", variation: 0 }],
            rules: [
              {
                id: "r",
                clauses: [{ attribute: "", op: "segmentMatch", values: ["beta"] }],
                rollout: {
                  variations: [
                    { variation: 0, weight: 10_000 },
                    { variation: 2, weight: 90_000 },
                  ],
                },
              },
            ],
            fallthrough: {
              rollout: {
                variations: [
                  { variation: 0, weight: 50_000 },
                  { variation: 1, weight: 30_000 },
                  { variation: 2, weight: 20_000 },
                ],
              },
            },
          },
          base: {
            on: true,
            variations: [true, false],
            rules: [{ clauses: [{ attribute: "off", op: "in", values: [true] }], variation: 1 }],
            fallthrough: { variation: 0 },
          },
        },
        segments: {
          beta: {
            included: ["ann"],
            excluded: ["bob"],
            rules: [{ clauses: [{ attribute: "country", op: "in", values: ["de", "fr"] }] }],
          },
        },
      }),
    );
    expect(file.told).toEqual(["button, off variation: served blue; here a flag that is off has no value"]);
    expect(file.shares("button", { country: "de" })).toEqual({ blue: near(10), "variant-3": near(90) });
    expect(file.shares("button")).toEqual({ blue: near(50), "variant-2": near(30), "variant-3": near(20) });
    // The prerequisite.
    expect(file.value("button", "x", { off: true })).toBe(false);
    expect(file.flag("button").filters.payloads).toEqual({
      "variant-2": '"dark red"',
      "variant-3": '{"hex":"#0a0"}',
    });
    // Of bob, who is excluded, the last rule decides.
    expect(file.value("button", "bob", { country: "de" })).toBe(file.value("button", "bob"));
  });

  const clauses: [clause: JsonObject, yes: JsonObject, no: JsonObject][] = [
    [{ op: "in", values: ["a", "b"] }, { x: "b" }, { x: "c" }],
    [{ op: "startsWith", values: ["a.", "b"] }, { x: "a.c" }, { x: "abc" }],
    [{ op: "endsWith", values: ["z"] }, { x: "az" }, { x: "za" }],
    [{ op: "contains", values: ["(x)"] }, { x: "a(x)b" }, { x: "axb" }],
    [{ op: "contains", values: ["X"] }, { x: "aXb" }, { x: "axb" }],
    [{ op: "matches", values: ["^a+$"] }, { x: "aa" }, { x: "ab" }],
    [{ op: "lessThan", values: [3] }, { x: 2 }, { x: 3 }],
    [{ op: "greaterThanOrEqual", values: [3] }, { x: 3 }, { x: 2 }],
    [{ op: "before", values: [Date.parse("2025-01-01")] }, { x: "2024-12-31" }, { x: "2025-06-01" }],
    [{ op: "after", values: ["2025-01-01T00:00:00Z"] }, { x: "2025-06-01" }, { x: "2024-12-31" }],
    [{ op: "semVerGreaterThan", values: ["1.9.0"] }, { x: "1.10.0" }, { x: "1.8.0" }],
    [{ op: "semVerEqual", values: ["2.0.0"] }, { x: "2.0.0" }, { x: "2.0.1" }],
  ];
  for (const [clause, yes, no] of clauses) {
    for (const negate of [false, true]) {
      test(`${negate ? "not " : ""}${json(clause)}`, () => {
        const rules = [{ clauses: [{ attribute: "x", ...clause, negate }], variation: 0 }];
        const flag = { on: true, variations: [true, false], rules, fallthrough: { variation: 1 } };
        const file = imported(json({ flags: { f: flag }, segments: {} }));
        expect(file.told).toEqual([]);
        expect(file.value("f", "p", yes)).toBe(!negate);
        expect(file.value("f", "p", no)).toBe(negate);
        // Whoever lacks the property is not in the rule, and so is in its opposite.
        expect(file.value("f", "p")).toBe(negate);
      });
    }
  }

  test("what has no counterpart is told, and the flag is switched off", () => {
    const rule = {
      clauses: [{ attribute: "x", op: "in", values: [1], contextKind: "company" }],
      variation: 0,
    };
    const flag = { on: true, variations: [true, false], rules: [rule], fallthrough: { variation: 1 } };
    const file = imported(json({ flags: { f: flag, g: { ...flag, rules: [] } } }));
    expect(file.told).toEqual([
      "f, rule 1: it is about contexts of the kind company",
      "f, the flag: is switched off until you have looked at it",
    ]);
    expect([file.flag("f").active, file.flag("g").active]).toEqual([false, true]);
  });

  test("any chain of rules decides as the first rule that fits", () => {
    const value = fc.constantFrom("a", "b", "c");
    const rules = fc.array(
      fc.record({ values: fc.array(value, { minLength: 1 }), on: fc.boolean(), negate: fc.boolean() }),
      {
        maxLength: 5,
      },
    );
    fc.assert(
      fc.property(rules, fc.boolean(), fc.option(value, { nil: undefined }), (chain, last, x) => {
        const flag = {
          on: true,
          variations: [true, false],
          rules: chain.map(({ values, on, negate }) => ({
            clauses: [{ attribute: "x", op: "in", values, negate }],
            variation: on ? 0 : 1,
          })),
          fallthrough: { variation: last ? 0 : 1 },
        };
        const fits = chain.find(({ values, negate }) => (x !== undefined && values.includes(x)) !== negate);
        const file = imported(json({ flags: { f: flag } }));
        expect(file.value("f", "p", x === undefined ? {} : { x })).toBe(fits?.on ?? last);
      }),
      { numRuns: 25 },
    );
  });
});

describe("Unleash", () => {
  const exported = {
    features: [
      { name: "demo", description: "A demo", type: "release", project: "default", stale: false },
      { name: "child", description: null },
    ],
    featureStrategies: [
      {
        name: "flexibleRollout",
        featureName: "demo",
        parameters: { groupId: "demo", rollout: "40", stickiness: "default" },
        constraints: [
          {
            contextName: "appName",
            operator: "IN",
            values: ["shop"],
            inverted: false,
            caseInsensitive: false,
          },
        ],
        segments: [1],
        variants: [],
      },
      { name: "userWithId", featureName: "demo", parameters: { userIds: "ann, bob" }, constraints: [] },
      { name: "flexibleRollout", featureName: "child", parameters: { rollout: "100" }, constraints: [] },
    ],
    featureEnvironments: [
      {
        ...{ environment: "development", featureName: "demo", enabled: true },
        variants: [
          { name: "red", weight: 300, weightType: "fix", payload: { type: "json", value: '{"a":1}' } },
          { name: "green", weight: 700, weightType: "variable" },
        ],
      },
      { environment: "development", featureName: "child", enabled: true, variants: [] },
    ],
    segments: [
      {
        id: 1,
        name: "eu",
        constraints: [
          { contextName: "region", operator: "STR_STARTS_WITH", values: ["eu-"], caseInsensitive: true },
        ],
      },
    ],
    featureTags: [{ featureName: "demo", tagType: "simple", tagValue: "web" }],
    dependencies: [{ feature: "child", parent: "demo", enabled: true }],
  };

  test("exports: strategies are a choice, variants their shares, parents are needed", () => {
    const file = imported(json(exported));
    expect([file.product, file.environment, file.told]).toEqual(["Unleash", "development", []]);
    expect(file.flag("demo")).toMatchObject({ name: "A demo", tags: ["web"] });
    expect(file.shares("demo")).toEqual({ false: near(100) });
    const inEurope = { appName: "shop", region: "EU-west" };
    expect(file.shares("demo", inEurope)).toEqual({ false: near(60), red: near(12), green: near(28) });
    expect(["red", "green"]).toContain(file.value("demo", "ann") as string);
    expect(file.payload("demo", "ann")).toEqual(file.value("demo", "ann") === "red" ? { a: 1 } : null);
    expect([file.value("child", "ann"), file.value("child", "kim")]).toEqual([true, false]);
  });

  test("what clients read; what has no counterpart", () => {
    const file = imported(
      json({
        version: 2,
        features: [
          {
            name: "f",
            enabled: true,
            strategies: [
              { name: "default", constraints: [{ contextName: "n", operator: "NUM_EQ", value: "5" }] },
              {
                name: "default",
                constraints: [{ contextName: "v", operator: "SEMVER_GT", value: "1.2.3", inverted: true }],
              },
            ],
          },
          {
            name: "g",
            enabled: true,
            strategies: [{ name: "remoteAddress", parameters: { IPs: "10.0.0.1" } }],
          },
        ],
      }),
    );
    expect(file.value("f", "p", { n: 5, v: "2.0.0" })).toBe(true);
    expect(file.value("f", "p", { n: 6, v: "2.0.0" })).toBe(false);
    expect(file.value("f", "p", { v: "1.0.0" })).toBe(true);
    expect(file.told[0]).toBe("g, strategy 1 (remoteAddress): the strategy remoteAddress has no counterpart");
    expect(file.flag("g").active).toBe(false);
  });
});

describe("Flagsmith", () => {
  test("feature exports", () => {
    const base = { default_enabled: false, is_server_key_only: false, initial_value: null, type: "unicode" };
    const file = imported(
      json([
        { ...base, name: "plain", value: null, enabled: true, multivariate: [] },
        { ...base, name: "limits", value: '{"max":3}', enabled: true, multivariate: [] },
        { ...base, name: "off", value: null, enabled: false, multivariate: [] },
        {
          ...{ ...base, name: "colour", value: "blue", enabled: true },
          multivariate: [
            { percentage_allocation: 30, default_percentage_allocation: 10, value: "red", type: "unicode" },
          ],
        },
      ]),
    );
    expect([file.product, file.told]).toEqual(["Flagsmith", []]);
    expect(file.value("plain", "p")).toBe(true);
    expect(file.payload("limits", "p")).toBe('{"max":3}');
    expect(file.flag("off").active).toBe(false);
    expect(file.shares("colour")).toEqual({ red: near(30), blue: near(70) });
  });

  test("environment documents: segments by priority, identities first", () => {
    const state = (enabled: boolean, value: unknown, more: object = {}) => ({
      feature: { id: 1, name: "f", type: "STANDARD" },
      ...{ enabled, feature_state_value: value, multivariate_feature_state_values: [], ...more },
    });
    const segment = (name: string, priority: number, condition: object, enabled: boolean) => ({
      name,
      rules: [{ type: "ALL", conditions: [], rules: [{ type: "ANY", conditions: [condition], rules: [] }] }],
      feature_states: [state(enabled, null, { feature_segment: { priority } })],
    });
    const file = imported(
      json({
        name: "Production",
        feature_states: [state(false, null)],
        project: {
          segments: [
            segment("pro", 2, { operator: "EQUAL", property_: "plan", value: "pro" }, true),
            segment("old", 1, { operator: "LESS_THAN", property_: "version", value: "2.0.0:semver" }, false),
          ],
        },
        identity_overrides: [{ identifier: "ann", identity_features: [state(true, null)] }],
      }),
    );
    expect(file.told).toEqual([]);
    expect(file.value("f", "p", { plan: "pro" })).toBe(true);
    expect(file.value("f", "p", { plan: "pro", version: "1.5.0" })).toBe(false);
    expect(file.value("f", "p")).toBe(false);
    expect(file.value("f", "ann", { version: "1.5.0" })).toBe(true);
  });
});

describe("GrowthBook", () => {
  test("what SDKs read: forced values, coverage, experiments", () => {
    const file = imported(
      json({
        features: {
          plain: { defaultValue: true },
          rollout: {
            defaultValue: false,
            rules: [
              { condition: { id: { $in: ["ann"] } }, force: false },
              { force: true, coverage: 0.2, hashAttribute: "id" },
              {
                condition: { $or: [{ country: "de" }, { age: { $gte: 65 } }], beta: { $exists: true } },
                force: true,
              },
            ],
          },
          banner: {
            defaultValue: "none",
            rules: [
              {
                key: "test",
                variations: ["a", "b"],
                weights: [0.3, 0.7],
                coverage: 0.5,
                hashAttribute: "id",
              },
            ],
          },
        },
      }),
    );
    expect([file.product, file.told]).toEqual(["GrowthBook", []]);
    expect(file.value("plain", "p")).toBe(true);
    expect(file.shares("rollout")).toEqual({ true: near(20), false: near(80) });
    // Whoever is outside of a rule's coverage goes on to the next one.
    expect(file.shares("rollout", { country: "de", beta: 1 })).toEqual({ true: near(100) });
    expect(file.value("rollout", "ann", { country: "de", beta: 1 })).toBe(false);
    expect(file.shares("banner")).toEqual({ a: near(15), b: near(35), none: near(50) });
  });

  test("answers of the API, with values as text", () => {
    const feature = (id: string, more: object) => ({
      ...{ id, archived: false, description: "", valueType: "boolean", defaultValue: "false", tags: ["t"] },
      environments: { production: { enabled: true, defaultValue: "false", rules: [], ...more } },
    });
    const file = imported(
      json({
        features: [
          feature("on", {
            rules: [{ type: "force", value: "true", condition: '{"plan":{"$ne":"free"}}', enabled: true }],
          }),
          feature("off", { enabled: false }),
          feature("exp", {
            rules: [{ type: "experiment-ref", experimentId: "e", enabled: true, variations: [] }],
          }),
        ],
      }),
    );
    expect(file.environment).toBe("production");
    expect([file.value("on", "p"), file.value("on", "p", { plan: "free" })]).toEqual([true, false]);
    expect([file.flag("off").active, file.flag("exp").active]).toEqual([false, false]);
    expect(file.told[0]).toContain("exp, rule 1: a rule of the kind experiment-ref");
  });
});

test("Flipt: variants and booleans, segments of both kinds", () => {
  const file = imported(`
version: "1.4"
namespace: default
flags:
  - key: flag1
    name: Flag one
    type: VARIANT_FLAG_TYPE
    enabled: true
    variants:
      - {key: v1, attachment: {pi: 3.14}}
      - {key: v2}
      - {key: other, default: true}
    rules:
      - segment: team
        distributions: [{variant: v1, rollout: 60}, {variant: v2, rollout: 40}]
      - segments: [german, adult]
        operator: AND_SEGMENT_OPERATOR
        distributions: [{variant: v2, rollout: 100}]
  - key: flag2
    type: BOOLEAN_FLAG_TYPE
    enabled: false
    rollouts:
      - segment: {key: german, value: true}
      - threshold: {percentage: 30, value: true}
segments:
  - key: team
    match_type: ANY_MATCH_TYPE
    constraints:
      - {type: STRING_COMPARISON_TYPE, property: email, operator: suffix, value: "@acme.com"}
      - {type: ENTITY_ID_COMPARISON_TYPE, property: entity, operator: isoneof, value: '["ann","bob"]'}
  - key: german
    match_type: ALL_MATCH_TYPE
    constraints: [{type: STRING_COMPARISON_TYPE, property: country, operator: eq, value: de}]
  - key: adult
    match_type: ALL_MATCH_TYPE
    constraints: [{type: NUMBER_COMPARISON_TYPE, property: age, operator: gte, value: "18"}]
`);
  expect([file.product, file.told]).toEqual(["Flipt", []]);
  expect(file.shares("flag1", { email: "x@acme.com" })).toEqual({ v1: near(60), v2: near(40) });
  expect(["v1", "v2"]).toContain(file.value("flag1", "ann") as string);
  expect(file.value("flag1", "p", { country: "de", age: 20 })).toBe("v2");
  expect(file.value("flag1", "p", { country: "de", age: 17 })).toBe("other");
  expect(file.shares("flag2")).toEqual({ true: near(30), false: near(70) });
  expect(file.value("flag2", "p", { country: "de" })).toBe(true);
});

test("flagd: targeting in JsonLogic, shared evaluators, shares", () => {
  const file = imported(
    json({
      $schema: "https://flagd.dev/schema/v0/flags.json",
      flags: {
        simple: { state: "ENABLED", variants: { on: true, off: false }, defaultVariant: "on" },
        disabled: { state: "DISABLED", variants: { on: true, off: false }, defaultVariant: "on" },
        header: {
          state: "ENABLED",
          variants: { red: "#FF0000", blue: "#0000FF", green: "#00FF00" },
          defaultVariant: "red",
          targeting: {
            if: [
              { $ref: "isTeam" },
              { fractional: [{ var: "email" }, ["blue", 25], ["green", 75]] },
              { in: [{ var: "country" }, ["de", "fr"]] },
              "blue",
              null,
            ],
          },
        },
        version: {
          state: "ENABLED",
          variants: { true: true, false: false },
          defaultVariant: "false",
          targeting: {
            and: [{ sem_ver: [{ var: "v" }, ">=", "2.0.0"] }, { "!": { "==": [{ var: "os" }, "ios"] } }],
          },
        },
      },
      $evaluators: { isTeam: { ends_with: [{ var: "email" }, "@acme.com"] } },
    }),
  );
  expect([file.product, file.told]).toEqual(["flagd", []]);
  expect([file.value("simple", "p"), file.flag("disabled").active]).toEqual([true, false]);
  expect(file.shares("header", { email: "x@acme.com" })).toEqual({ blue: near(25), green: near(75) });
  expect(file.value("header", "p", { country: "fr" })).toBe("blue");
  expect(file.value("header", "p")).toBe("red");
  expect(file.payload("header", "p")).toBe("#FF0000");
  expect(file.value("version", "p", { v: "2.1.0" })).toBe(true);
  expect(file.value("version", "p", { v: "2.1.0", os: "ios" })).toBe(false);
  expect(file.value("version", "p", { v: "1.9.0" })).toBe(false);
});

test("GO Feature Flag: queries in both languages, percentages, rollouts over time", () => {
  const file = imported(`
new-admin-access:
  variations: {enabled: true, disabled: false}
  targeting:
    - name: beta
      query: beta eq "true" and (email ew "@acme.com" or not (age lt 18))
      variation: enabled
    - query: '{"==":[{"var":"plan"},"pro"]}'
      percentage: {enabled: 30, disabled: 70}
  defaultRule: {variation: disabled}
banner:
  variations: {A: hello, B: good day, C: 3}
  defaultRule: {percentage: {A: 50, B: 30, C: 20}}
slow:
  variations: {"on": true, "off": false}
  defaultRule:
    progressiveRollout:
      initial: {variation: "off", date: 2026-01-01T00:00:00Z}
      end: {variation: "on", date: 2026-06-01T00:00:00Z}
retired:
  variations: {"on": true, "off": false}
  disable: true
  defaultRule: {variation: "on"}
broken:
  variations: {"on": true, "off": false}
  targeting: [{query: 'a eq "x', variation: "on"}]
  defaultRule: {variation: "off"}
`);
  expect(file.product).toBe("GO Feature Flag");
  expect(file.value("new-admin-access", "p", { beta: "true", email: "x@acme.com" })).toBe(true);
  expect(file.value("new-admin-access", "p", { beta: "true", age: 20 })).toBe(true);
  expect(file.value("new-admin-access", "p", { beta: "true", age: 17 })).toBe(false);
  expect(file.shares("new-admin-access", { plan: "pro" })).toEqual({ true: near(30), false: near(70) });
  expect(file.shares("banner")).toEqual({ hello: near(50), B: near(30), C: near(20) });
  expect([file.value("slow", "p"), file.flag("retired").active, file.flag("broken").active]).toEqual([
    true,
    false,
    false,
  ]);
  expect(file.told).toEqual([
    "slow, the default rule: rolls out over time; here everybody is where it ends",
    "broken, rule 1: its query can not be read: a quotation mark is missing",
    "broken, the flag: is switched off until you have looked at it",
  ]);
});

test("files of no product are no files of one, whatever is in them", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      expect(readForeign(value as Json)).toBeUndefined();
    }),
  );
  expect(readForeign({ flagkeep_flags: 1, flags: [], cohorts: [] })).toBeUndefined();
});

test("whatever stands in the members of a product's file, it is read or told", () => {
  const key = fc.constantFrom(
    "key",
    "name",
    "op",
    "values",
    "if",
    "var",
    "in",
    "rules",
    "clauses",
    "variation",
    "query",
  );
  const wild = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom<Json>(null, true, 0, 1, "a", "", -1e308),
      fc.array(tie("node"), { maxLength: 3 }),
      fc.dictionary(key, tie("node"), { maxKeys: 4 }),
    ),
  })).node as fc.Arbitrary<Json>;
  fc.assert(
    fc.property(wild, wild, wild, (a, b, c) => {
      for (const root of [
        {
          flags: { f: { on: true, variations: [true, false], rules: a, fallthrough: b, targets: c } },
          segments: a,
        },
        { features: [{ name: "f", strategies: [a, b], variants: c }], segments: a },
        { features: { f: { defaultValue: a, rules: [b, { condition: c, force: true }] } } },
        {
          flags: {
            f: { state: "ENABLED", variants: { a: true, b: false }, targeting: a, defaultVariant: b },
          },
        },
        { flags: [{ key: "f", enabled: true, rules: a, variants: b, rollouts: c }], segments: [a] },
        { f: { variations: { a: 1, b: a }, defaultRule: b, targeting: [{ query: c }] } },
        {
          feature_states: [{ feature: { name: "f" }, enabled: true, feature_state_value: a }],
          project: { segments: b },
        },
      ]) {
        expect(readForeign(root as never)?.document.flags).toHaveLength(1);
      }
    }),
  );
});
