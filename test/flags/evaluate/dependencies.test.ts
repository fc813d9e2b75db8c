import { describe, expect, test } from "bun:test";
import { evaluate } from "../../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../../../src/flags/evaluate/flag-set.ts";
import type { EvaluationRequest } from "../../../src/flags/evaluate/model.ts";
import type { FlagDefinition } from "../../../src/flags/rules/types.ts";
import type { Json, JsonObject } from "../../../src/lib/json/value.ts";
import { dependsOn, flag, requestFor, when } from "../make.ts";
import { groupTypes, isStaff, short, staff, twoVariants } from "./support.ts";

describe("dependencies", () => {
  const flags = (...definitions: FlagDefinition[]) => compileFlagSet(definitions, [], groupTypes);
  const valueIn = (set: ReturnType<typeof flags>, key: string, request: Partial<EvaluationRequest> = {}) => {
    const { results, errorsWhileComputing } = evaluate(set, requestFor("user", request));
    return [...short(results.get(key)!), errorsWhileComputing];
  };
  const forced = (variant: string) => ({ groups: [{ variant }], ...twoVariants });
  const table: [Json, JsonObject, boolean][] = [
    ["control", forced("control"), true],
    [true, forced("control"), true],
    [false, when([], 0), true],
    [true, when([]), true],
    [false, when([]), false],
    [true, when([], 0), false],
    ["control", forced("test"), false],
    ["Control", forced("control"), false],
    ["true", when([]), false],
    ["false", when([], 0), false],
    [123, forced("control"), false],
    [null, when([]), false],
    ["", when([], 0), false],
    [["control"], forced("control"), false],
  ];
  for (const [wanted, base, expected] of table) {
    test(`wanted ${JSON.stringify(wanted)} of ${JSON.stringify(base).slice(0, 60)}`, () => {
      const set = flags(flag(2, "top", when([dependsOn("1", wanted)])), flag(1, "base", base));
      expect(valueIn(set, "top")[0]).toBe(expected);
    });
  }
  test("order of ids does not matter, ids may be numbers", () => {
    const set = flags(
      flag(1, "a", when([dependsOn(2)])),
      flag(2, "b", when([dependsOn("3", false)])),
      flag(3, "c", when([isStaff])),
    );
    expect(valueIn(set, "a")).toEqual([true, "condition_match", 0, false]);
    expect(valueIn(set, "a", staff)).toEqual([false, "no_condition_match", 0, false]);
  });
  test("another operator matches nothing", () =>
    expect(
      valueIn(
        flags(flag(1, "a", when([])), flag(2, "b", when([dependsOn("1", true, { operator: "exact" })]))),
        "b",
      ),
    ).toEqual([false, "no_condition_match", 0, false]));
  test("switched off counts as off, whatever it depends on", () => {
    const set = flags(
      flag(1, "off", when([dependsOn("99")]), { active: false }),
      flag(2, "top", when([dependsOn("1", false)])),
    );
    expect(valueIn(set, "top")).toEqual([true, "condition_match", 0, false]);
    expect(evaluate(set, requestFor("user")).results.has("off")).toBe(false);
  });
  test("missing and deleted ones make the flag and all above it unresolvable, silently", () => {
    const set = flags(
      flag(1, "gone", when([]), { deleted: true }),
      flag(2, "middle", when([dependsOn("1", false)])),
      flag(3, "top", when([dependsOn("2", false)])),
      flag(4, "by-key", when([dependsOn("middle", false)])),
      flag(5, "fine", when([])),
    );
    for (const key of ["middle", "top", "by-key"]) {
      expect(valueIn(set, key)).toEqual([false, "missing_dependency", null, false]);
    }
    expect(valueIn(set, "fine")[0]).toBe(true);
    expect(evaluate(set, requestFor("user")).results.has("gone")).toBe(false);
  });
  test("a circle, and all above it, is off and reported", () => {
    const set = flags(
      flag(1, "a", when([dependsOn("2")])),
      flag(2, "b", when([dependsOn("1", false)])),
      flag(3, "self", when([dependsOn("3", false)])),
      flag(4, "above", { groups: [{ properties: [dependsOn("1", false)] }, {}] }),
      flag(5, "fine", when([])),
    );
    for (const key of ["a", "b", "self", "above"]) {
      expect(valueIn(set, key)).toEqual([false, "missing_dependency", null, true]);
    }
    expect(valueIn(set, "fine")[0]).toBe(true);
  });
  test("a chain of 20,000 flags does not overflow the stack and is fast", () => {
    const chain = Array.from({ length: 20_000 }, (_, i) =>
      flag(i + 1, `f${i + 1}`, i === 0 ? when([]) : when([dependsOn(String(i))])),
    );
    expect(valueIn(flags(...chain.reverse()), "f20000")).toEqual([true, "condition_match", 0, false]);
  });
});
