/** Files that no product has written: a broken flag costs itself alone (contract, import 3: F1). */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { parseFile } from "../../../../src/flags/import-export/read-document.ts";
import { readVendorFile } from "../../../../src/flags/import-export/vendors/read-vendor-file.ts";
import type { Json } from "../../../../src/lib/json/value.ts";
import { foreignImports, json } from "./support.ts";

const imported = foreignImports();

const clause = { attribute: "plan", op: "in", values: ["a"], negate: false, contextKind: "user" };
const constraint = { contextName: "plan", operator: "IN", values: ["a"], inverted: false };
const query = { "==": [{ var: "plan" }, "a"] };

/** A valid flag of each product with most of its members, and a file of several flags. */
const products: Record<string, { flag: Json; file: (flags: Record<string, Json>) => Json }> = {
  LaunchDarkly: {
    flag: {
      on: true,
      variations: ["x", "y"],
      offVariation: 1,
      tags: ["t"],
      prerequisites: [{ key: "good", variation: 0 }],
      targets: [{ values: ["ann"], variation: 0 }],
      contextTargets: [{ contextKind: "user", values: [], variation: 0 }],
      rules: [
        { clauses: [clause, { op: "segmentMatch", values: ["s"] }], variation: 0 },
        {
          clauses: [],
          rollout: {
            variations: [
              { variation: 0, weight: 1000 },
              { variation: 1, weight: 99_000 },
            ],
          },
        },
      ],
      fallthrough: { variation: 1 },
    },
    file: (flags) => ({
      flags,
      segments: { s: { included: ["ann"], rules: [{ clauses: [clause], weight: null }] } },
    }),
  },
  Unleash: {
    flag: {
      enabled: true,
      description: "d",
      variants: [{ name: "x", weight: 1000, overrides: [{ contextName: "userId", values: ["ann"] }] }],
      strategies: [
        {
          name: "flexibleRollout",
          parameters: { rollout: "50", stickiness: "default", groupId: "g" },
          constraints: [constraint],
          segments: [1],
        },
        { name: "userWithId", parameters: { userIds: "ann,bob" }, disabled: false },
      ],
      dependencies: [{ feature: "good", enabled: true, variants: [] }],
    },
    file: (flags) => ({
      version: 2,
      features: Object.entries(flags).map(([name, flag]) => (isObject(flag) ? { name, ...flag } : flag)),
      segments: [{ id: 1, constraints: [constraint] }],
    }),
  },
  GrowthBook: {
    flag: {
      defaultValue: "x",
      rules: [
        {
          id: "r",
          condition: { $or: [{ plan: { $in: ["a"] } }, { age: { $gt: 5 } }] },
          force: "y",
          coverage: 0.5,
          hashAttribute: "id",
        },
        { key: "e", variations: ["x", "y"], weights: [0.5, 0.5], meta: [{ key: "0" }], seed: "s" },
        { parentConditions: [{ id: "good", condition: { value: { $eq: "y" } }, gate: true }] },
      ],
    },
    file: (features) => ({ features, savedGroups: { g: ["ann"] } }),
  },
  Flagsmith: {
    flag: {
      enabled: true,
      feature_state_value: "x",
      multivariate_feature_state_values: [
        { multivariate_feature_option: { value: "y" }, percentage_allocation: 30 },
      ],
    },
    file: (flags) => ({
      feature_states: Object.entries(flags).map(([name, flag]) =>
        isObject(flag) ? { feature: { id: 1, name }, ...flag } : flag,
      ),
      project: { segments: [] },
    }),
  },
  flagd: {
    flag: {
      state: "ENABLED",
      variants: { x: 1, y: 2 },
      defaultVariant: "x",
      metadata: { description: "d" },
      targeting: {
        if: [
          { and: [query, { starts_with: [{ var: "email" }, "a"] }] },
          "y",
          { $ref: "s" },
          {
            fractional: [
              ["x", 1],
              ["y", 1],
            ],
          },
          "x",
        ],
      },
    },
    file: (flags) => ({ flags, $evaluators: { s: query } }),
  },
  Flipt: {
    flag: {
      type: "VARIANT_FLAG_TYPE",
      enabled: true,
      name: "n",
      variants: [
        { key: "x", attachment: "{}" },
        { key: "y", default: true },
      ],
      rules: [
        {
          segment: "s",
          rank: 1,
          distributions: [
            { variant: "x", rollout: 40 },
            { variant: "y", rollout: 60 },
          ],
        },
      ],
      rollouts: [{ threshold: { percentage: 5, value: true } }],
    },
    file: (flags) => ({
      namespace: "default",
      flags: Object.entries(flags).map(([key, flag]) => (isObject(flag) ? { key, ...flag } : flag)),
      segments: [
        {
          key: "s",
          match_type: "ALL_MATCH_TYPE",
          constraints: [{ type: "STRING_COMPARISON_TYPE", property: "plan", operator: "eq", value: "a" }],
        },
      ],
    }),
  },
  "GO Feature Flag": {
    flag: {
      variations: { x: 1, y: 2 },
      targeting: [
        { name: "n", query: 'plan eq "a"', percentage: { x: 50, y: 50 } },
        { query: json(query), variation: "y" },
      ],
      defaultRule: { variation: "x" },
    },
    file: (flags) => flags,
  },
  PostHog: {
    flag: {
      id: 1,
      name: "n",
      active: true,
      tags: ["t"],
      ensure_experience_continuity: false,
      version: 1,
      filters: {
        groups: [
          {
            properties: [{ key: "plan", type: "person", operator: "exact", value: ["a"] }],
            rollout_percentage: 50,
            variant: "x",
          },
        ],
        multivariate: { variants: [{ key: "x", name: "", rollout_percentage: 100 }] },
        payloads: { x: "{}" },
      },
    },
    file: (flags) => ({
      next: null,
      results: Object.entries(flags).map(([key, flag], id) =>
        isObject(flag) ? { ...flag, key, id: id + 1 } : flag,
      ),
    }),
  },
};

