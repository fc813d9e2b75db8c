import { describe, expect, test } from "bun:test";
import { clientValue, evaluate } from "../../../src/flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../../../src/flags/evaluate/flag-set.ts";
import type { EvaluationRequest } from "../../../src/flags/evaluate/model.ts";
import type { CohortDefinition } from "../../../src/flags/rules/types.ts";
import type { Json, JsonObject } from "../../../src/lib/json/value.ts";
import { cohort, dependsOn, flag, inCohort, person, requestFor, when } from "../make.ts";

const a = person("a", "exact", "1");
const b = person("b", "exact", "1");
const notA = { ...a, negation: true };
const behavioral = { type: "behavioral", key: "signed up", value: "performed_event" };

function all(...values: JsonObject[]): JsonObject {
  return { type: "AND", values };
}
function any(...values: JsonObject[]): JsonObject {
  return { type: "OR", values };
}

function isOn(
  filter: JsonObject,
  cohorts: CohortDefinition[],
  request: Partial<EvaluationRequest> = {},
): boolean {
  const set = compileFlagSet([flag(1, "f", when([filter]))], cohorts, []);
  const { results, errorsWhileComputing } = evaluate(set, requestFor("user", request));
  expect(errorsWhileComputing).toBe(false);
  return results.get("f")!.enabled;
}

function having(...names: string[]): Partial<EvaluationRequest> {
  return { person: { properties: Object.fromEntries(names.map((name) => [name, "1"])) } };
}

describe("dynamic cohorts", () => {
  // Each definition with the people it holds, out of: no one's properties, a, b, and both.
  const cases: [string, Json, string][] = [
    ["all of one", all(a), "a ab"],
    ["all of two", all(a, b), "ab"],
    ["any of two", any(a, b), "a b ab"],
    ["groups in a group", any(all(a), all(b)), "a b ab"],
    ["three levels", all(any(all(a, b), all(notA)), any(a, b)), "b ab"],
    ["inverted", all(notA), "- b"],
    ["inverted, either", any(notA, b), "- b ab"],
    ["nested cohort", all(inCohort(2)), "b ab"],
    ["nested cohort, its id as text", all(inCohort("2")), "b ab"],
    ["nested cohort, inverted, in OR", any(a, inCohort(2, { negation: true })), "- a ab"],
    ["nested cohort, not_in", all(inCohort(2, { operator: "not_in" })), "- a"],
    ["nested cohort, inverted twice", all(inCohort(2, { operator: "not_in", negation: true })), "b ab"],
    ["nested cohort, old operator", all(inCohort(2, { operator: "exact" })), "b ab"],
    ["nested cohort, no such operator", all(inCohort(2, { operator: "icontains", negation: true })), ""],
    ["events are nobody", any(behavioral), ""],
    ["events inverted are nobody", any({ ...behavioral, negation: true }), ""],
    ["events or a", any(behavioral, a), "a ab"],
    ["an unusable filter is nobody, inverted as well", any(person("a", "gt", "x", { negation: true })), ""],
    ["a broken pattern, inverted", any(person("a", "regex", "[", { negation: true })), ""],
    ["a broken pattern of not_regex, inverted", any(person("a", "not_regex", "[", { negation: true })), ""],
    ["an operator of cohorts on a property, inverted", any(person("a", "in", 1, { negation: true })), ""],
    ["empty definition", {}, "- a b ab"],
    ["no definition", null, "- a b ab"],
    ["only empty groups", any(all(), any()), "- a b ab"],
    ["an empty group beside a filter", any(all(), all(a)), "a ab"],
    ["an empty group joined with a filter", all(all(), all(a)), ""],
    ["type property means AND", { type: "property", values: [a, b] }, "ab"],
    ["filters without a type are about the person", all({ key: "a", value: "1" }), "a ab"],
    ["another type", all({ key: "a", value: "1", type: "event" }), ""],
  ];
  const people = { "-": having(), a: having("a"), b: having("b"), ab: having("a", "b") };
  for (const [name, definition, members] of cases) {
    test(name, () => {
      const cohorts = [cohort(1, definition), cohort(2, all(b))];
      const found = Object.entries(people).filter(([, request]) => isOn(inCohort(1), cohorts, request));
      expect(found.map(([who]) => who).join(" ")).toBe(members);
      const others = Object.entries(people).filter(([, request]) =>
        isOn(inCohort(1, { operator: "not_in" }), cohorts, request),
      );
      expect(others).toHaveLength(4 - found.length);
    });
  }

  test("overrides of the request count", () =>
    expect(isOn(inCohort(1), [cohort(1, all(a))], { personPropertyOverrides: { a: "1" } })).toBe(true));
  test("no operator is in; negation inverts; other operators match nothing", () => {
    const cohorts = [cohort(1, all(a))];
    const { operator: _, ...plain } = inCohort(1);
    expect(isOn(plain, cohorts, having("a"))).toBe(true);
    expect(isOn(inCohort(1, { negation: true }), cohorts, having("a"))).toBe(false);
    expect(isOn(inCohort(1, { negation: true }), cohorts)).toBe(true);
    expect(isOn(inCohort(1, { operator: "exact" }), cohorts, having("a"))).toBe(false);
  });
  test("are about the person also in conditions about groups", () => {
    const filters = { ...when([inCohort(1)]), aggregation_group_type_index: 0 };
    const set = compileFlagSet([flag(1, "f", filters)], [cohort(1, all(a))], [{ index: 0, name: "company" }]);
    const request = { groups: { company: "x" }, groupProperties: { company: { a: "1" } } };
    expect(evaluate(set, requestFor("u", request)).results.get("f")!.enabled).toBe(false);
    expect(evaluate(set, requestFor("u", { ...request, ...having("a") })).results.get("f")!.enabled).toBe(
      true,
    );
  });
});

