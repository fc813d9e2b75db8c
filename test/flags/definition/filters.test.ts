import { describe, expect, test } from "bun:test";
import {
  type FiltersContext,
  filtersOfChangedFlag,
  filtersOfNewFlag,
} from "../../../src/flags/definition/filters.ts";
import { FlagInvalid } from "../../../src/flags/definition/flag-invalid.ts";
import type { CohortDefinition, FlagDefinition } from "../../../src/flags/definition/types.ts";
import type { Json, JsonObject } from "../../../src/flags/json.ts";
import { cohort, dependsOn, flag, inCohort, person, when } from "../make.ts";

const behavioral = { type: "behavioral", key: "signed up", value: "performed_event" };
const cohorts: CohortDefinition[] = [
  cohort(1, { type: "OR", values: [person("email", "exact", "a@b.c")] }, { name: "Staff" }),
  cohort(2, { type: "OR", values: [{ type: "AND", values: [behavioral] }] }, { name: "Active" }),
  cohort(3, { type: "AND", values: [inCohort(2)] }, { name: "Nested" }),
  cohort(4, { type: "AND", values: [behavioral] }, { name: "Frozen", isStatic: true }),
  cohort(5, { type: "AND", values: [inCohort(2)] }, { name: "Frozen too", isStatic: true }),
];
const flags: FlagDefinition[] = [
  flag(11, "base", when([])),
  flag(12, "off", when([]), { active: false }),
  flag(13, "gone", when([]), { deleted: true }),
  flag(14, "above", when([dependsOn("20")])),
  flag(15, "top", when([dependsOn("14")])),
];

function context(rest: Partial<FiltersContext> = {}): FiltersContext {
  return {
    flagId: null,
    flagKey: "mine",
    isRemoteConfiguration: false,
    cohorts: { find: (id) => cohorts.find((c) => c.id === id) },
    flags: { find: (id) => flags.find((f) => f.id === id) },
    ...rest,
  };
}

function refusal(act: () => unknown): { code: string; detail: string; attr: string | null } | "accepted" {
  try {
    act();
  } catch (error) {
    if (!(error instanceof FlagInvalid)) throw error;
    return { code: error.code, detail: error.detail, attr: error.attr };
  }
  return "accepted";
}

const twoVariants = {
  variants: [
    { key: "control", rollout_percentage: 50 },
    { key: "test", rollout_percentage: 50 },
  ],
};

function condition(property: JsonObject): JsonObject {
  return when([property]);
}

