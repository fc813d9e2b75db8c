import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { rolloutPosition, variantPosition } from "../../../src/flags/evaluate/bucketing.ts";
import { evaluate } from "../../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../../../src/flags/evaluate/flag-set.ts";
import { explain } from "../../../src/flags/evaluation-context/explanation.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { cohort, dependsOn, flag, inCohort, person, requestFor, when } from "../make.ts";
import { anyProject } from "../random-flags.ts";

const variants: JsonObject = {
  multivariate: {
    variants: [
      { key: "control", rollout_percentage: 50 },
      { key: "test", rollout_percentage: 50 },
    ],
  },
};
const set = compileFlagSet(
  [
    flag(1, "base", when([])),
    flag(2, "f", {
      groups: [
        {
          properties: [
            inCohort(1),
            person("plan", "exact", "pro"),
            person("age", "gt", "x"),
            dependsOn("1", false),
          ],
          rollout_percentage: 30,
        },
        { properties: [], rollout_percentage: 100, variant: "test" },
        { properties: [], rollout_percentage: 100 },
      ],
      ...variants,
    }),
    flag(3, "asleep", when([]), { active: false }),
    flag(4, "server-only", when([]), { evaluationRuntime: "server" }),
  ],
  [cohort(1, { type: "AND", values: [person("plan", "exact", "pro")] }, { name: "Payers" })],
  [],
);
const request = requestFor("ann", {
  person: { properties: { plan: "pro" } },
  personPropertyOverrides: { age: 5 },
});

test("a flag's way, filter by filter", () => {
  const { steps, ...rest } = explain(set, request, "f");
  expect(rest).toEqual({
    flagKey: "f",
    status: "evaluated",
    leftOutBy: null,
    result: evaluate(set, request).results.get("f")!,
    dependencies: [{ id: 1, key: "base", value: true }],
  });
  expect(steps!.conditions).toHaveLength(2);
  const [first, second] = steps!.conditions;
  const place = rolloutPosition("f", "ann");
  expect(first).toEqual({
    index: 0,
    identity: { id: "ann", kind: "distinct_id" },
    filters: [
      {
        type: "person",
        key: "plan",
        operator: "exact",
        wanted: "pro",
        found: "pro",
        source: "stored",
        result: "match",
      },
      {
        type: "person",
        key: "age",
        operator: "gt",
        wanted: "x",
        found: 5,
        source: "override",
        result: "error",
      },
      {
        type: "flag",
        key: "1",
        operator: "flag_evaluates_to",
        wanted: false,
        found: true,
        source: "flag",
        result: "mismatch",
        note: "Flag “base”",
      },
      {
        type: "cohort",
        key: "id",
        operator: "in",
        wanted: 1,
        found: true,
        source: "cohort",
        result: "match",
        note: "Cohort “Payers”",
      },
    ],
    rollout: { percentage: 30, hashed: "f.ann", place, isIn: place <= 0.3 },
    outcome: "no_condition_match",
  });
  expect(second).toMatchObject({ index: 1, outcome: "condition_match" });
  expect(steps!.variant).toEqual({
    chosen: "test",
    isForced: true,
    hashed: "f.annvariant",
    place: variantPosition("f", "ann"),
    shares: [
      { key: "control", from: 0, below: 0.5 },
      { key: "test", from: 0.5, below: 1 },
    ],
  });
});

describe("questions without steps", () => {
  const nothing = { leftOutBy: null, result: null, dependencies: [], steps: null };
  test("unknown flag", () =>
    expect(explain(set, request, "nope")).toEqual({ ...nothing, flagKey: "nope", status: "unknown_flag" }));
  test("inactive flag", () =>
    expect(explain(set, request, "asleep")).toEqual({ ...nothing, flagKey: "asleep", status: "inactive" }));
  test("left out by the runtime", () =>
    expect(explain(set, { ...request, selection: { runtime: "client" } }, "server-only")).toEqual({
      ...nothing,
      flagKey: "server-only",
      status: "left_out",
      leftOutBy: "runtime",
    }));
});

test("a failing cohort is reported where it fails", () => {
  const broken = compileFlagSet([flag(1, "f", when([inCohort(9)]))], [], []);
  const { result, steps } = explain(broken, request, "f");
  expect(result).toMatchObject({ failed: true, reason: { code: "dependency_not_found_cohort" } });
  expect(steps!.conditions[0]).toMatchObject({
    outcome: "failed",
    filters: [{ result: "failed", note: "Cohort 9 does not exist" }],
  });
});

test("enrollment and holdouts are reported", () => {
  const filters = { ...when([]), feature_enrollment: true, holdout: { id: 3, exclusion_percentage: 100 } };
  const { steps } = explain(compileFlagSet([flag(1, "f", filters)], [], []), request, "f");
  expect(steps!.enrollment).toEqual({ key: "$feature_enrollment/f", found: undefined, isDecisive: false });
  expect(steps!.holdouts).toMatchObject([
    { variant: "holdout-3", rollout: { hashed: "holdout-ann", isIn: true } },
  ]);
  expect(steps!.conditions).toEqual([]);
});

test("an explanation always has the result of the evaluation", () => {
  fc.assert(
    fc.property(anyProject, ({ flags, cohorts, groupTypes, requests }) => {
      const project = compileFlagSet(flags, cohorts, groupTypes);
      for (const one of requests) {
        const { results } = evaluate(project, one);
        for (const { key, active } of flags) {
          const explained = explain(project, one, key);
          if (active) expect(explained.result).toEqual(results.get(key)!);
          else expect(explained.status).toBe("inactive");
        }
      }
    }),
    { numRuns: 100 },
  );
});