describe("static cohorts", () => {
  const cohorts = [cohort(1, null, { isStatic: true }), cohort(2, all(inCohort(1), a))];
  const listed = (...ids: number[]) => ({
    person: { properties: { a: "1" }, staticCohortIds: new Set(ids) },
  });
  test("by their list of members", () => {
    expect(isOn(inCohort(1), cohorts, listed(1))).toBe(true);
    expect(isOn(inCohort(1), cohorts, listed(7))).toBe(false);
    expect(isOn(inCohort(1), cohorts)).toBe(false);
    expect(isOn(inCohort(1, { operator: "not_in" }), cohorts)).toBe(true);
  });
  test("inside of others", () => {
    expect(isOn(inCohort(2), cohorts, listed(1))).toBe(true);
    expect(isOn(inCohort(2), cohorts, listed())).toBe(false);
  });
});

describe("a cohort that cannot be computed fails its flag only", () => {
  const cohorts = [
    cohort(1, all(inCohort(99))),
    cohort(2, all(inCohort(3))),
    cohort(3, any(all(inCohort(2)))),
    cohort(4, all(inCohort(4))),
    cohort(5, { type: "XOR", values: [] }),
    cohort(6, all(inCohort("x"))),
    cohort(7, all(inCohort(1, { negation: true }))),
    cohort(8, [a] as never),
  ];
  const cases: [string, JsonObject, string][] = [
    ["missing", inCohort(99), "dependency_not_found_cohort"],
    ["missing, not in", inCohort(99, { operator: "not_in" }), "dependency_not_found_cohort"],
    ["missing inside", inCohort(1), "dependency_not_found_cohort"],
    ["missing two levels down", inCohort(7), "dependency_not_found_cohort"],
    ["circle", inCohort(2), "dependency_cycle_cohort"],
    ["in itself", inCohort(4), "dependency_cycle_cohort"],
    ["id as text", inCohort("1"), "cohort_filters_parsing_error"],
    ["id a fraction", inCohort(1.5), "cohort_filters_parsing_error"],
    ["unknown joint", inCohort(5), "cohort_filters_parsing_error"],
    ["nested id as text", inCohort(6), "cohort_filters_parsing_error"],
    ["a list for a definition", inCohort(8), "cohort_filters_parsing_error"],
  ];
  for (const [name, filter, code] of cases) {
    test(name, () => {
      const set = compileFlagSet(
        [
          flag(1, "f", when([filter])),
          flag(2, "fine", when([])),
          flag(3, "above", when([dependsOn("1", false)])),
        ],
        cohorts,
        [],
      );
      const { results, errorsWhileComputing } = evaluate(set, requestFor("user"));
      expect(errorsWhileComputing).toBe(true);
      const result = results.get("f")!;
      expect([result.failed, result.enabled, result.reason.code, result.reason.conditionIndex]).toEqual([
        true,
        false,
        code as never,
        null,
      ]);
      expect(results.get("fine")).toMatchObject({ enabled: true, failed: false });
      expect(results.get("above")).toMatchObject({
        failed: true,
        reason: { code: "dependency_not_found_flag" },
      });
    });
  }

  test("a match before the failing condition applies; a mismatch next to the cohort skips it", () => {
    const set = compileFlagSet(
      [
        flag(1, "before", { groups: [{}, { properties: [inCohort(99)] }] }),
        flag(2, "beside", when([inCohort(99), a])),
      ],
      [],
      [],
    );
    const { results, errorsWhileComputing } = evaluate(set, requestFor("user"));
    expect([...results.values()].map(clientValue)).toEqual([true, false]);
    expect(errorsWhileComputing).toBe(false);
  });

  test("a definition may be nested 100 levels deep, and not one more", () => {
    const reasonAt = (levels: number) => {
      let node: JsonObject = a;
      for (let i = 0; i < levels; i++) node = all(node);
      const set = compileFlagSet([flag(1, "f", when([inCohort(1)]))], [cohort(1, node)], []);
      return evaluate(set, requestFor("u")).results.get("f")!.reason.code;
    };
    expect([reasonAt(100), reasonAt(101)]).toEqual(["no_condition_match", "cohort_filters_parsing_error"]);
  });

  test("a definition nested 10,000 levels deep is unreadable, not fatal", () => {
    let node: JsonObject = a;
    for (let i = 0; i < 10_000; i++) node = all(node);
    const set = compileFlagSet([flag(1, "f", when([inCohort(1)]))], [cohort(1, node)], []);
    expect(evaluate(set, requestFor("u")).results.get("f")!.reason.code).toBe("cohort_filters_parsing_error");
  });
});
