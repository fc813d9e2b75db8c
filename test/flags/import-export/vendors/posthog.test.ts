import { describe, expect, test } from "bun:test";
import { readVendorFile } from "../../../../src/flags/import-export/vendors/read-vendor-file.ts";
import type { Json } from "../../../../src/lib/json/value.ts";
import { foreignImports, json } from "./support.ts";

const imported = foreignImports();

/** As PostHog answers a flag, with what no one sends back. */
const flag = (
  id: number,
  key: string,
  filters: Record<string, unknown>,
  more: Record<string, unknown> = {},
) => ({
  id,
  key,
  name: "",
  active: true,
  deleted: false,
  ensure_experience_continuity: false,
  tags: [],
  created_by: { id: 1, email: "ann@example.com" },
  created_at: "2026-01-01T00:00:00Z",
  version: 3,
  is_simple_flag: false,
  rollout_percentage: null,
  experiment_set: [],
  surveys: null,
  can_edit: true,
  filters,
  ...more,
});
const property = (key: string, value: unknown, more = {}) => ({
  key,
  type: "person",
  operator: "exact",
  value,
  ...more,
});
const forAll = { groups: [{ properties: [], rollout_percentage: 100 }] };

describe("PostHog", () => {
  test("the list of its API", () => {
    const half = {
      groups: [{ properties: [property("plan", ["pro"])], rollout_percentage: 50, variant: null }],
      multivariate: {
        variants: [
          { key: "a", name: "", rollout_percentage: 50 },
          { key: "b", name: "", rollout_percentage: 50 },
        ],
      },
      payloads: { a: '{"x":1}' },
    };
    const ofCohort = { groups: [{ properties: [{ key: "id", type: "cohort", value: 7 }] }] };
    const ofFlag = { key: "1", type: "flag", operator: "flag_evaluates_to", value: true };
    const file = imported(
      json({
        count: 5,
        next: null,
        previous: null,
        results: [
          flag(1, "all", forAll),
          flag(2, "half", half, { tags: ["web"] }),
          flag(3, "gone", forAll, { deleted: true }),
          flag(4, "off", forAll, { active: false }),
          flag(5, "of-cohort", ofCohort),
          flag(6, "of-flag", { groups: [{ properties: [ofFlag], rollout_percentage: 100 }] }),
        ],
      }),
    );
    expect([file.product, file.preservesPercentages, file.remarks]).toEqual(["PostHog", true, []]);
    expect(file.messages).toEqual([
      expect.stringMatching(/^of-cohort, rule 1: .*references a cohort by the ID 7/),
    ]);
    expect(file.value("of-cohort", "p")).toBe(false);
    expect(file.document.flags.map(({ key }) => key)).toEqual(["all", "half", "of-cohort", "of-flag", "off"]);
    expect([file.value("all", "p"), file.value("off", "p"), file.value("of-flag", "p")]).toEqual([
      true,
      false,
      true,
    ]);
    expect([file.flag("half").tags, file.value("half", "p", { plan: "free" })]).toEqual([["web"], false]);
    // As PostHog has it: by the flag's key and the id.
    const values = Array.from({ length: 8 }, (_, n) => file.value("half", `user-${n}`, { plan: "pro" }));
    const native = readVendorFile({ ...flag(9, "half", half) } as unknown as Json)!;
    expect(native.document.flags[0]!.filters).toEqual(file.flag("half").filters);
    expect(new Set(values).size).toBeGreaterThan(1);
  });

  test("definitions for SDKs, with cohorts and group types", () => {
    const file = imported(
      json({
        flags: [
          flag(1, "of-cohort", {
            groups: [{ properties: [{ key: "id", type: "cohort", value: 7 }], rollout_percentage: 100 }],
          }),
          flag(2, "of-company", { ...forAll, aggregation_group_type_index: 1 }),
        ],
        group_type_mapping: { 0: "project", 1: "company" },
        cohorts: { 7: { type: "OR", values: [{ type: "AND", values: [property("plan", ["pro"])] }] } },
      }),
    );
    expect(file.remarks).toEqual([]);
    expect([file.document.cohorts[0]!.name, file.document.group_types]).toEqual([
      "Cohort 7",
      { 1: "company" },
    ]);
    expect([file.value("of-cohort", "p", { plan: "pro" }), file.value("of-cohort", "p")]).toEqual([
      true,
      false,
    ]);
  });

  test("an incomplete page of flags is reported", () => {
    const page = {
      next: "https://posthog.example/api/projects/1/feature_flags/?offset=100",
      results: [flag(1, "a", forAll)],
    };
    expect(readVendorFile(page as unknown as Json)!.remarks[0]).toContain("one page of several");
  });

  test("a bare list, and a single flag", () => {
    for (const root of [[flag(1, "a", forAll)], flag(1, "a", forAll)])
      expect(readVendorFile(root as unknown as Json)!.document.flags.map(({ key }) => key)).toEqual(["a"]);
  });
});
