/** The two tables of the contract (import 3): a missing attribute, and a flag without rules, per product. */

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../../src/lib/json.ts";
import { foreignImports, json } from "./support.ts";

const imported = foreignImports();

/** A file of one flag `f` that is on where a condition on the attribute `plan` holds. */
const launchDarkly = (clause: object) =>
  json({
    flags: {
      f: {
        ...{ on: true, variations: [true, false], offVariation: 1, fallthrough: { variation: 1 } },
        rules: [{ variation: 0, clauses: [{ attribute: "plan", op: "in", values: ["a"], ...clause }] }],
      },
    },
  });
const flagsmith = (operator: string) => {
  const feature = { id: 1, name: "f" };
  const conditions = [{ property_: "plan", operator, value: "a" }];
  const rules = [{ type: "ALL", rules: [{ type: "ANY", rules: [], conditions }], conditions: [] }];
  const segments = [{ id: 1, name: "s", rules, feature_states: [{ feature, enabled: true }] }];
  return json({ feature_states: [{ feature, enabled: false }], project: { segments } });
};
const unleash = (constraint: object) => {
  const constraints = [{ contextName: "plan", values: ["a"], ...constraint }];
  return json({
    features: [{ name: "f", enabled: true, strategies: [{ name: "default", constraints }] }],
  });
};
const growthBook = (plan: unknown) =>
  json({ features: { f: { defaultValue: false, rules: [{ condition: { plan }, force: true }] } } });
const flagd = (condition: object) =>
  json({
    flags: {
      f: {
        ...{ state: "ENABLED", variants: { on: true, off: false }, defaultVariant: "off" },
        targeting: { if: [condition, "on", "off"] },
      },
    },
  });
const flipt = (operator: string, value = "a") => {
  const type = "STRING_COMPARISON_TYPE";
  return json({
    namespace: "default",
    flags: [
      {
        ...{ key: "f", type: "BOOLEAN_FLAG_TYPE", enabled: false },
        rollouts: [{ segment: { key: "s", value: true } }],
      },
    ],
    segments: [
      {
        ...{ key: "s", match_type: "ALL_MATCH_TYPE" },
        constraints: [{ type, property: "plan", operator, value }],
      },
    ],
  });
};
const goFeatureFlag = (query: string) =>
  json({
    f: {
      variations: { on: true, off: false },
      targeting: [{ query, variation: "on" }],
      defaultRule: { variation: "off" },
    },
  });
const postHog = (operator: string) =>
  json({
    results: [
      {
        ...{ id: 1, key: "f", active: true },
        filters: {
          groups: [
            { properties: [{ key: "plan", type: "person", operator, value: "a" }], rollout_percentage: 100 },
          ],
        },
      },
    ],
  });

describe("a condition for a person without the attribute", () => {
  // With the attribute: whether "a" and "b" meet it; null where the condition does not look at the value.
  const rows: [product: string, file: string, without: boolean, a: boolean, b: boolean][] = [
    ["LaunchDarkly in", launchDarkly({}), false, true, false],
    ["LaunchDarkly in, negated", launchDarkly({ negate: true }), false, false, true],
    ["Flagsmith EQUAL", flagsmith("EQUAL"), false, true, false],
    ["Flagsmith NOT_EQUAL", flagsmith("NOT_EQUAL"), false, false, true],
    ["Flagsmith NOT_CONTAINS", flagsmith("NOT_CONTAINS"), false, false, true],
    ["Flagsmith IS_SET", flagsmith("IS_SET"), false, true, true],
    ["Flagsmith IS_NOT_SET", flagsmith("IS_NOT_SET"), true, false, false],
    ["Unleash IN", unleash({ operator: "IN" }), false, true, false],
    ["Unleash IN, inverted", unleash({ operator: "IN", inverted: true }), true, false, true],
    ["Unleash NOT_IN", unleash({ operator: "NOT_IN" }), true, false, true],
    [
      "Unleash STR_CONTAINS, inverted",
      unleash({ operator: "STR_CONTAINS", inverted: true }),
      true,
      false,
      true,
    ],
    ["GrowthBook $ne", growthBook({ $ne: "a" }), true, false, true],
    ["GrowthBook $nin", growthBook({ $nin: ["a"] }), true, false, true],
    ["GrowthBook $not", growthBook({ $not: { $eq: "a" } }), true, false, true],
    ["GrowthBook $exists", growthBook({ $exists: true }), false, true, true],
    ["GrowthBook $exists false", growthBook({ $exists: false }), true, false, false],
    ["flagd ==", flagd({ "==": [{ var: "plan" }, "a"] }), false, true, false],
    ["flagd !=", flagd({ "!=": [{ var: "plan" }, "a"] }), true, false, true],
    ["flagd !", flagd({ "!": [{ in: [{ var: "plan" }, ["a"]] }] }), true, false, true],
    ["flagd == null", flagd({ "==": [{ var: "plan" }, null] }), true, false, false],
    ["Flipt eq", flipt("eq"), false, true, false],
    ["Flipt neq", flipt("neq"), false, false, true],
    ["Flipt isnotoneof", flipt("isnotoneof", '["a"]'), false, false, true],
    ["Flipt empty", flipt("empty"), true, false, false],
    ["Flipt notempty", flipt("notempty"), false, true, true],
    ["Flipt present", flipt("present"), false, true, true],
    ["Flipt notpresent", flipt("notpresent"), true, false, false],
    ["GO Feature Flag eq", goFeatureFlag('plan eq "a"'), false, true, false],
    ["GO Feature Flag ne", goFeatureFlag('plan ne "a"'), false, false, true],
    ["GO Feature Flag not (eq)", goFeatureFlag('not (plan eq "a")'), true, false, true],
    ["GO Feature Flag not (ne)", goFeatureFlag('not (plan ne "a")'), true, true, false],
    ["PostHog is_not", postHog("is_not"), true, false, true],
    ["PostHog not_icontains", postHog("not_icontains"), true, false, true],
    ["PostHog not_regex", postHog("not_regex"), true, false, true],
  ];
  test.each(rows)("%s", (_, text, without, a, b) => {
    const file = imported(text);
    expect(file.told).toEqual([]);
    const people: JsonObject[] = [{}, { plan: "a" }, { plan: "b" }];
    const values = people.map((properties) => file.value("f", "p", properties));
    expect(values).toEqual([without, a, b]);
  });
});

