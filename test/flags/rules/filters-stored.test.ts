import { describe, expect, test } from "bun:test";
import { type FiltersContext, filtersOfNewFlag } from "../../../src/flags/rules/filters.ts";
import type { Json, JsonObject } from "../../../src/lib/json/value.ts";
import { dependsOn, inCohort, person, when } from "../make.ts";
import { condition, context, twoVariants } from "./support.ts";

describe("filters of a new flag are stored", () => {
  const same: [string, JsonObject][] = [
    ["a percentage with a fraction", when([], 33.33)],
    ["no percentage", { groups: [{ properties: [] }] }],
    ["no properties", { groups: [{ rollout_percentage: 5 }] }],
    ["unknown members", { ...when([], 1, { description: "beta", sort_key: 7 }), somethingNew: { a: [1] } }],
    ["static cohorts whose definitions have events", when([inCohort(4), inCohort(5)])],
    ["a cohort with exact", when([inCohort(1, { operator: "exact" })])],
    ["a dependency", when([dependsOn("11", false)])],
    [
      "thirds",
      {
        ...when([]),
        multivariate: {
          variants: [
            { key: "a", rollout_percentage: 33.33 },
            { key: "b/1.x", rollout_percentage: 33.33 },
            { key: "c", rollout_percentage: 33.34 },
          ],
        },
      },
    ],
    [
      "a condition about groups beside one about persons",
      {
        groups: [
          {
            properties: [{ key: "plan", type: "group", group_type_index: 0, operator: "exact", value: "x" }],
            rollout_percentage: 100,
            aggregation_group_type_index: 0,
          },
          { properties: [person("a", "exact", "b")], rollout_percentage: 100 },
        ],
      },
    ],
    [
      "a payload for a holdout",
      { ...when([]), holdout: { id: 3, exclusion_percentage: 10 }, payloads: { "holdout-3": "1" } },
    ],
    [
      "1000 values",
      when([
        person(
          "a",
          "exact",
          Array.from({ length: 1000 }, (_, i) => i),
        ),
      ]),
    ],
  ];
  for (const [name, sent] of same) {
    test(`${name}: as sent`, () => expect(filtersOfNewFlag(sent, context())).toEqual(sent as never));
  }

  const operators: [string, Json][] = [
    ["exact", ["a", 1]],
    ["is_not", "a"],
    ["icontains", "a"],
    ["not_icontains", "a"],
    ["starts_with", "a"],
    ["not_starts_with", "a"],
    ["ends_with", "a"],
    ["not_ends_with", "a"],
    ["icontains_multi", ["a", "b"]],
    ["not_icontains_multi", ["a", "b"]],
    ["regex", "^a+$"],
    ["not_regex", "^a+$"],
    ["gt", "1"],
    ["gte", "1"],
    ["lt", "1"],
    ["lte", "1"],
    ["between", [1, 2]],
    ["not_between", ["1", "2"]],
    ["is_set", "is_set"],
    ["is_not_set", "is_not_set"],
    ["is_date_exact", "2024-01-01"],
    ["is_date_before", "-7d"],
    ["is_date_after", "Mar 21, 2024"],
    ["semver_eq", "1.2.3"],
    ["semver_neq", "1.2.3"],
    ["semver_gt", "1.2.3"],
    ["semver_gte", "1.2.3"],
    ["semver_lt", "1.2.3"],
    ["semver_lte", "1.2.3"],
    ["semver_tilde", "1.2.3"],
    ["semver_caret", "1.2.3"],
    ["semver_wildcard", "1.2.*"],
  ];
  for (const [operator, value] of operators) {
    test(`operator ${operator}`, () => {
      const sent = condition(person("a", operator, value));
      expect(filtersOfNewFlag(sent, context())).toEqual(sent as never);
    });
  }

  const changed: [string, JsonObject, JsonObject, Partial<FiltersContext>?][] = [
    ["min becomes gte", condition(person("a", "min", "1")), condition(person("a", "gte", "1"))],
    ["max becomes lte", condition(person("a", "max", "1")), condition(person("a", "lte", "1"))],
    ["a numeric property key becomes text", condition(dependsOn(11)), condition(dependsOn("11"))],
    ["a cohort id as text becomes a number", condition(inCohort("1")), condition(inCohort(1))],
    [
      "an echoed cohort name goes",
      condition(inCohort(1, { cohort_name: "Old", label: "x" })),
      condition(inCohort(1, { label: "x" })),
    ],
    [
      "a property without type is about the person",
      condition({ key: "a", value: "b" }),
      condition({ key: "a", value: "b", type: "person" }),
    ],
    [
      "a property without type is about the group",
      { ...condition({ key: "a", value: "b" }), aggregation_group_type_index: 2 },
      {
        ...condition({ key: "a", value: "b", type: "group", group_type_index: 2 }),
        aggregation_group_type_index: 2,
      },
    ],
    [
      "payloads become text",
      { ...when([]), multivariate: twoVariants, payloads: { control: { a: 1 }, test: 5 } },
      { ...when([]), multivariate: twoVariants, payloads: { control: '{"a":1}', test: "5" } },
    ],
    [
      "payloads that are JSON text stay",
      { ...when([]), payloads: { true: ' {"a": 1.0}' } },
      { ...when([]), payloads: { true: ' {"a": 1.0}' } },
    ],
    ["payloads null are none", { ...when([]), payloads: null }, { ...when([]), payloads: {} }],
    [
      "a remote configuration without groups",
      { payloads: { true: "1" } },
      { groups: [{ properties: [], rollout_percentage: 100 }], payloads: { true: "1" } },
      { isRemoteConfiguration: true },
    ],
    [
      "a remote configuration at 0 and at null",
      { groups: [{ rollout_percentage: 0 }, { rollout_percentage: null }, { rollout_percentage: 30 }] },
      { groups: [{ rollout_percentage: 100 }, { rollout_percentage: 100 }, { rollout_percentage: 30 }] },
      { isRemoteConfiguration: true },
    ],
  ];
  for (const [name, sent, stored, rest] of changed) {
    test(name, () => expect(filtersOfNewFlag(sent, context(rest))).toEqual(stored as never));
  }

  test("without filters the flag is off for everyone, a remote configuration on", () => {
    expect(filtersOfNewFlag(undefined, context())).toEqual({ groups: [] });
    expect(filtersOfNewFlag(undefined, context({ isRemoteConfiguration: true }))).toEqual({
      groups: [{ properties: [], rollout_percentage: 100 }],
    });
  });

  test("members named like those of every object are ordinary members", () => {
    const sent = JSON.parse('{"groups":[{"properties":[]}],"__proto__":{"a":1},"payloads":{"true":"1"}}');
    const stored = filtersOfNewFlag(sent, context());
    expect(JSON.parse(JSON.stringify(stored))).toEqual(sent);
    expect(({} as { a?: number }).a).toBeUndefined();
  });
});
