import { describe, expect, test } from "bun:test";
import {
  checkDeletable,
  checkDisablable,
  checkEnablable,
  flagsByCohort,
  getDependents,
} from "../../../src/flags/rules/dependents.ts";
import { InvalidFlagError } from "../../../src/flags/rules/errors.ts";
import { cohort, dependsOn, flag, inCohort, when } from "../make.ts";

function sentence(act: () => unknown): string | undefined {
  try {
    act();
  } catch (error) {
    if (!(error instanceof InvalidFlagError)) throw error;
    expect([error.code, error.field]).toEqual(["invalid_input", null]);
    return error.message;
  }
  return undefined;
}

const base = flag(1, "base", when([]));
const above = flag(2, "above", when([dependsOn("1")]));
const asNumber = flag(3, "as-number", { groups: [{}, { properties: [dependsOn(1, false)] }] });
const off = flag(4, "off", when([dependsOn("1")]), { active: false });
const deleted = flag(5, "deleted", when([dependsOn("1")]), { deleted: true });
const other = flag(6, "other", when([dependsOn("2")]));
const all = [base, above, asNumber, off, deleted, other];

test("dependents are the active flags that refer to a flag directly", () => {
  expect(getDependents(1, all).map(({ key }) => key)).toEqual(["above", "as-number"]);
  expect(getDependents(6, all)).toEqual([]);
});

test("flags of a cohort use it in any part of their filters, or through other cohorts, also in cycles", () => {
  const inner = (id: number, ...of: number[]) =>
    cohort(id, { type: "OR", values: [{ type: "AND", values: of.map((one) => inCohort(one)) }] });
  const cohorts = [inner(1), inner(2, 1), inner(3, 4), inner(4, 3), inner(5)];
  const flags = [
    flag(1, "direct", when([inCohort(1)])),
    flag(2, "nested", when([inCohort(2)]), { active: false }),
    flag(3, "early", { groups: [], super_groups: [{ properties: [inCohort(1)] }] }),
    flag(4, "circle", when([inCohort(3), inCohort(3)])),
    flag(5, "other", when([dependsOn("1"), { key: "id", type: "person", value: 5 }])),
    flag(6, "gone", when([inCohort(99)])),
    flag(7, "odd", { groups: "no list", deep: [[null, inCohort("2")]] }),
  ];
  const found = [...flagsByCohort(flags, cohorts)].map(([id, all]) => [id, all.map(({ key }) => key)]);
  expect(found.sort(([a], [b]) => Number(a) - Number(b))).toEqual([
    [1, ["direct", "nested", "early", "odd"]],
    [2, ["nested", "odd"]],
    [3, ["circle"]],
    [4, ["circle"]],
  ]);
});

describe("transitions", () => {
  const seven = Array.from({ length: 7 }, (_, i) => flag(i + 1, `f${i + 1}`, {}));
  const five = "f1 (ID: 1), f2 (ID: 2), f3 (ID: 3), f4 (ID: 4), f5 (ID: 5)";

  test("delete", () => {
    expect(sentence(() => checkDeletable([]))).toBeUndefined();
    expect(sentence(() => checkDeletable(getDependents(1, all)))).toBe(
      "Cannot delete this feature flag because other flags depend on it: above (ID: 2), as-number (ID: 3). Please update or delete the dependent flags first.",
    );
    expect(sentence(() => checkDeletable(seven))).toBe(
      `Cannot delete this feature flag because other flags depend on it: ${five}, and 2 more. Please update or delete the dependent flags first.`,
    );
  });

  test("disable", () => {
    expect(sentence(() => checkDisablable([]))).toBeUndefined();
    expect(sentence(() => checkDisablable([above]))).toBe(
      "Cannot disable this feature flag because other flags depend on it: above (ID: 2). Please update or disable the dependent flags first.",
    );
  });

  test("enable", () => {
    const facts = {
      find: (id: number) => [...all, flag(9, "asleep", {}, { active: false })].find((f) => f.id === id),
    };
    expect(sentence(() => checkEnablable(off, facts))).toBeUndefined();
    expect(sentence(() => checkEnablable(flag(7, "x", when([dependsOn("9"), dependsOn("5")])), facts))).toBe(
      "Cannot enable this feature flag because it depends on disabled flags: asleep (ID: 9), deleted (ID: 5). Please enable the dependency flags first.",
    );
  });
});
