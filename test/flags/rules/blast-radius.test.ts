import { describe, expect, test } from "bun:test";
import { type BlastRadiusBody, parseBlastRadius as parse } from "../../../src/flags/rules/blast-radius.ts";
import { InvalidFlagError } from "../../../src/flags/rules/errors.ts";
import { filtersOfNewFlag } from "../../../src/flags/rules/filters.ts";
import type { JsonObject } from "../../../src/lib/json/value.ts";
import { person } from "../make.ts";
import { context } from "./support.ts";

const plan = { key: "plan", type: "group", group_type_index: 0, value: "pro" };
const key = { key: "$group_key", type: "group", group_type_index: 0, value: "acme" };

const parseBlastRadius = (body: BlastRadiusBody) =>
  parse(body, (filters) => filtersOfNewFlag(filters, context()));

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

  test("rejects what saving rejects", () => {
    for (const [filter, code] of [
      [person("a", "resembles", "b"), "invalid_operator"],
      [person("a", "gt", 5), "invalid_value"],
      [{ key: "11", type: "flag", operator: "odd", value: true }, "invalid_input"],
      [{ key: "99", type: "flag", operator: "flag_evaluates_to", value: true }, "invalid_input"],
      [{ key: "id", type: "cohort", operator: "in", value: 99 }, "cohort_does_not_exist"],
    ] as const) {
      expect(() => parseBlastRadius(withFilter(filter))).toThrow(
        expect.objectContaining({ code, field: "filters" }),
      );
    }
  });

  const rejected: [string, JsonObject, string, string | null][] = [
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
      "groups[0].properties[0].value: invalid regex pattern",
      "filters",
    ],
    ["filter no object", { condition: { properties: [1] } }, "properties[0] must be an object", "filters"],
  ];
  for (const [name, body, detail, attr] of rejected) {
    test(name, () => {
      const found = (() => {
        try {
          return parseBlastRadius(body);
        } catch (error) {
          return error;
        }
      })();
      expect(found).toBeInstanceOf(InvalidFlagError);
      expect(found).toMatchObject({ code: "invalid_input", message: detail, field: attr });
    });
  }
});
