/** flagd's targeting, and flags that would be for other people than before (contract, import 3: F1, F3). */

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../../src/lib/json/value.ts";
import { foreignImports, json, near } from "./support.ts";

const imported = foreignImports();

const booleans = { variants: { true: true, false: false }, defaultVariant: "false" };
const flag = (targeting: unknown, more: object = {}) =>
  json({ flags: { f: { state: "ENABLED", ...booleans, targeting, ...more } } });
const when = (condition: unknown) => flag({ if: [condition, "true", "false"] });

describe("conditions", () => {
  const plan = { var: "plan" };
  const people: JsonObject[] = [{}, { plan: "" }, { plan: "a" }, { plan: "b" }];
  const ofPlan: [condition: object, ...expected: boolean[]][] = [
    [plan, false, false, true, true],
    [{ "!": [plan] }, true, true, false, false],
    [{ "!!": plan }, false, false, true, true],
    [{ "==": [{ var: ["plan", "a"] }, "a"] }, true, false, true, false],
    [{ "!=": [{ var: ["plan", "a"] }, "a"] }, false, true, false, true],
    [{ in: [{ var: ["plan", "z"] }, ["a"]] }, false, false, true, false],
    [{ starts_with: [{ var: ["plan", "ab"] }, "a"] }, true, false, true, false],
    [{ in: [plan, ["a", null]] }, true, false, true, false],
    [{ if: [{ "==": [plan, "a"] }, false, true] }, true, true, false, true],
  ];
  test.each(ofPlan)("%j", (condition, ...expected) => {
    const file = imported(when(condition));
    expect(file.messages).toEqual([]);
    expect(people.map((person) => file.value("f", "p", person))).toEqual(expected);
  });

  test("a missing number counts as 0, versions by major and minor", () => {
    const value = (condition: object, person: JsonObject) =>
      imported(when(condition)).value("f", "p", person);
    const age = { var: "age" };
    expect([
      value({ "<": [age, 18] }, {}),
      value({ ">": [age, 18] }, {}),
      value({ "<": [0, age, 9] }, {}),
    ]).toEqual([true, false, false]);
    const major = { sem_ver: [{ var: "v" }, "^", "2.3.0"] };
    expect(["2.0.0", "2.9.1", "3.0.0", "1.9.9"].map((v) => value(major, { v }))).toEqual([
      true,
      true,
      false,
      false,
    ]);
    const minor = { sem_ver: [{ var: "v" }, "~", "2.3.4"] };
    expect(["2.3.0", "2.4.0"].map((v) => value(minor, { v }))).toEqual([true, false]);
  });

  const unsupported: [condition: unknown, reason: RegExp][] = [
    [{ $ref: "gone" }, /\$ref/],
    [{ "==": [{ var: "$flagd.timestamp" }, 5] }, /not an attribute of the user/],
    [{ "==": [{ var: "a.b" }, 5] }, /not an attribute of the user/],
    [{ "==": [{ var: "" }, 5] }, /not an attribute of the user/],
    [{ "==": [{ var: "a" }, { var: "b" }] }, /does not compare an attribute/],
    [{ sem_ver: [{ var: "v" }, "^", "x"] }, /does not compare versions/],
    [{ "+": [1, 2] }, /operator \+/],
    [{ "==": [{ var: "a" }, 1], "!=": [{ var: "a" }, 2] }, /not a condition/],
  ];
  test.each(unsupported)("%j is reported", (condition, reason) => {
    const file = imported(when(condition));
    expect(file.messages[0]).toMatch(reason);
    expect([file.flag("f").active, file.value("f", "p")]).toEqual([false, false]);
  });
});

