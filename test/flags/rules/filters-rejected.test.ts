import { describe, expect, test } from "bun:test";
import { type FiltersContext, filtersOfNewFlag } from "../../../src/flags/rules/filters.ts";
import type { Json } from "../../../src/lib/json/value.ts";
import { dependsOn, inCohort, person, when } from "../make.ts";
import { condition, context, rejection, twoVariants } from "./support.ts";

describe("filters of a new flag are rejected", () => {
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
      { ...when([]), aggregation_group_type_index: -1 },
      "aggregation_group_type_index must be between 0 and 2147483647, got -1",
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
      "behavioral cohort",
      condition(inCohort(2)),
      "Cohort 'Active' with filters on events cannot be used in feature flags.",
      "behavioral_cohort_found",
    ],
    [
      "behavioral cohort inside another one",
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
      "operator that every object has a member of",
      condition(person("a", "constructor", "b")),
      "Unknown operator: 'constructor'",
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
      expect(rejection(() => filtersOfNewFlag(sent, context(rest)))).toEqual({
        code,
        detail,
        attr: "filters",
      });
    });
  }

  test("more than 512 KiB", () => {
    const payload = JSON.stringify("x".repeat(512 * 1024));
    const sent = { ...when([]), payloads: { true: payload } };
    const size = Buffer.byteLength(JSON.stringify(sent));
    expect(rejection(() => filtersOfNewFlag(sent, context()))).toEqual({
      code: "invalid_input",
      detail: `Feature flag filters exceed maximum size of 524288. Current size: ${size}. Please simplify conditions or reduce payload sizes.`,
      attr: "filters",
    });
  });

  test("nested too deeply, without exhausting the stack", () => {
    let value: Json = "x";
    for (let i = 0; i < 5_000; i++) value = [value];
    expect(rejection(() => filtersOfNewFlag(condition(person("a", "exact", value)), context()))).toEqual({
      code: "invalid_input",
      detail: "filters must not be nested deeper than 200 levels",
      attr: "filters",
    });
  });
});
