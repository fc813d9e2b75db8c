import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { InvalidDocumentError } from "../../../../src/flags/import-export/read-document.ts";
import { readVendorFile } from "../../../../src/flags/import-export/vendors/read-vendor-file.ts";
import type { JsonObject } from "../../../../src/lib/json/value.ts";
import { foreignImports, json, near } from "./support.ts";

const imported = foreignImports();

describe("LaunchDarkly", () => {
  const state = {
    on: true,
    targets: [{ values: ["vip"], variation: 0 }],
    contextTargets: [],
    prerequisites: [],
    offVariation: 1,
    rules: [
      {
        _id: "1",
        description: "not for trials",
        variation: 1,
        clauses: [{ attribute: "plan", op: "in", values: ["trial"], contextKind: "user", negate: false }],
      },
      {
        _id: "2",
        rollout: {
          contextKind: "user",
          variations: [
            { variation: 0, weight: 25_000 },
            { variation: 1, weight: 75_000 },
          ],
        },
        clauses: [{ attribute: "email", op: "endsWith", values: ["@acme.com"], negate: false }],
      },
      {
        _id: "3",
        variation: 0,
        clauses: [{ attribute: "age", op: "greaterThan", values: [64], negate: false }],
      },
    ],
    fallthrough: { variation: 1 },
  };
  const boolean = {
    key: "new.checkout",
    name: "New checkout",
    kind: "boolean",
    tags: ["web"],
    variations: [
      { _id: "a", value: true, name: "On" },
      { _id: "b", value: false, name: "Off" },
    ],
    environments: { production: state, test: { ...state, on: false } },
  };

  test("answers of the API: targets, rules, shares, in their order", () => {
    const file = imported(json({ items: [boolean], totalCount: 1 }));
    expect([file.product, file.environment]).toEqual(["LaunchDarkly", "production"]);
    expect(file.messages).toEqual([
      `new-checkout, its key: was "new.checkout": use the new key in your code`,
    ]);
    expect(file.flag("new-checkout")).toMatchObject({ name: "New checkout", active: true, tags: ["web"] });
    expect(file.value("new-checkout", "vip", { plan: "trial" })).toBe(true);
    expect(file.value("new-checkout", "x", { plan: "trial", age: 70 })).toBe(false);
    expect(file.value("new-checkout", "x", { age: 70 })).toBe(true);
    expect(file.value("new-checkout", "x", { age: 60 })).toBe(false);
    // The rule decides for everybody whom it fits: those outside of its share are off whatever comes behind.
    expect(file.shares("new-checkout", { email: "ann@acme.com", age: 70 })).toEqual({
      true: near(25),
      false: near(75),
    });
  });

  test("answers of the API without the ids of variations", () => {
    const variations = boolean.variations.map(({ value }) => ({ value }));
    const file = imported(json({ items: [{ ...boolean, variations }] }));
    expect(file.value("new-checkout", "vip", {})).toBe(true);
    expect(file.flag("new-checkout").filters).not.toHaveProperty("multivariate");
  });

  test("the environment: the named one, else production, else an error lists them", () => {
    expect(imported(json({ items: [boolean] }), "test").flag("new-checkout").active).toBe(false);
    expect(() => readVendorFile({ items: [boolean] } as never, "nope")).toThrow("production, test");
    const others = { ...boolean, environments: { a: state, b: state } };
    expect(() => readVendorFile({ items: [others] } as never)).toThrow(InvalidDocumentError);
  });

  test("flag data: text and JSON variations, segments, prerequisites, own shares of a rule", () => {
    const file = imported(
      json({
        flags: {
          button: {
            on: true,
            variations: ["blue", "dark red", { hex: "#0a0" }],
            offVariation: 0,
            prerequisites: [{ key: "base", variation: 0 }],
            rules: [
              {
                id: "r",
                clauses: [{ attribute: "", op: "segmentMatch", values: ["beta"] }],
                rollout: {
                  variations: [
                    { variation: 0, weight: 10_000 },
                    { variation: 2, weight: 90_000 },
                  ],
                },
              },
            ],
            fallthrough: {
              rollout: {
                variations: [
                  { variation: 0, weight: 50_000 },
                  { variation: 1, weight: 30_000 },
                  { variation: 2, weight: 20_000 },
                ],
              },
            },
          },
          base: {
            on: true,
            variations: [true, false],
            rules: [{ clauses: [{ attribute: "off", op: "in", values: [true] }], variation: 1 }],
            fallthrough: { variation: 0 },
          },
        },
        segments: {
          beta: {
            included: ["ann"],
            excluded: ["bob"],
            rules: [{ clauses: [{ attribute: "country", op: "in", values: ["de", "fr"] }] }],
          },
        },
      }),
    );
    expect(file.messages).toEqual([]);
    expect(file.shares("button", { country: "de" })).toEqual({ blue: near(10), "variant-3": near(90) });
    expect(file.shares("button")).toEqual({ blue: near(50), "variant-2": near(30), "variant-3": near(20) });
    // Those who do not meet the prerequisite get the off variation.
    expect(file.value("button", "x", { off: true })).toBe("blue");
    expect(file.flag("button").filters?.payloads).toEqual({
      "variant-2": '"dark red"',
      "variant-3": '{"hex":"#0a0"}',
    });
    // Of bob, who is excluded, the last rule decides.
    expect(file.value("button", "bob", { country: "de" })).toBe(file.value("button", "bob"));
  });

  const clauses: [clause: JsonObject, yes: JsonObject, no: JsonObject][] = [
    [{ op: "in", values: ["a", "b"] }, { x: "b" }, { x: "c" }],
    [{ op: "startsWith", values: ["a.", "b"] }, { x: "a.c" }, { x: "abc" }],
    [{ op: "endsWith", values: ["z"] }, { x: "az" }, { x: "za" }],
    [{ op: "contains", values: ["(x)"] }, { x: "a(x)b" }, { x: "axb" }],
    [{ op: "contains", values: ["X"] }, { x: "aXb" }, { x: "axb" }],
    [{ op: "matches", values: ["^a+$"] }, { x: "aa" }, { x: "ab" }],
    [{ op: "lessThan", values: [3] }, { x: 2 }, { x: 3 }],
    [{ op: "greaterThanOrEqual", values: [3] }, { x: 3 }, { x: 2 }],
    [{ op: "before", values: [Date.parse("2025-01-01")] }, { x: "2024-12-31" }, { x: "2025-06-01" }],
    [{ op: "after", values: ["2025-01-01T00:00:00Z"] }, { x: "2025-06-01" }, { x: "2024-12-31" }],
    [{ op: "semVerGreaterThan", values: ["1.9.0"] }, { x: "1.10.0" }, { x: "1.8.0" }],
    [{ op: "semVerEqual", values: ["2.0.0"] }, { x: "2.0.0" }, { x: "2.0.1" }],
  ];
  for (const [clause, yes, no] of clauses) {
    for (const negate of [false, true]) {
      test(`${negate ? "not " : ""}${json(clause)}`, () => {
        const rules = [{ clauses: [{ attribute: "x", ...clause, negate }], variation: 0 }];
        const flag = { on: true, variations: [true, false], rules, fallthrough: { variation: 1 } };
        const file = imported(json({ flags: { f: flag }, segments: {} }));
        expect(file.messages).toEqual([]);
        expect(file.value("f", "p", yes)).toBe(!negate);
        expect(file.value("f", "p", no)).toBe(negate);
        // A clause is false for those who lack the attribute, negated or not (contract, import 3).
        expect(file.value("f", "p")).toBe(false);
      });
    }
  }

  test("unsupported parts are reported, and the flag is turned off", () => {
    const rule = {
      clauses: [{ attribute: "x", op: "in", values: [1], contextKind: "company" }],
      variation: 0,
    };
    const flag = { on: true, variations: [true, false], rules: [rule], fallthrough: { variation: 1 } };
    const file = imported(json({ flags: { f: flag, g: { ...flag, rules: [] } } }));
    expect(file.messages).toEqual(["f, rule 1: it uses contexts of kind company"]);
    expect([file.flag("f").active, file.flag("g").active]).toEqual([false, true]);
  });

  test("any chain of rules decides as the first rule that fits", () => {
    const value = fc.constantFrom("a", "b", "c");
    const rules = fc.array(
      fc.record({ values: fc.array(value, { minLength: 1 }), on: fc.boolean(), negate: fc.boolean() }),
      {
        maxLength: 5,
      },
    );
    fc.assert(
      fc.property(rules, fc.boolean(), fc.option(value, { nil: undefined }), (chain, last, x) => {
        const flag = {
          on: true,
          variations: [true, false],
          rules: chain.map(({ values, on, negate }) => ({
            clauses: [{ attribute: "x", op: "in", values, negate }],
            variation: on ? 0 : 1,
          })),
          fallthrough: { variation: last ? 0 : 1 },
        };
        const fits = chain.find(({ values, negate }) => (x !== undefined && values.includes(x)) !== negate);
        const file = imported(json({ flags: { f: flag } }));
        expect(file.value("f", "p", x === undefined ? {} : { x })).toBe(fits?.on ?? last);
      }),
      { numRuns: 25 },
    );
  });
});
