/** The table of the contract about missing attributes (import 3), as files of one flag each. */

import { json } from "./support.ts";

/** A file of one flag `f` that is on where a condition on the attribute `plan` holds. */
const launchDarkly = (clause: object) =>
  json({
    flags: {
      f: {
        on: true,
        variations: [true, false],
        offVariation: 1,
        fallthrough: { variation: 1 },
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
        state: "ENABLED",
        variants: { on: true, off: false },
        defaultVariant: "off",
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
        key: "f",
        type: "BOOLEAN_FLAG_TYPE",
        enabled: false,
        rollouts: [{ segment: { key: "s", value: true } }],
      },
    ],
    segments: [
      {
        key: "s",
        match_type: "ALL_MATCH_TYPE",
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
        id: 1,
        key: "f",
        active: true,
        filters: {
          groups: [
            { properties: [{ key: "plan", type: "person", operator, value: "a" }], rollout_percentage: 100 },
          ],
        },
      },
    ],
  });

/** What a condition on `plan` means for persons without it, and with "a" and "b". */
export const conditionRows: [product: string, file: string, without: boolean, a: boolean, b: boolean][] = [
  ["LaunchDarkly in", launchDarkly({}), false, true, false],
  ["LaunchDarkly in, negated", launchDarkly({ negate: true }), false, false, true],
  ["LaunchDarkly startsWith", launchDarkly({ op: "startsWith" }), false, true, false],
  ["LaunchDarkly matches, negated", launchDarkly({ op: "matches", negate: true }), false, false, true],
  ["Flagsmith CONTAINS", flagsmith("CONTAINS"), false, true, false],
  ["Flagsmith REGEX", flagsmith("REGEX"), false, true, false],
  ["Flagsmith IN", flagsmith("IN"), false, true, false],
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
  ["Unleash NOT_IN, inverted", unleash({ operator: "NOT_IN", inverted: true }), false, true, false],
  ["Unleash REGEX, inverted", unleash({ operator: "REGEX", value: "a", inverted: true }), true, false, true],
  ["GrowthBook $eq", growthBook({ $eq: "a" }), false, true, false],
  ["GrowthBook $in", growthBook({ $in: ["a"] }), false, true, false],
  ["GrowthBook $not $regex", growthBook({ $not: { $regex: "a" } }), true, false, true],
  ["GrowthBook $ne", growthBook({ $ne: "a" }), true, false, true],
  ["GrowthBook $nin", growthBook({ $nin: ["a"] }), true, false, true],
  ["GrowthBook $not", growthBook({ $not: { $eq: "a" } }), true, false, true],
  ["GrowthBook $exists", growthBook({ $exists: true }), false, true, true],
  ["GrowthBook $exists false", growthBook({ $exists: false }), true, false, false],
  ["flagd ==", flagd({ "==": [{ var: "plan" }, "a"] }), false, true, false],
  ["flagd !=", flagd({ "!=": [{ var: "plan" }, "a"] }), true, false, true],
  ["flagd !", flagd({ "!": [{ in: [{ var: "plan" }, ["a"]] }] }), true, false, true],
  ["flagd == null", flagd({ "==": [{ var: "plan" }, null] }), true, false, false],
  ["flagd in", flagd({ in: [{ var: "plan" }, ["a"]] }), false, true, false],
  ["flagd var", flagd({ var: "plan" }), false, true, true],
  ["flagd ! var", flagd({ "!": { var: "plan" } }), true, false, false],
  ["Flipt prefix", flipt("prefix"), false, true, false],
  ["Flipt contains", flipt("contains"), false, true, false],
  ["Flipt notcontains", flipt("notcontains"), false, false, true],
  ["Flipt eq", flipt("eq"), false, true, false],
  ["Flipt neq", flipt("neq"), false, false, true],
  ["Flipt isnotoneof", flipt("isnotoneof", '["a"]'), false, false, true],
  ["Flipt empty", flipt("empty"), true, false, false],
  ["Flipt notempty", flipt("notempty"), false, true, true],
  ["Flipt present", flipt("present"), false, true, true],
  ["Flipt notpresent", flipt("notpresent"), true, false, false],
  ["GO Feature Flag co", goFeatureFlag('plan co "a"'), false, true, false],
  ["GO Feature Flag pr", goFeatureFlag("plan pr"), false, true, true],
  ["GO Feature Flag not (pr)", goFeatureFlag("not (plan pr)"), true, false, false],
  ["GO Feature Flag eq", goFeatureFlag('plan eq "a"'), false, true, false],
  ["GO Feature Flag ne", goFeatureFlag('plan ne "a"'), false, false, true],
  ["GO Feature Flag not (eq)", goFeatureFlag('not (plan eq "a")'), true, false, true],
  ["GO Feature Flag not (ne)", goFeatureFlag('not (plan ne "a")'), true, true, false],
  ["PostHog exact", postHog("exact"), false, true, false],
  ["PostHog is_set", postHog("is_set"), false, true, true],
  ["PostHog is_not_set", postHog("is_not_set"), true, false, false],
  ["PostHog is_not", postHog("is_not"), true, false, true],
  ["PostHog not_icontains", postHog("not_icontains"), true, false, true],
  ["PostHog not_regex", postHog("not_regex"), true, false, true],
];
