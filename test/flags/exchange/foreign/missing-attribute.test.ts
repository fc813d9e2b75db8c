/** What conditions mean for a person without the attribute, and flags without rules (contract, import 3). */

import { describe, expect, test } from "bun:test";
import { foreignImports, json } from "./support.ts";

const imported = foreignImports();

const launchDarkly = (clause: object) => ({
  flags: {
    f: {
      ...{ key: "f", on: true, variations: [true, false], offVariation: 1, fallthrough: { variation: 1 } },
      rules: [{ variation: 0, clauses: [clause] }],
    },
  },
  segments: {},
});
const flagsmith = (condition: object) => ({
  feature_states: [{ feature: { name: "f" }, enabled: false }],
  project: {
    segments: [
      {
        ...{ name: "s", rules: [{ type: "ALL", conditions: [condition] }] },
        feature_states: [{ feature: { name: "f" }, enabled: true }],
      },
    ],
  },
});
const unleash = (constraint: object) => ({
  version: 2,
  features: [{ name: "f", enabled: true, strategies: [{ name: "default", constraints: [constraint] }] }],
});
const growthBook = (condition: object) => ({
  features: { f: { defaultValue: false, rules: [{ force: true, condition }] } },
});
const flagd = (condition: object) => ({
  flags: {
    f: {
      ...{ state: "ENABLED", variants: { on: true, off: false }, defaultVariant: "off" },
      targeting: { if: [condition, "on", "off"] },
    },
  },
});
const flipt = (constraint: object) => ({
  namespace: "default",
  flags: [
    {
      ...{ key: "f", name: "f", type: "BOOLEAN_FLAG_TYPE", enabled: false },
      rollouts: [{ segment: { key: "s", value: true } }],
    },
  ],
  segments: [{ key: "s", match_type: "ALL_MATCH_TYPE", constraints: [constraint] }],
});
const goFeatureFlag = (query: string) => ({
  f: {
    variations: { on: true, off: false },
    targeting: [{ query, variation: "on" }],
    defaultRule: { variation: "off" },
  },
});
const string = { type: "STRING_COMPARISON_TYPE", property: "a" };

/** Value for a person with a = "x", with a = "y", and without a. */
const conditions: [name: string, file: object, values: [boolean, boolean, boolean]][] = [
  ["LaunchDarkly in", launchDarkly({ attribute: "a", op: "in", values: ["x"] }), [true, false, false]],
  [
    "LaunchDarkly in, negated",
    launchDarkly({ attribute: "a", op: "in", values: ["x"], negate: true }),
    [false, true, false],
  ],
  ["Flagsmith EQUAL", flagsmith({ property_: "a", operator: "EQUAL", value: "x" }), [true, false, false]],
  [
    "Flagsmith NOT_EQUAL",
    flagsmith({ property_: "a", operator: "NOT_EQUAL", value: "x" }),
    [false, true, false],
  ],
  [
    "Flagsmith NOT_CONTAINS",
    flagsmith({ property_: "a", operator: "NOT_CONTAINS", value: "x" }),
    [false, true, false],
  ],
  [
    "Flagsmith IS_NOT_SET",
    flagsmith({ property_: "a", operator: "IS_NOT_SET", value: "" }),
    [false, false, true],
  ],
  ["Unleash IN", unleash({ contextName: "a", operator: "IN", values: ["x"] }), [true, false, false]],
  ["Unleash NOT_IN", unleash({ contextName: "a", operator: "NOT_IN", values: ["x"] }), [false, true, true]],
  [
    "Unleash inverted",
    unleash({ contextName: "a", operator: "STR_CONTAINS", values: ["x"], inverted: true }),
    [false, true, true],
  ],
  ["GrowthBook $ne", growthBook({ a: { $ne: "x" } }), [false, true, true]],
  ["GrowthBook $nin", growthBook({ a: { $nin: ["x"] } }), [false, true, true]],
  ["GrowthBook $not", growthBook({ $not: { a: "x" } }), [false, true, true]],
  ["GrowthBook $exists", growthBook({ a: { $exists: false } }), [false, false, true]],
  ["flagd !=", flagd({ "!=": [{ var: "a" }, "x"] }), [false, true, true]],
  ["flagd !", flagd({ "!": [{ "==": [{ var: "a" }, "x"] }] }), [false, true, true]],
  ["Flipt eq", flipt({ ...string, operator: "eq", value: "x" }), [true, false, false]],
  ["Flipt neq", flipt({ ...string, operator: "neq", value: "x" }), [false, true, false]],
  ["Flipt isnotoneof", flipt({ ...string, operator: "isnotoneof", value: '["x"]' }), [false, true, false]],
  ["Flipt notpresent", flipt({ ...string, operator: "notpresent" }), [false, false, true]],
  ["Flipt empty", flipt({ ...string, operator: "empty" }), [false, false, true]],
  ["GO Feature Flag eq", goFeatureFlag('a eq "x"'), [true, false, false]],
  ["GO Feature Flag ne", goFeatureFlag('a ne "x"'), [false, true, false]],
  ["GO Feature Flag not", goFeatureFlag('not (a eq "x")'), [false, true, true]],
];

