/** GrowthBook's conditions and rules, and flags that would be for other people than before (contract, import 3: F1, F3). */

import { describe, expect, test } from "bun:test";
import type { JsonObject } from "../../../../src/lib/json/value.ts";
import { foreignImports, json, near } from "./support.ts";

const imported = foreignImports();

const withRule = (rule: object, more: object = {}) =>
  json({ features: { f: { defaultValue: false, rules: [{ force: true, ...rule }] } }, ...more });

describe("conditions", () => {
  const people: JsonObject[] = [{}, { plan: "a" }, { plan: "b" }];
  const rows: [condition: object, without: boolean, a: boolean, b: boolean][] = [
    [{ plan: null }, true, false, false],
    [{ plan: { $eq: null } }, true, false, false],
    [{ plan: { $ne: null } }, false, true, true],
    [{ plan: { $in: ["a", null] } }, true, true, false],
    [{ plan: { $nin: ["a", null] } }, false, false, true],
    [{ plan: { $not: "a" } }, true, false, true],
    [{ plan: { $not: { $regex: "^a" } } }, true, false, true],
    [{ plan: { $ini: ["A"] } }, false, true, false],
    [{ plan: { $regexi: "^A" } }, false, true, false],
    [{ $or: [] }, true, true, true],
    [{ $nor: [] }, false, false, false],
    [{ plan: { $inGroup: "list" } }, false, true, false],
    [{ plan: { $notInGroup: "list" } }, true, false, true],
    [{ $savedGroup: { id: "condition" } }, false, true, false],
    [{ $savedGroup: { id: "typed", attributeKey: "plan" } }, false, true, false],
  ];
  const savedGroups = {
    list: ["a"],
    condition: { type: "condition", condition: { plan: "a" } },
    typed: { type: "list", attributeKey: "other", values: ["a"] },
    round: { type: "condition", condition: { $savedGroup: { id: "round" } } },
  };
  test.each(rows)("%j", (condition, without, a, b) => {
    const file = imported(withRule({ condition }, { savedGroups }));
    expect(file.messages).toEqual([]);
    expect(people.map((person) => file.value("f", "p", person))).toEqual([without, a, b]);
  });

  const unsupported: [condition: unknown, reason: RegExp][] = [
    [{ plan: { $elemMatch: { $eq: "a" } } }, /\$elemMatch/],
    [{ plan: { $startsWith: "a" } }, /\$startsWith/],
    [{ $where: "x" }, /\$where/],
    [{ "plan.name": "a" }, /plan\.name, a member/],
    [{ plan: { name: "a" } }, /compared as an object/],
    [{ plan: ["a"] }, /\["a"\] is not a string/],
    [{ plan: { $in: "a" } }, /\$in is not a list/],
    [{ $or: { plan: "a" } }, /\$or is not a list/],
    [{ $and: [5] }, /5 is not a condition/],
    [{ plan: { $inGroup: "gone" } }, /saved group gone/],
    [{ $savedGroup: { id: "gone" } }, /saved group gone/],
    [{ $savedGroup: { id: "round" } }, /references itself/],
    ["{", /not valid JSON/],
    [[1], /\[1\] is not a condition/],
    [{ plan: { $regex: "(a)\\1" } }, /pattern/],
    [{ plan: { $vgt: "x" } }, /not a version/],
  ];
  test.each(unsupported)("%j is reported", (condition, reason) => {
    const file = imported(withRule({ condition }, { savedGroups }));
    expect(file.messages).toEqual([expect.stringMatching(reason)]);
    expect([file.flag("f").active, file.value("f", "p", { plan: "a" })]).toEqual([false, false]);
  });
});