describe("a flag without rules", () => {
  const unleashExport = (strategies: object[]) =>
    json({
      features: [{ name: "f" }],
      featureStrategies: strategies,
      featureEnvironments: [{ environment: "production", featureName: "f", enabled: true, variants: [] }],
    });

  test("Unleash without strategies, in both forms of export: on for everyone", () => {
    const ofClients = json({ version: 2, features: [{ name: "f", enabled: true, strategies: [] }] });
    for (const text of [unleashExport([]), ofClients]) {
      const file = imported(text);
      expect([file.told, file.value("f", "p")]).toEqual([[], true]);
    }
  });

  test("Unleash with all strategies disabled: on for no one, reported", () => {
    const strategy = { name: "default", disabled: true };
    const ofClients = json({ features: [{ name: "f", enabled: true, strategies: [strategy] }] });
    for (const text of [unleashExport([{ ...strategy, featureName: "f" }]), ofClients]) {
      const file = imported(text);
      expect(file.told).toEqual(["f, strategies: all are disabled, so that the flag is on for no one"]);
      expect(file.value("f", "p")).toBe(false);
    }
  });

  test("LaunchDarkly: its default rule", () => {
    const flag = (variation: number) => ({ on: true, variations: [true, false], fallthrough: { variation } });
    const file = imported(json({ flags: { yes: flag(0), no: flag(1) } }));
    expect([file.value("yes", "p"), file.value("no", "p")]).toEqual([true, false]);
  });

  test("Flagsmith: on, with its value as payload", () => {
    const text = json([
      { name: "f", default_enabled: true, initial_value: "hello", enabled: true, value: "hello" },
    ]);
    const file = imported(text);
    expect([file.value("f", "p"), file.payload("f", "p")]).toEqual([true, "hello"]);
  });

  test("GrowthBook: its default value", () => {
    const features = {
      yes: { defaultValue: true },
      no: { defaultValue: false },
      word: { defaultValue: "blue" },
    };
    const file = imported(json({ features }));
    expect(["yes", "no", "word"].map((key) => file.value(key, "p"))).toEqual([true, false, "blue"]);
  });

  test("Flipt: enabled or not; a variant flag without distribution is off and reported", () => {
    const boolean = (key: string, enabled: boolean) => ({ key, type: "BOOLEAN_FLAG_TYPE", enabled });
    const variant = { key: "v", type: "VARIANT_FLAG_TYPE", enabled: true, variants: [{ key: "x" }] };
    const file = imported(
      json({ namespace: "default", flags: [boolean("yes", true), boolean("no", false), variant] }),
    );
    expect(["yes", "no", "v"].map((key) => file.value(key, "p"))).toEqual([true, false, false]);
    expect(["yes", "no", "v"].map((key) => file.flag(key).active)).toEqual([true, false, false]);
    expect(file.told[0]).toBe("v, the flag: it has no distribution, so that it is off for everyone");
  });

  test("PostHog: off for everyone", () => {
    const file = imported(json({ results: [{ id: 1, key: "f", active: true, filters: { groups: [] } }] }));
    expect(file.value("f", "p")).toBe(false);
  });
});

describe("obstacles", () => {
  test("each has its line, and only the flag that has them is switched off", () => {
    const clause = (op: string, values: unknown[]) => ({ attribute: "plan", op, values });
    const flag = (rules: object[]) => ({
      ...{ on: true, variations: [true, false], fallthrough: { variation: 0 }, rules },
    });
    const file = imported(
      json({
        flags: {
          good: flag([]),
          bad: flag([
            { variation: 0, clauses: [clause("matches", ["(?=x)"]), clause("like", ["x"])] },
            { variation: 1, clauses: [clause("in", ["a"])] },
            { variation: 1, clauses: [clause("matches", ["("])] },
          ]),
          worse: 7,
        },
      }),
    );
    expect(file.told.map((line) => line.split(":")[0])).toEqual([
      "worse, the flag",
      "bad, rule 1",
      "bad, rule 1",
      "bad, rule 3",
      "bad, the flag",
    ]);
    expect([file.flag("good").active, file.flag("bad").active]).toEqual([true, false]);
  });
});
