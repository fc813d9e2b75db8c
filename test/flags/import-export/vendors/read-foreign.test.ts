import { expect, test } from "bun:test";
import fc from "fast-check";
import { readVendorFile } from "../../../../src/flags/import-export/vendors/read-vendor-file.ts";
import type { Json } from "../../../../src/lib/json/value.ts";

test("files of no product are no files of one, whatever is in them", () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 5 }), (value) => {
      expect(readVendorFile(value as Json)).toBeUndefined();
    }),
  );
  expect(readVendorFile({ flagkeep_flags: 1, flags: [], cohorts: [] })).toBeUndefined();
});

test("any values in the members of a product's file are read or reported", () => {
  const key = fc.constantFrom(
    "key",
    "name",
    "op",
    "values",
    "if",
    "var",
    "in",
    "rules",
    "clauses",
    "variation",
    "query",
  );
  const wild = fc.letrec((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom<Json>(null, true, 0, 1, "a", "", -1e308),
      fc.array(tie("node"), { maxLength: 3 }),
      fc.dictionary(key, tie("node"), { maxKeys: 4 }),
    ),
  })).node as fc.Arbitrary<Json>;
  fc.assert(
    fc.property(wild, wild, wild, (a, b, c) => {
      for (const root of [
        {
          flags: { f: { on: true, variations: [true, false], rules: a, fallthrough: b, targets: c } },
          segments: a,
        },
        { features: [{ name: "f", strategies: [a, b], variants: c }], segments: a },
        { features: { f: { defaultValue: a, rules: [b, { condition: c, force: true }] } } },
        {
          flags: {
            f: { state: "ENABLED", variants: { a: true, b: false }, targeting: a, defaultVariant: b },
          },
        },
        { flags: [{ key: "f", enabled: true, rules: a, variants: b, rollouts: c }], segments: [a] },
        { f: { variations: { a: 1, b: a }, defaultRule: b, targeting: [{ query: c }] } },
        { results: [{ id: 1, key: "f", active: true, filters: { groups: a, payloads: b }, tags: c }] },
        {
          feature_states: [{ feature: { name: "f" }, enabled: true, feature_state_value: a }],
          project: { segments: b },
        },
      ]) {
        expect(readVendorFile(root as never)?.document.flags).toHaveLength(1);
      }
    }),
  );
});
