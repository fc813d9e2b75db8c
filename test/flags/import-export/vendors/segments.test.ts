/** Segments of Flagsmith and Flipt, and rules of GO Feature Flag, row by row (contract, import 3: F1, F3). */

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../../src/lib/json/value.ts";
import { foreignImports, json, near } from "./support.ts";

const imported = foreignImports();
const people: JsonObject[] = [{}, { plan: "a" }, { plan: "b" }];
const getValues = (text: string) => {
  const file = imported(text);
  expect(file.messages).toEqual([]);
  return people.map((person) => file.value("f", "p", person));
};

describe("Flagsmith", () => {
  const condition = (operator: string, value: unknown = "a", property_ = "plan") => ({
    operator,
    property_,
    value,
  });
  const state = (enabled: unknown, more: object = {}) => ({
    feature: { id: 1, name: "f" },
    enabled,
    ...more,
  });
  const document = (rules: unknown, more: object = {}) =>
    json({
      feature_states: [state(false)],
      project: { segments: [{ name: "s", rules, feature_states: [state(true)] }] },
      ...more,
    });
  const rule = (type: string, conditions: unknown[], rules: unknown[] = []) => ({ type, conditions, rules });

  test("a segment without rules has no members, a rule without conditions is true", () => {
    expect(getValues(document([]))).toEqual([false, false, false]);
    expect(getValues(document([rule("ANY", [])]))).toEqual([true, true, true]);
    expect(getValues(document([rule("NONE", [])]))).toEqual([true, true, true]);
  });

  test("the type of a rule joins its conditions, and its nested rules", () => {
    const isA = rule("ALL", [condition("EQUAL")]);
    const isB = rule("ALL", [condition("EQUAL", "b")]);
    expect(getValues(document([rule("NONE", [condition("EQUAL")])]))).toEqual([true, false, true]);
    expect(
      getValues(document([rule("ALL", [], [rule("ANY", [condition("EQUAL"), condition("EQUAL", "b")])])])),
    ).toEqual([false, true, true]);
    expect(getValues(document([rule("ANY", [], [isA, isB])]))).toEqual([false, true, true]);
    expect(getValues(document([rule("NONE", [], [isA])]))).toEqual([true, false, true]);
    expect(getValues(document([rule("ALL", [], [rule("NONE", [condition("NOT_EQUAL")])])]))).toEqual([
      true,
      true,
      false,
    ]);
  });

  test("lists in all forms, and paths of the identity", () => {
    for (const value of [["a", "c"], '["a","c"]', "a,c"])
      expect(getValues(document([rule("ALL", [condition("IN", value)])]))).toEqual([false, true, false]);
    expect(getValues(document([rule("ALL", [condition("EQUAL", "p", "$.identity.identifier")])]))).toEqual([
      true,
      true,
      true,
    ]);
    expect(getValues(document([rule("ALL", [condition("EQUAL", "a", "$.identity.traits.plan")])]))).toEqual([
      false,
      true,
      false,
    ]);
  });

  test("overrides without a priority are after those with one", () => {
    const segment = (name: string, enabled: boolean, priority: number | undefined) => ({
      name,
      rules: [rule("ALL", [condition("EQUAL")])],
      feature_states: [state(enabled, priority === undefined ? {} : { feature_segment: { priority } })],
    });
    const segments = [segment("x", false, undefined), segment("y", true, 5)];
    expect(getValues(document([], { project: { segments } }))).toEqual([false, true, false]);
  });

  test("overrides of identities are first, with their own value", () => {
    const identity_overrides = [
      { identifier: "p", identity_features: [state(true, { feature_state_value: "red" })] },
    ];
    const feature_states = [state(true, { feature_state_value: "blue" })];
    const file = imported(json({ feature_states, project: {}, identity_overrides }));
    expect([file.messages, file.value("f", "p"), file.value("f", "q")]).toEqual([[], "red", "blue"]);
  });

  const rows: [name: string, file: string, reason: RegExp][] = [
    [
      "a percentage of users",
      document([rule("ALL", [condition("PERCENTAGE_SPLIT", "10", "")])]),
      /PERCENTAGE_SPLIT/,
    ],
    ["a remainder", document([rule("ALL", [condition("MODULO", "2|0")])]), /MODULO/],
    [
      "another path",
      document([rule("ALL", [condition("EQUAL", "x", "$.environment.name")])]),
      /environment\.name/,
    ],
    ["no trait", document([rule("ALL", [condition("EQUAL", "x", "")])]), /does not name its attribute/],
    ["another type", document([rule("SOME", [condition("EQUAL")])]), /type SOME/],
    ["rules that are no list", document({}), /is not a list/],
    ["a condition that is no object", document([rule("ALL", [1])]), /1 is not an object/],
    ["a number that is none", document([rule("ALL", [condition("LESS_THAN", "x")])]), /not a number/],
    ["a version that is none", document([rule("ALL", [condition("EQUAL", "x:semver")])]), /not a version/],
    ["a state that is no boolean", document([], { feature_states: [state("yes")] }), /not a boolean/],
    [
      "a share that is no percentage",
      document([], {
        feature_states: [
          state(true, {
            feature_state_value: "x",
            multivariate_feature_state_values: [
              { multivariate_feature_option: { value: "y" }, percentage_allocation: "z" },
            ],
          }),
        ],
      }),
      /not a percentage/,
    ],
  ];
  test.each(rows)("%s: reported", (_, text, reason) => {
    const file = imported(text);
    expect(file.messages).toEqual([expect.stringMatching(reason)]);
    expect(file.flag("f").active).toBe(false);
  });
});