function isObject(value: Json): value is Record<string, Json> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The places in a value, as paths. */
function pathsIn(value: Json, path: string[] = []): string[][] {
  if (typeof value !== "object" || value === null) return [path];
  return [
    path,
    ...Object.entries(value).flatMap(([name, member]) => pathsIn(member as Json, [...path, name])),
  ];
}

/** A copy with another value at a place; undefined removes it. */
function replaced(value: Json, [name, ...rest]: string[], by: Json | undefined): Json | undefined {
  if (name === undefined) return by;
  const changed = replaced((value as Record<string, Json>)[name]!, rest, by);
  if (Array.isArray(value))
    return value.flatMap((item, index) =>
      String(index) === name ? (changed === undefined ? [] : [changed]) : [item],
    );
  const entries = Object.entries(value as object).filter(([key]) => key !== name);
  return Object.fromEntries(changed === undefined ? entries : [...entries, [name, changed]]);
}

const deep = (levels: number): Json => Array.from({ length: levels }).reduce<Json>((inner) => [inner], 1);
const junk = fc.oneof(
  fc.constantFrom<Json | undefined>(
    undefined,
    null,
    true,
    false,
    0,
    -1,
    1e308,
    "",
    "x",
    "a".repeat(5_000),
    [],
    {},
    [[]],
    [null],
    "(?=x)",
    "\u0000",
  ),
  fc.jsonValue({ maxDepth: 2 }) as fc.Arbitrary<Json>,
  fc.constantFrom(150, 5_000).map(deep),
  fc.constant(Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`k${index}`, index])) as Json),
);

describe.each(Object.entries(products))("%s", (_, { flag, file }) => {
  const paths = pathsIn(flag);
  test("as written, nothing is lost", () => {
    const read = imported(json(file({ good: withoutDependencies(flag), f: flag })));
    expect(read.messages).toEqual([]);
    expect([read.flag("good").active, read.flag("f").active]).toEqual([true, true]);
  });

  test("any value at any place of a flag is read or reported, and the other flags are imported", () => {
    const places = fc.array(fc.tuple(fc.constantFrom(...paths), junk), { minLength: 1, maxLength: 2 });
    fc.assert(
      fc.property(places, (changes) => {
        let broken: Json | undefined = flag;
        for (const [path, value] of changes)
          if (broken !== undefined && has(broken, path)) broken = replaced(broken, path, value);
        const read = imported(json(file({ good: withoutDependencies(flag), f: broken ?? null })));
        expect(read.flag("good").active).toBe(true);
        expect(read.messages.filter((line) => line.startsWith("good,"))).toEqual([]);
        const isRead = read.document.flags.some(({ key }) => key === "f");
        const isOn = read.document.flags.some(({ key, active }) => key === "f" && active === true);
        if (isOn && read.flag("f").active !== true)
          expect(read.messages.filter((line) => line.startsWith("f,"))).not.toEqual([]);
        expect(isRead || read.messages.some((line) => line.includes(", the flag: "))).toBe(true);
      }),
      { numRuns: 25 },
    );
  });
});

test("any value at any place of a file throws nothing", () => {
  const files = Object.values(products).map(({ flag, file }) =>
    file({ good: withoutDependencies(flag), f: flag }),
  );
  const places = files.flatMap((file) => pathsIn(file).map((path) => ({ file, path })));
  fc.assert(
    fc.property(fc.constantFrom(...places), junk, ({ file, path }, value) => {
      const text = json(replaced(file, path, value) ?? null);
      const isOfProduct = readVendorFile(parseFile(text)) !== undefined;
      if (isOfProduct) expect(imported(text).document.flags.length).toBeLessThanOrEqual(2_000);
    }),
    { numRuns: 80 },
  );
});

function has(value: Json, path: readonly string[]): boolean {
  const [name, ...rest] = path;
  if (name === undefined) return true;
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return false;
  return has((value as Record<string, Json>)[name]!, rest);
}

/** The flag that others depend on. */
function withoutDependencies(flag: Json): Json {
  const { prerequisites: _, dependencies: __, ...others } = flag as Record<string, Json>;
  if (!Array.isArray(others.rules)) return others;
  return {
    ...others,
    rules: others.rules.filter((rule) => !isObject(rule) || !("parentConditions" in rule)),
  };
}

test("a file with members nested without end, and one that does not end, are rejected as a whole", () => {
  expect(() => parseFile("[".repeat(200_000))).toThrow("not valid YAML or JSON");
  expect(readVendorFile(parseFile(`${"[".repeat(100_000)}${"]".repeat(100_000)}`))).toBeUndefined();
});

test("many flags are read in one go", () => {
  const { flag, file } = products.LaunchDarkly!;
  const flags = Object.fromEntries(
    Array.from({ length: 5_000 }, (_, index) => [`f${index}`, withoutDependencies(flag)]),
  );
  const read = readVendorFile(parseFile(json(file(flags))))!;
  expect([read.document.flags.length, read.notMapped]).toEqual([5_000, []]);
});
