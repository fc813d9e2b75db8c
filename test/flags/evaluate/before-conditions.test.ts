/** What decides before the conditions of a flag are looked at: enrolment, and holdouts. */

import { describe, expect, test } from "bun:test";
import type { Json } from "../../../src/lib/json/value.ts";
import { inCohort, person, when } from "../make.ts";
import { aboutCompany, getResult, isStaff, short, staff, twoVariants } from "./support.ts";

describe("enrolment decides first", () => {
  const filters = { ...when([], 0), feature_enrollment: true, payloads: { true: '"early"' } };
  const enrolled = (value: Json) => ({ personPropertyOverrides: { "$feature_enrollment/f": value } });
  for (const value of [true, "true"]) {
    test(`${JSON.stringify(value)} is in, with the payload`, () => {
      const result = getResult(filters, enrolled(value));
      expect(short(result)).toEqual([true, "super_condition_value", 0]);
      expect(result.payload).toBe('"early"');
    });
  }
  for (const value of [false, "false", "True", 1, null]) {
    test(`${JSON.stringify(value)} is out, even at 100 percent`, () =>
      expect(short(getResult({ ...when([]), feature_enrollment: true }, enrolled(value)))).toEqual([
        false,
        "super_condition_value",
        0,
      ]));
  }
  test("a stored property counts, a missing one does not decide", () => {
    const stored = { person: { properties: { "$feature_enrollment/f": true } } };
    expect(short(getResult(filters, stored))).toEqual([true, "super_condition_value", 0]);
    expect(short(getResult(filters))).toEqual([false, "out_of_rollout_bound", 0]);
  });
  test("variants play no part, and super groups none either", () => {
    const both = {
      ...filters,
      ...twoVariants,
      super_groups: [{ properties: [isStaff], rollout_percentage: 100 }],
    };
    expect(short(getResult(both, enrolled(true)))).toEqual([true, "super_condition_value", 0]);
    expect(short(getResult(both, staff))).toEqual([false, "out_of_rollout_bound", 0]);
  });

  const superGroups = (rollout: number) => ({
    ...when([]),
    ...twoVariants,
    super_groups: [
      { properties: [person("$feature_enrollment/f", "exact", ["true"])], rollout_percentage: rollout },
    ],
  });
  test("old super groups decide when the property is known, match or not", () => {
    expect(short(getResult(superGroups(100), enrolled("true")))).toEqual([true, "super_condition_value", 0]);
    expect(short(getResult(superGroups(100), enrolled("false")))).toEqual([
      false,
      "super_condition_value",
      0,
    ]);
    expect(short(getResult(superGroups(0), enrolled("true")))).toEqual([false, "super_condition_value", 0]);
    expect(getResult(superGroups(100)).reason.code).toBe("condition_match");
  });
  test("super groups without properties are ignored", () =>
    expect(
      getResult({ ...when([]), super_groups: [{ properties: [], rollout_percentage: 0 }] }).enabled,
    ).toBe(true));
});

describe("holdouts", () => {
  const held = { holdout: { id: 3, exclusion_percentage: 100 }, payloads: { "holdout-3": "0", true: "1" } };
  test("everyone in", () => {
    const result = getResult({ ...when([]), ...held });
    expect(short(result)).toEqual(["holdout-3", "holdout_condition_value", null]);
    expect([result.enabled, result.payload]).toEqual([true, "0"]);
  });
  test("by the place of the id alone, the border included", () => {
    // The place of `holdout-some_distinct_id` is 0.7270002403585725.
    const at = (percentage: Json, distinctId = "some_distinct_id") =>
      getResult({ ...when([]), holdout: { id: 1, exclusion_percentage: percentage } }, { distinctId }).reason
        .code;
    expect(at(72.7)).toBe("condition_match");
    expect(at(72.70002403585725)).toBe("holdout_condition_value");
    expect(at(72.8)).toBe("holdout_condition_value");
    expect(at(-5)).toBe("condition_match");
    expect(at(500)).toBe("holdout_condition_value");
    expect(at(null)).toBe("condition_match");
    expect(at("x")).toBe("condition_match");
    // An empty id is hashed like any other: `holdout-` is at 0.9268829483920294.
    expect([at(0, ""), at(92.6, ""), at(92.7, "")]).toEqual([
      "condition_match",
      "condition_match",
      "holdout_condition_value",
    ]);
  });
  test("enrollment takes precedence", () =>
    expect(
      getResult(
        { ...when([]), ...held, feature_enrollment: true },
        { personPropertyOverrides: { "$feature_enrollment/f": false } },
      ).reason.code,
    ).toBe("super_condition_value"));
  test("old holdout groups are read when there is no holdout", () => {
    const groups = {
      holdout_groups: [{ properties: [isStaff], rollout_percentage: 100, variant: "holdout-8" }],
    };
    expect(short(getResult({ ...when([]), ...groups }, staff))).toEqual([
      "holdout-8",
      "holdout_condition_value",
      null,
    ]);
    expect(getResult({ ...when([]), ...groups }).variant).toBeNull();
    expect(getResult({ ...when([]), ...groups, ...held }, staff).variant).toBe("holdout-3");
  });
  test("a holdout that cannot be decided fails the flag", () => {
    const groups = {
      holdout_groups: [{ properties: [inCohort(99)], rollout_percentage: 100, variant: "holdout-8" }],
    };
    expect(getResult({ ...when([]), ...groups })).toMatchObject({
      failed: true,
      enabled: false,
      reason: { code: "dependency_not_found_cohort" },
    });
  });
  test("a holdout whose variant has no name is called holdout", () => {
    for (const variant of ["", 5, null]) {
      const groups = { holdout_groups: [{ properties: [], rollout_percentage: 100, variant }] };
      expect(getResult({ ...when([]), ...groups }).variant).toBe("holdout");
    }
  });
  test("a flag about groups holds out groups, and no request without a group", () => {
    const filters = { ...when([]), ...aboutCompany, ...held };
    expect(getResult(filters, { groups: { company: "acme" } }).variant).toBe("holdout-3");
    expect(getResult(filters).reason.code).toBe("no_group_type");
  });
});
