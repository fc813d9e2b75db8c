import { describe, expect, test } from "bun:test";
import {
  getRolloutPercentage,
  isSimpleFlag,
  renderFilters,
  withGroups,
  withRenamedEnrollment,
} from "../../../src/flags/rules/stored-filters.ts";
import type { Json } from "../../../src/lib/json/value.ts";
import { cohort, inCohort, person, when } from "../make.ts";

describe("simple flags", () => {
  const cases: [string, Json, boolean, number | null][] = [
    ["one set for 33.3 percent", when([], 33.3), true, 33],
    ["one set without a percentage", when([], null), true, 100],
    ["no filters at all", {}, false, 0],
    ["one set with a property", when([person("a", "exact", "b")], 30), false, 30],
    ["two sets", { groups: [{ rollout_percentage: 1 }, { rollout_percentage: 2 }] }, false, null],
    ["no set", { groups: [] }, false, 0],
    ["groups that are none", { groups: "x" }, false, 0],
    ["about groups", { ...when([], 30), aggregation_group_type_index: 0 }, false, 30],
    ["its set about groups", when([], 30, { aggregation_group_type_index: 0 }), false, 30],
    [
      "its set about persons, in a flag about groups",
      { ...when([], 30, { aggregation_group_type_index: null }), aggregation_group_type_index: 0 },
      true,
      30,
    ],
    ["with variants", { ...when([], 30), multivariate: { variants: [] } }, true, 30],
  ];
  for (const [name, filters, isSimple, percentage] of cases) {
    test(name, () => {
      expect(isSimpleFlag(filters)).toBe(isSimple);
      expect(getRolloutPercentage(filters)).toBe(percentage);
    });
  }
});

test("filters without usable groups have no condition set", () => {
  expect(withGroups({ note: 1 })).toEqual({ note: 1, groups: [] });
  for (const stored of [{}, null, { groups: [] }, { groups: null }, { groups: {} }] as Json[]) {
    expect(withGroups(stored)).toEqual({ groups: [] });
  }
});

test("names of cohorts are put in, unknown ones as null, and nothing else changes", () => {
  const stored = when([inCohort(1), inCohort(2), person("a", "exact", "b")]);
  const before = structuredClone(stored);
  const cohorts = [cohort(1, {}, { name: "Staff" })];
  expect(renderFilters(stored, { find: (id) => cohorts.find((c) => c.id === id) })).toEqual(
    when([
      inCohort(1, { cohort_name: "Staff" }),
      inCohort(2, { cohort_name: null }),
      person("a", "exact", "b"),
    ]),
  );
  expect(stored).toEqual(before);
});

test("early access follows the key", () => {
  const filters = (key: string) => ({
    ...when([]),
    super_groups: [
      {
        properties: [person(`$feature_enrollment/${key}`, "exact", ["true"]), person("other", "exact", "x")],
      },
    ],
  });
  expect(withRenamedEnrollment(filters("old"), "old", "new")).toEqual(filters("new"));
  expect(withRenamedEnrollment(filters("older"), "old", "new")).toEqual(filters("older"));
  expect(withRenamedEnrollment(when([]), "old", "new")).toEqual(when([]));
});
