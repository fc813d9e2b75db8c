import { describe, expect, test } from "bun:test";
import { filtersOfChangedFlag } from "../../../src/flags/definition/filters.ts";
import type { JsonObject } from "../../../src/flags/json.ts";
import { dependsOn, person, when } from "../make.ts";
import { context, refusal, twoVariants } from "./support.ts";

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