describe("results", () => {
  const ends = { ends_with: [{ var: "email" }, "@a.com"] };
  const people: JsonObject[] = [{}, { email: "x@a.com" }, { email: "x@b.com" }];
  const values = (text: string) => {
    const file = imported(text);
    expect(file.messages).toEqual([]);
    return people.map((person) => file.value("f", "p", person));
  };
  test("a condition is the name of a variant, or null: the default", () => {
    expect(values(flag(ends))).toEqual([false, true, false]);
    expect(values(flag(ends, { defaultVariant: "true" }))).toEqual([true, true, false]);
    expect(values(flag({ "!": [ends] }, { defaultVariant: "true" }))).toEqual([true, false, true]);
    expect(values(flag({ if: [ends, null, "true"] }, { defaultVariant: "false" }))).toEqual([
      true,
      false,
      true,
    ]);
    expect(values(flag({}, { defaultVariant: "true" }))).toEqual([true, true, true]);
  });

  const rows: [name: string, file: string, reason: RegExp][] = [
    [
      "null, false or true",
      flag({ and: [ends, true] }, { defaultVariant: "true" }),
      /neither true nor false/,
    ],
    ["an attribute", flag({ var: "color" }), /name of a variant/],
    ["a variant that does not exist", flag({ if: [true, "gone"] }), /gone does not exist/],
    ["a reference that does not exist", flag({ if: [true, { $ref: "gone" }] }), /\$ref/],
    ["a default that does not exist", flag({}, { defaultVariant: "gone" }), /gone does not exist/],
    ["another state", flag({}, { state: "ON" }), /neither ENABLED nor DISABLED/],
    ["no object", flag("true"), /"true" is not an object/],
  ];
  test.each(rows)("%s: reported", (_, text, reason) => {
    const file = imported(text);
    expect(file.messages.join("\n")).toMatch(reason);
    expect(file.flag("f").active).toBe(false);
  });
});

describe("fractional", () => {
  const colors = { variants: { red: "red", blue: "blue" }, defaultVariant: "red" };
  const importFractional = (...operands: unknown[]) => imported(flag({ fractional: operands }, colors));
  const shares: unknown[] = [
    ["red", 1],
    ["blue", 3],
  ];
  test("by the user: the default, its key, and the form of the documentation", () => {
    const key = { var: "targetingKey" };
    for (const by of [[], [key], [{ cat: [{ var: "$flagd.flagKey" }, key] }]]) {
      const file = importFractional(...by, ...shares);
      expect([file.messages, file.shares("f")]).toEqual([[], { red: near(25), blue: near(75) }]);
    }
    expect(importFractional(["red"], ["blue"]).shares("f")).toEqual({ red: near(50), blue: near(50) });
    expect(importFractional(["red", 0], ["blue", 0]).value("f", "p")).toBe("red");
  });

  const rows: [name: string, operands: unknown[], reason: RegExp][] = [
    ["by an attribute", [{ var: "email" }, ...shares], /bucketed by/],
    ["by two", [{ cat: [{ var: "email" }, { var: "key" }] }, ...shares], /bucketed by/],
    [
      "with a weight that is no number",
      [
        ["red", "x"],
        ["blue", 1],
      ],
      /whole number/,
    ],
    ["with a share that is no list", [["red", 1], "blue"], /whole number/],
    [
      "with a variant that does not exist",
      [
        ["green", 1],
        ["blue", 1],
      ],
      /green/,
    ],
    ["without shares", [], /whole number/],
  ];
  test.each(rows)("%s: reported", (_, operands, reason) => {
    const file = importFractional(...operands);
    expect(file.messages).toEqual([expect.stringMatching(reason)]);
    expect(file.flag("f").active).toBe(false);
  });
});

test("evaluators that refer to each other many times end", () => {
  const names = Array.from({ length: 30 }, (_, index) => `e${index}`);
  const $evaluators = Object.fromEntries(
    names.map((name, index) => [name, { and: [{ $ref: `e${index + 1}` }, { $ref: `e${index + 1}` }] }]),
  );
  const file = imported(
    json({
      flags: { f: { state: "ENABLED", ...booleans, targeting: { if: [{ $ref: "e0" }, "true"] } } },
      $evaluators,
    }),
  );
  expect(file.messages.join("\n")).toContain("more than 5000 parts");
  expect(file.flag("f").active).toBe(false);
});
