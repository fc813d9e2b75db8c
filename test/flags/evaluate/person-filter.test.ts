import { describe, expect, test } from "bun:test";
import { compileCohorts } from "../../../src/flags/evaluate/cohorts.ts";
import { compileSubjectFilter } from "../../../src/flags/evaluate/person-filter.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { cohort, dependsOn, inCohort, person, testNow } from "../make.ts";

const clock = { now: testNow, timezone: "UTC" };
const cohorts = compileCohorts([
  cohort(1, { type: "AND", values: [person("plan", "exact", "pro")] }),
  cohort(2, null, { isStatic: true }),
]);

describe("filters on a person", () => {
  const cases: [string, JsonObject[], JsonObject, boolean][] = [
    ["none", [], {}, true],
    ["all match", [person("a", "exact", "1"), person("b", "is_set", "")], { a: 1, b: null }, true],
    ["one does not", [person("a", "exact", "1"), person("b", "is_set", "")], { a: 1 }, false],
    ["a flag is neutral", [dependsOn("5"), person("a", "exact", "1")], { a: 1 }, true],
    ["a flag alone is everyone", [dependsOn("5", true, { operator: "exact" })], {}, true],
    ["relative date", [person("seen", "is_date_after", "-3d")], { seen: "2025-12-31" }, true],
    ["in a cohort", [inCohort(1)], { plan: "pro" }, true],
    ["not in a cohort", [inCohort(1, { operator: "not_in" })], { plan: "pro" }, false],
    ["in a list", [inCohort(2)], {}, true],
    ["in no such cohort", [inCohort(9, { operator: "not_in" })], {}, false],
    ["unusable", [person("a", "gt", "x")], { a: 1 }, false],
  ];
  for (const [name, filters, properties, expected] of cases) {
    test(name, () => {
      const filter = compileSubjectFilter(filters, { ...clock, cohorts });
      expect(filter.matches({ properties, staticCohortIds: new Set([2]) })).toBe(expected);
    });
  }
  test("a cohort that does not exist is reported", () => {
    expect(compileSubjectFilter([inCohort(9)], { ...clock, cohorts }).problem?.code).toBe(
      "dependency_not_found_cohort",
    );
    expect(compileSubjectFilter([inCohort(1)], { ...clock, cohorts }).problem).toBeNull();
  });
});

test("filters on a group, by its properties and its key", () => {
  const filter = compileSubjectFilter(
    [
      { key: "plan", type: "group", group_type_index: 0, operator: "exact", value: "pro" },
      { key: "$group_key", type: "group", group_type_index: 0, operator: "icontains", value: "ac" },
    ],
    { ...clock, groupTypeIndex: 0 },
  );
  expect(filter.matches({ properties: { plan: "pro" }, groupKey: "acme" })).toBe(true);
  expect(filter.matches({ properties: { plan: "pro" }, groupKey: "globex" })).toBe(false);
  expect(filter.matches({ properties: { plan: "free" }, groupKey: "acme" })).toBe(false);
});