describe("Flipt", () => {
  const constraint = (operator: string, value: unknown = "a", type = "STRING") => ({
    type: `${type}_COMPARISON_TYPE`,
    property: "plan",
    operator,
    value,
  });
  const file = (flag: object, segment: object = {}) =>
    json({
      namespace: "default",
      flags: [{ key: "f", type: "BOOLEAN_FLAG_TYPE", enabled: false, ...flag }],
      segments: [{ key: "s", match_type: "ALL_MATCH_TYPE", constraints: [constraint("eq")], ...segment }],
    });
  const ofSegment = (segment: object) =>
    file({ rollouts: [{ segment: { key: "s", value: true } }] }, segment);
  const rollouts = (...list: unknown[]) => file({ rollouts: list });
  const threshold = (percentage: unknown, value: boolean) => ({ threshold: { percentage, value } });

  test("constraints: numbers, booleans and dates by value", () => {
    const value = (constraints: object[], plan: unknown, match_type = "ALL_MATCH_TYPE") =>
      imported(ofSegment({ constraints, match_type })).value(
        "f",
        "p",
        plan === undefined ? {} : ({ plan } as never),
      );
    const number = (operator: string) => [constraint(operator, "5", "NUMBER")];
    expect([value(number("eq"), 5.0), value(number("eq"), "5.0"), value(number("neq"), 6)]).toEqual([
      true,
      true,
      true,
    ]);
    expect([value(number("neq"), 5), value(number("neq"), undefined)]).toEqual([false, false]);
    const isFalse = [constraint("false", "", "BOOLEAN")];
    expect([
      value(isFalse, false),
      value(isFalse, true),
      value(isFalse, "x"),
      value(isFalse, undefined),
    ]).toEqual([true, false, false, false]);
    const date = (operator: string) => [constraint(operator, "2025-01-01T00:00:00Z", "DATETIME")];
    const same = "2025-01-01T00:00:00Z";
    expect([value(date("lte"), same), value(date("gte"), same), value(date("lt"), same)]).toEqual([
      true,
      true,
      false,
    ]);
    expect([value(date("eq"), same), value(date("neq"), same), value(date("neq"), "2026-01-01")]).toEqual([
      true,
      false,
      true,
    ]);
    const blank = [constraint("empty")];
    expect([value(blank, "  "), value(blank, "x"), value([constraint("notempty")], " ")]).toEqual([
      true,
      false,
      false,
    ]);
    const one = [constraint("isoneof", '["a","c"]'), constraint("eq", "z")];
    expect([value(one, "a", "ANY_MATCH_TYPE"), value(one, "b", "ANY_MATCH_TYPE")]).toEqual([true, false]);
  });

  test("both segments or one of them, without constraints everyone", () => {
    const rollout = (operator: string) => [{ segment: { keys: ["s", "t"], operator, value: true } }];
    const both = (operator: string) => {
      const parsed = JSON.parse(file({ rollouts: rollout(operator) }));
      parsed.segments.push({ key: "t", match_type: "ANY_MATCH_TYPE", constraints: [constraint("eq", "b")] });
      return json(parsed);
    };
    expect(getValues(both("OR_SEGMENT_OPERATOR"))).toEqual([false, true, true]);
    expect(getValues(both("AND_SEGMENT_OPERATOR"))).toEqual([false, false, false]);
    expect(getValues(ofSegment({ constraints: [], match_type: "ANY_MATCH_TYPE" }))).toEqual([
      true,
      true,
      true,
    ]);
  });

  test("percentages that are on, and those that are off for all or none", () => {
    const shares = (...list: unknown[]) => imported(rollouts(...list)).shares("f");
    expect(shares(threshold(30, true))).toEqual({ true: near(30), false: near(70) });
    expect(shares(threshold(30, true), threshold(50, true))).toEqual({ true: near(50), false: near(50) });
    expect(shares(threshold(100, false), threshold(50, true))).toEqual({ false: near(100) });
    expect(shares(threshold(0, false), threshold(100, true))).toEqual({ true: near(100) });
  });

  test("distributions that do not add up leave the others the default variant, or nothing", () => {
    const variant = (more: object, variants: object[]) =>
      imported(
        file({
          type: "VARIANT_FLAG_TYPE",
          enabled: true,
          rollouts: undefined,
          variants,
          rules: [{ segment: "s", distributions: [{ variant: "x", rollout: 60 }], ...more }],
        }),
      );
    const without = variant({}, [{ key: "x" }]);
    expect(without.messages).toEqual([
      "f, rule 1: its distributions add up to 60%, so the flag is off for the other matching users",
    ]);
    expect(without.shares("f", { plan: "a" })).toEqual({ x: near(60), false: near(40) });
    const other = [{ key: "x" }, { key: "y", default: true }];
    expect(variant({}, other).shares("f", { plan: "a" })).toEqual({ x: near(60), y: near(40) });
    expect(variant({ distributions: [] }, other).value("f", "p", { plan: "a" })).toBe("y");
    expect(variant({ distributions: [] }, [{ key: "x" }]).messages).toEqual([
      "f, rule 1: it has no distribution, so the flag is off for matching users",
    ]);
  });

  const rows: [name: string, file: string, reason: RegExp][] = [
    ["a percentage that is off", rollouts(threshold(30, false), threshold(100, true)), /30% are off/],
    ["no percentage", rollouts(threshold("x", true)), /percentage: "x" is not a percentage/],
    ["no segment", rollouts({ segment: { value: true } }), /names no segment/],
    ["a segment outside of the file", rollouts({ segment: { key: "gone", value: true } }), /segment gone/],
    [
      "another operator of segments",
      rollouts({ segment: { keys: ["s"], operator: "XOR", value: true } }),
      /XOR/,
    ],
    ["a rollout that is no object", rollouts(7), /7 is not an object/],
    ["another type of flag", file({ type: "NUMBER_FLAG_TYPE" }), /NUMBER_FLAG_TYPE/],
    ["another type of match", ofSegment({ match_type: "NONE_MATCH_TYPE" }), /NONE_MATCH_TYPE/],
    [
      "another type of constraint",
      ofSegment({ constraints: [constraint("eq", "a", "IP")] }),
      /IP_COMPARISON_TYPE/,
    ],
    [
      "an operator of another type",
      ofSegment({ constraints: [constraint("prefix", "1", "NUMBER")] }),
      /prefix/,
    ],
    ["a number that is none", ofSegment({ constraints: [constraint("eq", "x", "NUMBER")] }), /not a number/],
    ["a date that is none", ofSegment({ constraints: [constraint("lt", "soon", "DATETIME")] }), /not a date/],
    ["a list that is none", ofSegment({ constraints: [constraint("isoneof", "a")] }), /not a list/],
    ["constraints that are no list", ofSegment({ constraints: "x" }), /constraints: "x"/],
    ["enabled that is no boolean", file({ enabled: "yes" }), /not a boolean/],
  ];
  test.each(rows)("%s: reported", (_, text, reason) => {
    const read = imported(text);
    expect(read.messages.join("\n")).toMatch(reason);
    expect([read.flag("f").active, read.value("f", "p")]).toEqual([false, false]);
  });
});