describe("a condition", () => {
  for (const [name, file, values] of conditions)
    test(name, () => {
      const read = imported(json(file));
      expect(read.told).toEqual([]);
      const value = (properties: { a?: string }) => read.value("f", "p", properties);
      expect([value({ a: "x" }), value({ a: "y" }), value({})]).toEqual(values);
    });
});

const unleashExport = (strategies: object[]) => ({
  ...{ features: [{ name: "f" }], featureStrategies: strategies, segments: [] },
  featureEnvironments: [{ name: "f", environment: "production", enabled: true }],
});
const withoutRules: [name: string, file: object, value: unknown, told: string[]][] = [
  [
    "Unleash, no strategies",
    { version: 2, features: [{ name: "f", enabled: true, strategies: [] }] },
    true,
    [],
  ],
  ["Unleash export, no strategies", unleashExport([]), true, []],
  [
    "Unleash, all strategies disabled",
    {
      version: 2,
      features: [{ name: "f", enabled: true, strategies: [{ name: "default", disabled: true }] }],
    },
    false,
    ["f, strategies: all are disabled, so that the flag is on for no one"],
  ],
  [
    "LaunchDarkly, no rules",
    {
      flags: { f: { key: "f", on: true, variations: ["a", "b"], fallthrough: { variation: 1 } } },
      segments: {},
    },
    "b",
    [],
  ],
  [
    "Flagsmith, no segments",
    { feature_states: [{ feature: { name: "f" }, enabled: true, feature_state_value: "v" }], project: {} },
    true,
    [],
  ],
  ["GrowthBook, no rules", { features: { f: { defaultValue: true } } }, true, []],
  [
    "Flipt, boolean",
    { namespace: "n", flags: [{ key: "f", type: "BOOLEAN_FLAG_TYPE", enabled: true }] },
    true,
    [],
  ],
  [
    "Flipt, variants without a distribution",
    {
      namespace: "n",
      flags: [{ key: "f", type: "VARIANT_FLAG_TYPE", enabled: true, variants: [{ key: "a" }] }],
    },
    false,
    ["f, the flag: it has no distribution, so that it is off for everyone"],
  ],
];

describe("a flag without rules", () => {
  for (const [name, file, value, told] of withoutRules)
    test(name, () => {
      const read = imported(json(file));
      expect([read.value("f", "p"), read.told]).toEqual([value as never, told]);
    });
});

test("every obstacle of a flag is reported, and the other flags are imported", () => {
  const clause = (attribute: string, op: string, values: unknown[]) => ({ attribute, op, values });
  const flag = (key: string, clauses: object[]) => ({
    ...{ key, on: true, variations: [true, false], fallthrough: { variation: 1 } },
    rules: [{ variation: 0, clauses }],
  });
  const read = imported(
    json({
      flags: {
        bad: flag("bad", [
          clause("a", "matches", ["(?=x)y"]),
          clause("b", "unheardOf", [1]),
          clause("c", "segmentMatch", ["gone"]),
        ]),
        good: flag("good", [clause("a", "in", ["x"])]),
      },
      segments: {},
    }),
  );
  expect(read.told).toEqual([
    expect.stringContaining('bad, rule 1: the pattern "(?=x)y" cannot be used'),
    'bad, rule 1: the operator "unheardOf" has no counterpart',
    "bad, rule 1: the segment gone is not in the file",
    "bad, the flag: is switched off until you have looked at it",
  ]);
  expect([read.value("bad", "p", { a: "y" }), read.value("good", "p", { a: "x" })]).toEqual([false, true]);
});