describe("filters of a new flag are refused", () => {
  const cases: [
    name: string,
    sent: unknown,
    detail: string,
    code?: string,
    rest?: Partial<FiltersContext>,
  ][] = [
    ["null", null, "This field may not be null.", "null"],
    ["a text", "x", 'Expected a dictionary of items but got type "str".', "not_a_dict"],
    ["a list", [], 'Expected a dictionary of items but got type "list".', "not_a_dict"],
    ["a whole number", 1, 'Expected a dictionary of items but got type "int".', "not_a_dict"],
    ["a fraction", 1.5, 'Expected a dictionary of items but got type "float".', "not_a_dict"],
    ["a boolean", true, 'Expected a dictionary of items but got type "bool".', "not_a_dict"],
    ["no groups", {}, "Feature flags must have at least one condition set (group)."],
    ["groups null", { groups: null }, "Feature flags must have at least one condition set (group)."],
    ["groups empty", { groups: [] }, "Feature flags must have at least one condition set (group)."],
    ["groups no list", { groups: {} }, "groups must be a list"],
    ["a group that is no object", { groups: [1] }, "groups[0] must be an object"],
    ["percentage too high", when([], 140), "groups[0].rollout_percentage must be between 0 and 100, got 140"],
    ["percentage negative", when([], -1), "groups[0].rollout_percentage must be between 0 and 100, got -1"],
    ["percentage as text", when([], "50" as never), "groups[0].rollout_percentage must be a number"],
    ["properties no list", { groups: [{ properties: {} }] }, "groups[0].properties must be a list"],
    ["property no object", { groups: [{ properties: ["x"] }] }, "groups[0].properties[0] must be an object"],
    [
      "property without key",
      condition({ type: "person", value: 1 }),
      "groups[0].properties[0].key is required",
    ],
    [
      "property key a list",
      condition({ key: [], type: "person" }),
      "groups[0].properties[0].key must be a string",
    ],
    ["type a number", condition({ key: "a", type: 1 }), "groups[0].properties[0].type must be a string"],
    [
      "operator a number",
      condition({ key: "a", type: "person", operator: 1 }),
      "groups[0].properties[0].operator must be a string",
    ],
    [
      "negation a text",
      condition({ key: "a", type: "person", negation: "yes" }),
      "groups[0].properties[0].negation must be a boolean",
    ],
    ["variant a number", when([], 100, { variant: 1 }), "groups[0].variant must be a string"],
    [
      "aggregation out of range",
      { ...when([]), aggregation_group_type_index: 5 },
      "aggregation_group_type_index must be between 0 and 4, got 5",
    ],
    [
      "aggregation of a group no number",
      when([], 100, { aggregation_group_type_index: "0" }),
      "groups[0].aggregation_group_type_index must be an integer",
    ],
    ["super groups no list", { ...when([]), super_groups: {} }, "super_groups must be a list"],
    ["holdout groups no list", { ...when([]), holdout_groups: 1 }, "holdout_groups must be a list"],
    [
      "enrolment no boolean",
      { ...when([]), feature_enrollment: "yes" },
      "feature_enrollment must be a boolean",
    ],
    ["early exit no boolean", { ...when([]), early_exit: 1 }, "early_exit must be a boolean"],
    ["holdout no object", { ...when([]), holdout: 3 }, "holdout must be an object"],
    [
      "holdout without id",
      { ...when([]), holdout: { exclusion_percentage: 3 } },
      "holdout.id must be an integer",
    ],
    [
      "holdout percentage too high",
      { ...when([]), holdout: { id: 1, exclusion_percentage: 101 } },
      "holdout.exclusion_percentage must be between 0 and 100, got 101",
    ],
    [
      "reserved version",
      { ...when([]), version: 2 },
      "filters.version is reserved and cannot be set.",
      "reserved_config_version",
    ],
    [
      "variants no list",
      { ...when([]), multivariate: { variants: {} } },
      "multivariate.variants must be a list",
    ],
    ["multivariate no object", { ...when([]), multivariate: [] }, "multivariate must be an object"],
    [
      "variant without key",
      { ...when([]), multivariate: { variants: [{ rollout_percentage: 100 }] } },
      "multivariate.variants[0].key is required",
    ],
    [
      "variant key with a blank",
      { ...when([]), multivariate: { variants: [{ key: "a b", rollout_percentage: 100 }] } },
      "multivariate.variants[0].key may contain only letters, numbers, hyphens, underscores, dots and slashes",
    ],
    [
      "variant key too long",
      { ...when([]), multivariate: { variants: [{ key: "a".repeat(401), rollout_percentage: 100 }] } },
      "multivariate.variants[0].key must have at most 400 characters",
    ],
    [
      "variant without percentage",
      { ...when([]), multivariate: { variants: [{ key: "a" }] } },
      "multivariate.variants[0].rollout_percentage must be a number",
    ],
    [
      "variant key twice",
      {
        ...when([]),
        multivariate: {
          variants: [
            { key: "a", rollout_percentage: 50 },
            { key: "a", rollout_percentage: 50 },
          ],
        },
      },
      "multivariate.variants[1].key must be unique, got 'a' twice",
    ],
    [
      "variants under 100",
      { ...when([]), multivariate: { variants: [{ key: "a", rollout_percentage: 99.99 }] } },
      "Invalid variant definitions: Variant rollout percentages must sum to 100.",
    ],
    [
      "override of an unknown variant",
      { ...when([], 100, { variant: "other" }), multivariate: twoVariants },
      "Filters are not valid (variant override does not exist)",
    ],
    [
      "override without variants",
      when([], 100, { variant: "test" }),
      "Filters are not valid (variant override does not exist)",
    ],
    [
      "group property, about persons",
      condition({ key: "a", type: "group", value: 1, group_type_index: 0 }),
      "Filters are not valid (can only use person, cohort, and flag properties)",
    ],
    [
      "event property",
      condition({ key: "a", type: "event", value: 1 }),
      "Filters are not valid (can only use person, cohort, and flag properties)",
    ],
    [
      "person property, about groups",
      { ...condition(person("a", "exact", "b")), aggregation_group_type_index: 1 },
      "Filters are not valid (can only use group properties)",
    ],
    [
      "property of another group type",
      {
        ...condition({ key: "a", type: "group", value: 1, group_type_index: 0 }),
        aggregation_group_type_index: 1,
      },
      "Filters are not valid (can only use group properties)",
    ],
    [
      "person property, one set about groups",
      when([person("a", "exact", "b")], 100, { aggregation_group_type_index: 0 }),
      "Filters are not valid (can only use group properties)",
    ],
    [
      "about groups, linked to early access",
      { ...when([]), aggregation_group_type_index: 0 },
      "Cannot change this flag to a group-based when linked to an Early Access Feature.",
      "invalid_input",
      { hasEarlyAccessFeature: true },
    ],
    [
      "1001 values",
      condition(
        person(
          "email",
          "exact",
          Array.from({ length: 1001 }, (_, i) => `u${i}`),
        ),
      ),
      "Property group expressions of type email cannot contain more than 1000 values.",
    ],
    ["unknown cohort", condition(inCohort(99)), "Cohort with id 99 does not exist", "cohort_does_not_exist"],
    ["cohort no id", condition(inCohort("x")), "Cohort with id x does not exist", "cohort_does_not_exist"],
    [
      "behavioural cohort",
      condition(inCohort(2)),
      "Cohort 'Active' with filters on events cannot be used in feature flags.",
      "behavioral_cohort_found",
    ],
    [
      "behavioural cohort inside another one",
      condition(inCohort(3)),
      "Cohort 'Active' with filters on events cannot be used in feature flags.",
      "behavioral_cohort_found",
    ],
    [
      "unreadable date",
      condition(person("d", "is_date_before", "bazinga")),
      "Invalid date value: bazinga",
      "invalid_date",
    ],
    ["date as number", condition(person("d", "is_date_after", 5)), "Invalid date value: 5", "invalid_date"],
    [
      "relative date beyond the limit",
      condition(person("d", "is_date_exact", "10000d")),
      "Invalid date value: 10000d",
      "invalid_date",
    ],
    [
      "in on a person property",
      condition(person("a", "in", "b")),
      "The 'in' operator is only valid for cohort properties, not 'person' properties.",
      "invalid_operator",
    ],
    [
      "not_in on a person property",
      condition(person("a", "not_in", "b")),
      "The 'not_in' operator is only valid for cohort properties, not 'person' properties.",
      "invalid_operator",
    ],
    [
      "flag_evaluates_to on a person property",
      condition(person("a", "flag_evaluates_to", true)),
      "The 'flag_evaluates_to' operator is only valid for flag properties, not 'person' properties.",
      "invalid_operator",
    ],
    [
      "other operator on a cohort",
      condition(inCohort(1, { operator: "icontains" })),
      "The 'icontains' operator is not valid for cohort properties, use 'in' or 'not_in'.",
      "invalid_operator",
    ],
    [
      "unknown operator",
      condition(person("a", "matches", "b")),
      "Unknown operator: 'matches'",
      "invalid_operator",
    ],
    [
      "other operator on a flag",
      condition(dependsOn("11", true, { operator: "exact" })),
      "Flag properties must use the 'flag_evaluates_to' operator",
    ],
    [
      "no operator on a flag",
      condition({ key: "11", type: "flag", value: true }),
      "Flag properties must use the 'flag_evaluates_to' operator",
    ],
    [
      "dependency by key",
      condition(dependsOn("base")),
      "Flag dependencies must reference flag IDs (integers), not flag keys. Invalid reference: 'base'",
    ],
    [
      "dependency on nothing",
      condition(dependsOn("99")),
      "Flag dependency references non-existent flag with ID 99",
    ],
    [
      "dependency on a deleted flag",
      condition(dependsOn("13")),
      "Flag dependency references non-existent flag with ID 13",
    ],
    [
      "dependency on a disabled flag",
      condition(dependsOn("12")),
      "Cannot create dependency on disabled flag 'off' (ID: 12). Flag dependencies must reference active flags only.",
    ],
    [
      "dependency on itself",
      condition(dependsOn("20")),
      "Feature flag 'mine' cannot depend on itself",
      "invalid_input",
      { flagId: 20 },
    ],
    [
      "dependency in a circle",
      condition(dependsOn("15")),
      "Circular dependency detected: mine → top → above → mine",
      "invalid_input",
      { flagId: 20 },
    ],
    ["payloads no object", { ...when([]), payloads: [] }, "Payloads must be passed as a dictionary"],
    ["payload no JSON", { ...when([]), payloads: { true: "{" } }, "Payload value is not valid JSON"],
    [
      "payload of no variant",
      { ...when([]), multivariate: twoVariants, payloads: { true: "1" } },
      "Payload keys must match a variant key for multivariate flags",
    ],
    [
      "payload of a boolean flag under another key",
      { ...when([]), payloads: { control: "1" } },
      "Payload keys must be 'true' for boolean flags",
    ],
    [
      "unreadable pattern",
      condition(person("a", "regex", "?*")),
      "groups[0].properties[0].value: invalid regex pattern",
    ],
    [
      "look-ahead",
      condition(person("a", "regex", "foo(?=bar)")),
      "groups[0].properties[0].value: invalid regex pattern (look-ahead is not supported, because patterns run in an engine with linear-time guarantee)",
    ],
    [
      "look-behind",
      condition(person("a", "not_regex", "(?<!foo)bar")),
      "groups[0].properties[0].value: invalid regex pattern (look-behind is not supported, because patterns run in an engine with linear-time guarantee)",
    ],
    [
      "back-reference",
      condition(person("a", "regex", "(a)\\1")),
      "groups[0].properties[0].value: invalid regex pattern (a back-reference is not supported, because patterns run in an engine with linear-time guarantee)",
    ],
  ];
  for (const operator of ["regex", "not_regex", "icontains", "not_icontains", "gt", "gte", "lt", "lte"]) {
    cases.push([
      `${operator} with a number`,
      condition(person("age", operator, 5)),
      `Invalid value for operator ${operator}: 5`,
      "invalid_value",
    ]);
  }
  for (const [name, sent, detail, code = "invalid_input", rest = {}] of cases) {
    test(name, () => {
      expect(refusal(() => filtersOfNewFlag(sent, context(rest)))).toEqual({ code, detail, attr: "filters" });
    });
  }

  test("more than 512 KiB", () => {
    const payload = JSON.stringify("x".repeat(512 * 1024));
    const sent = { ...when([]), payloads: { true: payload } };
    const size = Buffer.byteLength(JSON.stringify(sent));
    expect(refusal(() => filtersOfNewFlag(sent, context()))).toEqual({
      code: "invalid_input",
      detail: `Feature flag filters exceed maximum size of 524288. Current size: ${size}. Please simplify conditions or reduce payload sizes.`,
      attr: "filters",
    });
  });

  test("nested too deeply, without exhausting the stack", () => {
    let value: Json = "x";
    for (let i = 0; i < 5_000; i++) value = [value];
    expect(refusal(() => filtersOfNewFlag(condition(person("a", "exact", value)), context()))).toEqual({
      code: "invalid_input",
      detail: "filters must not be nested deeper than 64 levels",
      attr: "filters",
    });
  });
});