describe("GO Feature Flag", () => {
  const flag = (more: object) =>
    json({ f: { variations: { on: true, off: false }, defaultRule: { variation: "off" }, ...more } });
  const query = (text: unknown) => flag({ targeting: [{ query: text, variation: "on" }] });

  test("texts without regard to case, null, numbers and versions by value", () => {
    expect(getValues(query('plan sw "A"'))).toEqual([false, true, false]);
    expect(getValues(query("plan eq null"))).toEqual([true, false, false]);
    expect(getValues(query("plan ne null"))).toEqual([false, true, true]);
    expect(getValues(query('plan in ["a", "c"]'))).toEqual([false, true, false]);
    expect(getValues(query('plan eq "a" or plan eq "b"'))).toEqual([false, true, true]);
    const value = (text: string, person: JsonObject) => imported(query(text)).value("f", "p", person);
    expect([value("age eq 5", { age: 5.0 }), value("age ne 5", { age: 5 }), value("age ne 5", {})]).toEqual([
      true,
      false,
      false,
    ]);
    expect([value("v ge 1.10.0", { v: "1.9.0" }), value("v ge 1.10.0", { v: "1.10.0" })]).toEqual([
      false,
      true,
    ]);
  });

  test("percentages are relative to their sum", () => {
    const file = imported(flag({ defaultRule: { percentage: { on: 1, off: 3 } } }));
    expect([file.messages, file.shares("f")]).toEqual([[], { true: near(25), false: near(75) }]);
  });

  const step = { date: "2026-01-01T00:00:00Z" };
  const rows: [name: string, file: string, reason: RegExp][] = [
    [
      "a progressive rollout",
      flag({
        defaultRule: {
          progressiveRollout: { initial: { variation: "off", ...step }, end: { variation: "on", ...step } },
        },
      }),
      /progressive rollout/,
    ],
    [
      "a progressive rollout of a rule",
      flag({ targeting: [{ query: 'a eq "b"', progressiveRollout: { initial: {}, end: {} } }] }),
      /progressive rollout/,
    ],
    [
      "a scheduled rollout",
      flag({ scheduledRollout: [{ ...step, defaultRule: { variation: "on" } }] }),
      /certain times/,
    ],
    ["an experimentation", flag({ experimentation: { start: "2026-01-01T00:00:00Z" } }), /certain times/],
    [
      "bucketing by another attribute",
      flag({ bucketingKey: "team", defaultRule: { percentage: { on: 50, off: 50 } } }),
      /bucketed by team/,
    ],
    ["no variation", flag({ defaultRule: {} }), /neither a variation/],
    ["no default rule", flag({ defaultRule: undefined, targeting: [] }), /neither a variation/],
    ["a variation that does not exist", flag({ defaultRule: { variation: "gone" } }), /gone/],
    [
      "percentages that are no numbers",
      flag({ defaultRule: { percentage: { on: "x", off: 1 } } }),
      /not numbers/,
    ],
    ["percentages that are 0", flag({ defaultRule: { percentage: { on: 0, off: 0 } } }), /add up to 0/],
    ["no query", query(undefined), /no query/],
    ["a query that is no string", query(5), /not a string/],
    ["JsonLogic that is none", query("{"), /not valid JSON/],
    ["words mixed without brackets", query("a eq 1 or b eq 2 and c eq 3"), /mixed without brackets/],
    ["not without brackets", query("not a eq 1"), /not followed by a bracket/],
    ["a missing bracket", query("(a eq 1"), /bracket is missing/],
    ["an operator that does not exist", query("a like 1"), /unknown operator/],
    ["a value without quotation marks", query("a eq b"), /not in quotation marks/],
    ["texts in order", query('a gt "b"'), /compared as text/],
    ["a part of an attribute", query('a.b eq "c"'), /member of another attribute/],
    ["a rule that is no object", flag({ targeting: [1] }), /1 is not an object/],
  ];
  test.each(rows)("%s: reported", (_, text, reason) => {
    const file = imported(text);
    expect(file.messages).toEqual([expect.stringMatching(reason)]);
    expect([file.flag("f").active, file.value("f", "p")]).toEqual([false, false]);
  });

  test("a disabled rule does not count, whatever is in it", () => {
    const file = imported(
      flag({ targeting: [{ disable: true, query: "(" }], defaultRule: { variation: "on" } }),
    );
    expect([file.messages, file.value("f", "p")]).toEqual([[], true]);
  });
});
