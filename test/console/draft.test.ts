/** The rules of the flag editor that need no browser: changes in words, what keeps a draft from being saved, shares. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import {
  conditionProblem,
  type Draft,
  differences,
  evenShares,
  getProblems,
  toDraft,
} from "../../src/console/page/model/draft.ts";
import { isSame } from "../../src/console/page/model/filter-differences.ts";
import type { Flag } from "../../src/console/page/model/flags.ts";
import { toYaml } from "../../src/console/page/model/yaml.ts";

const flag = {
  id: 1,
  key: "new-checkout",
  name: "",
  tags: ["web"],
  filters: {
    groups: [
      {
        properties: [{ key: "plan", type: "person", operator: "exact", value: ["pro"] }],
        rollout_percentage: 10,
      },
    ],
  },
} as unknown as Flag;

const changed = (change: (draft: Draft) => void): string[] => {
  const draft = toDraft(flag);
  change(draft);
  return differences(toDraft(flag), draft);
};

describe("changes in words", () => {
  const cases: readonly (readonly [string, (draft: Draft) => void, string[]])[] = [
    ["nothing", () => {}, []],
    [
      "rollout",
      (d) => (d.filters.groups![0]!.rollout_percentage = 40),
      ["condition set 1: rollout 10 → 40%"],
    ],
    ["tags", (d) => (d.tags = ["payments"]), ["tag payments added", "tag web removed"]],
    [
      "a set",
      (d) => d.filters.groups!.push({ properties: [], rollout_percentage: 100 }),
      ["condition set 2 added: Everyone"],
    ],
    ["no set", (d) => (d.filters.groups = []), ["condition set 1 removed: 10% of plan = pro"]],
    [
      "conditions",
      (d) => (d.filters.groups![0]!.properties = []),
      ["condition set 1: plan = pro → Everyone"],
    ],
    [
      "variants",
      (d) => (d.filters.multivariate = { variants: [{ key: "a", rollout_percentage: 100 }] }),
      ["type Boolean → Variants", "variant a added, 100%"],
    ],
    ["unknown members", (d) => (d.filters.early_exit = true), ["early_exit changed"]],
  ];
  for (const [name, change, lines] of cases) test(name, () => expect(changed(change)).toEqual(lines));
});

test("a draft with wrong shares, broken payloads or empty conditions is not saved", () => {
  const draft = toDraft(flag);
  expect(getProblems(draft).size).toBe(0);
  draft.filters.multivariate = {
    variants: [
      { key: "a", rollout_percentage: 50 },
      { key: "b", rollout_percentage: 40 },
    ],
  };
  draft.filters.payloads = { a: "{", b: '{"fine": true}' };
  draft.filters.groups![0]!.properties!.push({ key: "", type: "person", operator: "exact", value: ["x"] });
  expect([...getProblems(draft).keys()]).toEqual(["variants", "payload a", "condition 0 1"]);
});

test("invalid conditions are reported immediately", () => {
  const problem = (operator: string, value: unknown) =>
    conditionProblem({ key: "plan", type: "person", operator, value }) !== undefined;
  expect(problem("exact", [])).toBe(true);
  expect(problem("is_set", "")).toBe(false);
  expect(problem("gt", "ten")).toBe(true);
  expect(problem("gt", "10.5")).toBe(false);
  expect(problem("regex", "[")).toBe(true);
  expect(problem("regex", "(?i)^a")).toBe(false);
});

test("even shares make exactly 100", () => {
  for (let count = 1; count <= 40; count++) {
    const shares = evenShares(count);
    expect(shares).toHaveLength(count);
    expect(shares.reduce((sum, share) => sum + share, 0)).toBe(100);
    expect(Math.max(...shares) - Math.min(...shares)).toBeLessThanOrEqual(1);
  }
});

test("equality ignores the order of members", () => {
  expect(isSame({ a: 1, b: { c: [1], d: 2 } }, { b: { d: 2, c: [1] }, a: 1 })).toBe(true);
  expect(isSame([1, 2], [2, 1])).toBe(false);
});

test("YAML is read back as written", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string({ minLength: 1 }), fc.jsonValue({ maxDepth: 4 })), (value) => {
      const clean = JSON.parse(JSON.stringify(value));
      expect(Bun.YAML.parse(toYaml(clean)) ?? {}).toEqual(clean);
    }),
    { numRuns: 300 },
  );
});
