import { describe, expect, test } from "bun:test";
import { filtersOfChangedFlag, filtersOfNewFlag } from "../../../src/flags/rules/filters.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { dependsOn, person, when } from "../make.ts";
import { context, rejection, twoVariants } from "./support.ts";

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
    expect(rejection(() => filtersOfChangedFlag(sent, stored, context({ flagId: 20 })))).toEqual({
      code: "invalid_input",
      detail: "Payload keys must be 'true' for boolean flags",
      attr: "filters",
    });
  });

  test("groups may be removed", () => {
    const cleared = filtersOfChangedFlag({ groups: null }, stored, context({ flagId: 20 }));
    expect(cleared).toEqual({ ...stored, groups: null });
  });

  test("a dependency that was switched off meanwhile may stay, a new one may not", () => {
    const withOff = when([dependsOn("12")]);
    const again = when([dependsOn("12")], 10);
    expect(filtersOfChangedFlag(again, withOff, context({ flagId: 20 }))).toEqual(again as never);
    expect(rejection(() => filtersOfChangedFlag(again, stored, context({ flagId: 20 })))).not.toBe(
      "accepted",
    );
  });

  test("unknown members stay, and filters without groups still have none", () => {
    const free = { properties: [person("a", "exact", "b")], note: { any: ["thing", null] } };
    const expected = { ...free, payloads: { true: "1" } };
    expect(filtersOfChangedFlag({ payloads: { true: "1" } }, free, context({ flagId: 20 }))).toEqual(
      expected,
    );
  });
});

describe("a rollout percentage next to the filters", () => {
  const conditions = [person("a", "exact", "b")];
  const one = when(conditions, 40);
  const two = { groups: [{ rollout_percentage: 1 }, { rollout_percentage: 2 }] };
  const changed = (
    percentage: number,
    stored: JsonObject,
    sent?: JsonObject,
    isRemoteConfiguration = false,
  ) =>
    filtersOfChangedFlag(
      sent,
      stored,
      context({ flagId: 20, rolloutPercentage: percentage, isRemoteConfiguration }),
    );
  for (const [name, expected, found] of [
    ["changes the only condition set", when(conditions, 25), () => changed(25, one)],
    ["fractions too", when(conditions, 0.5), () => changed(0.5, one)],
    ["makes a condition set where there is none", when([], 25), () => changed(25, { groups: [] })],
    ["where there are no groups at all", { note: 1, ...when([], 25) }, () => changed(25, { note: 1 })],
    [
      "beside members that say no rollout",
      { ...when(conditions, 25), note: 1 },
      () => changed(25, one, { note: 1 }),
    ],
    [
      "beside a condition set that says none",
      when([person("c", "exact", "d")], 25),
      () => changed(25, one, { groups: [{ properties: [person("c", "exact", "d")] }] }),
    ],
    ["the same number in both places", when([], 25), () => changed(25, one, when([], 25))],
    ["of a remote configuration", when([], 25), () => changed(25, when([], 100), undefined, true)],
    ["on create", when([], 25), () => filtersOfNewFlag(undefined, context({ rolloutPercentage: 25 }))],
  ] as [string, JsonObject, () => JsonObject][]) {
    test(name, () => expect(found()).toEqual(expected));
  }
  for (const [name, found, detail] of [
    ["several condition sets", () => changed(25, two), "The flag has 2 condition sets"],
    ["several condition sets in the request", () => changed(25, one, two), "The flag has 2 condition sets"],
    ["another number in filters", () => changed(25, one, when([], 40)), "have the rollout 40, not 25"],
    ["filters for everybody", () => changed(25, one, when([], null)), "have the rollout 100, not 25"],
    ["a remote configuration that is off", () => changed(0, one, undefined, true), "always on"],
    [
      "another number on create",
      () => filtersOfNewFlag(when([], 40), context({ rolloutPercentage: 25 })),
      "have the rollout 40, not 25",
    ],
  ] as [string, () => unknown, string][]) {
    test(`is rejected: ${name}`, () => {
      const rejected = rejection(found);
      expect(rejected).toMatchObject({ code: "invalid_input", attr: "rollout_percentage" });
      expect(JSON.stringify(rejected)).toContain(detail);
    });
  }
});
