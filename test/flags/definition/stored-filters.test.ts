import { describe, expect, test } from "bun:test";
import {
  isSimpleFlag,
  renderFilters,
  rolloutPercentageOf,
  withGroups,
  withRenamedEnrollment,
} from "../../../src/flags/definition/stored-filters.ts";
import type { Json } from "../../../src/flags/json.ts";
import { cohort, inCohort, person, when } from "../make.ts";

describe("simple flags", () => {
  const cases: [string, Json, boolean, number | null][] = [
    ["one set for 33.3 percent", when([], 33.3), true, 33.3],
    ["one set without a percentage", when([], null), true, null],
    ["no filters at all", {}, true, null],
    ["one set with a property", when([person("a", "exact", "b")], 30), false, null],
    ["two sets", { groups: [{ rollout_percentage: 1 }, { rollout_percentage: 2 }] }, false, null],
    ["no set", { groups: [] }, false, null],
    ["about groups", { ...when([], 30), aggregation_group_type_index: 0 }, false, null],
    ["its set about groups", when([], 30, { aggregation_group_type_index: 0 }), false, null],
    ["with variants", { ...when([], 30), multivariate: { variants: [] } }, true, 30],
  ];
  for (const [name, filters, isSimple, percentage] of cases) {
    test(name, () => {
      expect(isSimpleFlag(filters)).toBe(isSimple);
      expect(rolloutPercentageOf(filters)).toBe(percentage);
    });
  }
});

test("old filters are shown as one condition set", () => {
  expect(withGroups({ properties: [person("a", "exact", "b")] })).toEqual(
    when([person("a", "exact", "b")], null),
  );
  expect(withGroups({})).toEqual(when([], null));
  expect(withGroups(null)).toEqual(when([], null));
  expect(withGroups({ groups: [] })).toEqual({ groups: [] });
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
