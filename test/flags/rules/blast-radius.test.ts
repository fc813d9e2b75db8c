import { describe, expect, test } from "bun:test";
import { parseBlastRadius } from "../../../src/flags/rules/blast-radius.ts";
import { FlagInvalid } from "../../../src/flags/rules/flag-invalid.ts";
import type { JsonObject } from "../../../src/lib/json.ts";
import { person } from "../make.ts";

const plan = { key: "plan", type: "group", group_type_index: 0, value: "pro" };
const key = { key: "$group_key", type: "group", value: "acme" };

const withFilter = (filter: JsonObject) => ({ condition: { properties: [filter] } });

describe("blast radius", () => {
  for (const condition of [null, {}, { properties: [] }, { properties: null }, { rollout_percentage: 5 }]) {
    test(`${JSON.stringify(condition)} is everyone`, () =>
      expect(parseBlastRadius({ condition: condition as JsonObject | null })).toMatchObject({
        sets: [{ filters: [] }],
        groupTypeIndex: null,
        flagKey: "",
      }));
  }
  test("filters of persons and of groups", () => {
    const byEmail = person("email", "exact", "x");
    expect(parseBlastRadius({ condition: { properties: [byEmail] }, group_type_index: null })).toEqual({
      sets: [{ filters: [byEmail], rolloutPercentage: 100 }],
      groupTypeIndex: null,
      flagKey: "",
    });
    expect(parseBlastRadius({ condition: { properties: [plan, key] }, group_type_index: 0 })).toEqual({
      sets: [{ filters: [plan, key], rolloutPercentage: 100 }],
      groupTypeIndex: 0,
      flagKey: "",
    });
  });

  test("a set about persons in a flag about groups counts persons", () => {
    const byEmail = person("email", "exact", "x");
    const group = { properties: [byEmail], aggregation_group_type_index: null };
    const filters = { groups: [group], aggregation_group_type_index: 0 };
    expect(parseBlastRadius({ filters })).toMatchObject({
      groupTypeIndex: null,
      sets: [{ filters: [byEmail] }],
    });
    const condition = { properties: [plan], aggregation_group_type_index: null };
    expect(parseBlastRadius({ condition, group_type_index: 0 })).toMatchObject({ groupTypeIndex: 0 });
  });

  test("an operator that nobody knows is refused, but a number for gt and a flag without operator are not", () => {
    expect(() => parseBlastRadius(withFilter(person("a", "resembles", "b")))).toThrow(
      expect.objectContaining({ code: "invalid_operator", field: "filters" }),
    );
    for (const filter of [person("a", "gt", 5), { key: "1", type: "flag", operator: "odd", value: true }]) {
      expect(parseBlastRadius(withFilter(filter)).sets[0]!.filters).toEqual([filter]);
    }
  });

  const refused: [string, JsonObject, string, string | null][] = [
    ["no condition", {}, "Missing condition for which to get blast radius", null],
    [
      "another group type",
      { condition: { properties: [plan] }, group_type_index: 1 },
      "Invalid group type index for feature flag condition.",
      null,
    ],
    [
      "a person's property, counting groups",
      { condition: { properties: [person("a", "exact", "b")] }, group_type_index: 0 },
      "Invalid group type index for feature flag condition.",
      null,
    ],
    ["properties no list", { condition: { properties: {} } }, "properties must be a list", "filters"],
    ["filter without key", withFilter({ value: 1 }), "properties[0].key is required", "filters"],
    [
      "invalid pattern",
      withFilter(person("a", "regex", "(")),
      "properties[0].value: invalid regex pattern",
      "filters",
    ],
    ["filter no object", { condition: { properties: [1] } }, "properties[0] must be an object", "filters"],
  ];
  for (const [name, body, detail, attr] of refused) {
    test(name, () => {
      const found = (() => {
        try {
          return parseBlastRadius(body);
        } catch (error) {
          return error;
        }
      })();
      expect(found).toBeInstanceOf(FlagInvalid);
      expect(found).toMatchObject({ code: "invalid_input", message: detail, field: attr });
    });
  }
});
