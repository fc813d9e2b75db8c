import { describe, expect, test } from "bun:test";
import { withGroupColumns } from "../../src/events/serialize.ts";

const types = new Map([
  ["company", 0],
  ["team", 1],
]);

describe("group columns", () => {
  for (const [name, properties, expected] of [
    ["one group", '{"$groups":{"company":"acme"}}', { $group_0: "acme" }],
    [
      "several, numbers become text",
      '{"a":1,"$groups":{"team":5,"company":true}}',
      { $group_0: "true", $group_1: "5" },
    ],
    ["types beyond the fifth have none", '{"$groups":{"sixth":"x","team":"y"}}', { $group_1: "y" }],
    ["empty and null keys name no group", '{"$groups":{"company":"","team":null}}', {}],
    ["personless events have none", '{"$process_person_profile":false,"$groups":{"company":"acme"}}', {}],
    ["what the client wrote stays", '{"$group_0":"own","$groups":{"company":"acme"}}', { $group_0: "own" }],
    ["no groups", '{"about":"\\"$groups\\""}', {}],
    ["groups that are none", '{"$groups":["company"]}', {}],
  ] as const) {
    test(name, () => {
      const shown = JSON.parse(withGroupColumns(properties, types));
      expect(shown).toEqual({ ...JSON.parse(properties), ...expected });
    });
  }

  test("the rest of the text is unchanged", () => {
    const properties = '{"n":1.50,"big":12345678901234567890,"$groups":{"company":"a\\"b"}}';
    expect(withGroupColumns(properties, types)).toBe(
      '{"n":1.50,"big":12345678901234567890,"$groups":{"company":"a\\"b"},"$group_0":"a\\"b"}',
    );
    expect(withGroupColumns(properties, new Map())).toBe(properties);
  });
});