describe("filters of a new flag are stored", () => {
  const same: [string, JsonObject][] = [
    ["a percentage with a fraction", when([], 33.33)],
    ["no percentage", { groups: [{ properties: [] }] }],
    ["no properties", { groups: [{ rollout_percentage: 5 }] }],
    ["unknown members", { ...when([], 1, { description: "beta", sort_key: 7 }), somethingNew: { a: [1] } }],
    ["static cohorts whose definitions have events", when([inCohort(4), inCohort(5)])],
    ["a cohort with exact", when([inCohort(1, { operator: "exact" })])],
    ["a dependency", when([dependsOn("11", "control")])],
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

  test("without filters the flag is for everyone", () => {
    expect(filtersOfNewFlag(undefined, context())).toEqual({
      groups: [{ properties: [], rollout_percentage: null }],
    });
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

describe("filters of a changed flag", () => {
  const stored = {
    ...when([person("a", "exact", "b")], 40),
    multivariate: twoVariants,
    payloads: { test: "1" },
  };
  const changes: [string, unknown, JsonObject][] = [
    ["not sent", undefined, stored],
    ["empty", {}, stored],
    ["only payloads", { payloads: { control: "2" } }, { ...stored, payloads: { control: "2" } }],
    ["only groups", when([], 5), { ...stored, ...when([], 5) }],
    ["no groups at all", { groups: [] }, { ...stored, groups: [] }],
    ["payloads cleared", { payloads: null }, { ...stored, payloads: {} }],
    [
      "variants cleared: their payloads go with them",
      { multivariate: null },
      { ...stored, multivariate: null, payloads: {} },
    ],
    [
      "one variant replaced: its payload goes",
      { multivariate: { variants: [{ key: "control", rollout_percentage: 100 }] } },
      { ...stored, multivariate: { variants: [{ key: "control", rollout_percentage: 100 }] }, payloads: {} },
    ],
    ["enrolment added", { feature_enrollment: true }, { ...stored, feature_enrollment: true }],
    [
      "a whole new definition",
      { ...when([], 1), multivariate: null, payloads: { true: "3" } },
      { ...when([], 1), multivariate: null, payloads: { true: "3" } },
    ],
  ];
  for (const [name, sent, expected] of changes) {
    test(name, () => {
      const result = filtersOfChangedFlag(sent, stored, context({ flagId: 20 }));
      expect(result).toEqual(expected as never);
    });
  }

  test("payloads sent with cleared variants must fit", () => {
    const sent = { multivariate: null, payloads: { test: "1" } };
    expect(refusal(() => filtersOfChangedFlag(sent, stored, context({ flagId: 20 })))).toEqual({
      code: "invalid_input",
      detail: "Payload keys must be 'true' for boolean flags",
      attr: "filters",
    });
  });

  test("groups null is no list", () => {
    expect(refusal(() => filtersOfChangedFlag({ groups: null }, stored, context({ flagId: 20 })))).toEqual({
      code: "invalid_input",
      detail: "groups must be a list",
      attr: "filters",
    });
  });

  test("a dependency that was switched off meanwhile may stay, a new one may not", () => {
    const withOff = when([dependsOn("12")]);
    const again = when([dependsOn("12")], 10);
    expect(filtersOfChangedFlag(again, withOff, context({ flagId: 20 }))).toEqual(again as never);
    expect(refusal(() => filtersOfChangedFlag(again, stored, context({ flagId: 20 })))).not.toBe("accepted");
  });

  test("old filters without groups become one condition set", () => {
    const old = {
      properties: [person("a", "exact", "b")],
      rollout_percentage: 20,
      aggregation_group_type_index: null,
    };
    expect(filtersOfChangedFlag({ payloads: { true: "1" } }, old, context({ flagId: 20 }))).toEqual({
      ...when([person("a", "exact", "b")], 20),
      aggregation_group_type_index: null,
      payloads: { true: "1" },
    } as never);
  });
});