describe("rules", () => {
  const variations = { force: undefined, key: "test", variations: [false, true] };
  const rows: [name: string, rule: object, reason: RegExp][] = [
    ["filters", { filters: [{ seed: "x", ranges: [[0, 0.5]] }] }, /filters/],
    ["a namespace", { ...variations, namespace: ["n", 0, 0.5] }, /namespace/],
    ["a schedule", { scheduleRules: [{ enabled: true, timestamp: "2026-01-01" }] }, /scheduleRules/],
    ["a range that does not start at 0", { range: [0.2, 0.4] }, /range/],
    [
      "ranges with a gap",
      {
        ...variations,
        ranges: [
          [0, 0.3],
          [0.5, 0.8],
        ],
      },
      /range/,
    ],
    ["another attribute", { ...variations, hashAttribute: "company" }, /bucketed by company/],
    ["coverage by another attribute", { coverage: 0.5, hashAttribute: "company" }, /bucketed by company/],
    ["another hash", { coverage: 0.5, hashVersion: 3 }, /hashVersion 3/],
    ["a coverage that is no number", { coverage: "x" }, /coverage/],
    ["no value", { force: undefined }, /without a value/],
    [
      "saved groups of the API",
      { savedGroupTargeting: [{ matchType: "any", savedGroups: ["x"] }] },
      /saved groups/,
    ],
    [
      "variations that pass on",
      { ...variations, meta: [{ key: "0", passthrough: true }, { key: "1" }] },
      /passes users on/,
    ],
    [
      "a parent outside of the file",
      { parentConditions: [{ id: "gone", condition: { value: true } }] },
      /feature gone/,
    ],
    ["a parent with another condition", { parentConditions: [{ id: "f", condition: "{" }] }, /feature f/],
  ];
  test.each(rows)("%s", (_, rule, reason) => {
    const undefinedRemoved = JSON.parse(json({ force: true, ...rule }));
    const text = json({ features: { f: { defaultValue: false, rules: [undefinedRemoved] } } });
    const file = imported(text);
    expect(file.messages).toEqual([expect.stringMatching(reason)]);
    expect(file.flag("f").active).toBe(false);
  });

  test("coverage without effect on who gets it may have any attribute", () => {
    const file = imported(withRule({ coverage: 1, hashAttribute: "company" }));
    expect([file.messages, file.value("f", "p")]).toEqual([[], true]);
  });

  test("an experiment between off and on is exact before a default of off", () => {
    const rule = { key: "t", variations: [false, true], coverage: 0.5 };
    const importWithDefault = (defaultValue: boolean) =>
      imported(json({ features: { f: { defaultValue, rules: [rule] } } }));
    expect([importWithDefault(false).messages, importWithDefault(false).shares("f")]).toEqual([
      [],
      { true: near(25), false: near(75) },
    ]);
    expect(importWithDefault(true).messages).toEqual([
      "f, rule 1 (t): some users get no value while others continue with the next rule",
    ]);
  });

  test("weights that do not add up are equal; ranges that follow each other are shares", () => {
    const shares = (rule: object) =>
      imported(
        json({
          features: { f: { defaultValue: "d", rules: [{ key: "t", variations: ["a", "b"], ...rule }] } },
        }),
      ).shares("f");
    expect(shares({ weights: [0.1, 0.2] })).toEqual({ a: near(50), b: near(50) });
    expect(
      shares({
        ranges: [
          [0, 0.2],
          [0.2, 0.5],
        ],
      }),
    ).toEqual({ a: near(20), b: near(30), d: near(50) });
    expect(shares({ variations: ["a"] })).toEqual({ d: near(100) });
  });

  test("percentages with the same seed overlap as before; with another they are reported", () => {
    const rules = (seed: string | undefined) => [
      { force: true, coverage: 0.2, condition: { plan: "a" } },
      { force: true, coverage: 0.4, ...(seed === undefined ? {} : { seed }) },
    ];
    const same = imported(json({ features: { f: { defaultValue: false, rules: rules(undefined) } } }));
    expect([same.messages, same.shares("f", { plan: "a" })]).toEqual([
      [],
      { true: near(40), false: near(60) },
    ]);
    const other = imported(json({ features: { f: { defaultValue: false, rules: rules("x") } } }));
    expect(other.messages).toEqual(["f, rule 2: its percentage is bucketed independently of rule 1"]);
  });
});

describe("prerequisites", () => {
  const parent = { defaultValue: "free", rules: [{ condition: { plan: "a" }, force: "paid plan" }] };
  const child = (condition: object, gate: boolean) => ({
    defaultValue: true,
    rules: [{ parentConditions: [{ id: "parent", condition, gate }] }, { force: false }],
  });
  test("a gate leaves others without a value, another prerequisite passes them on", () => {
    const wanted = { value: { $in: ["paid plan"] } };
    const rule = { parentConditions: [{ id: "parent", condition: wanted }], force: true };
    const text = json({
      features: {
        parent,
        gated: { ...child(wanted, true), rules: child(wanted, true).rules.slice(0, 1) },
        passed: { defaultValue: false, rules: [rule] },
      },
    });
    const file = imported(text);
    expect(file.messages).toEqual([]);
    for (const key of ["gated", "passed"])
      expect([file.value(key, "p", { plan: "a" }), file.value(key, "p")]).toEqual([true, false]);
  });

  test("of the API: features by their id, conditions as text", () => {
    const feature = (id: string, more: object) => ({
      id,
      valueType: "boolean",
      defaultValue: "false",
      environments: { production: { enabled: true, rules: [] } },
      ...more,
    });
    const rules = [{ type: "force", value: "true", condition: '{"plan":"a"}' }];
    const file = imported(
      json({
        features: [
          feature("child", { defaultValue: "true", prerequisites: ["parent"] }),
          feature("parent", { environments: { production: { enabled: true, rules } } }),
        ],
      }),
    );
    expect(file.messages).toEqual([]);
    expect([file.value("child", "p", { plan: "a" }), file.value("child", "p")]).toEqual([true, false]);
  });
});
