import { expect, test } from "bun:test";
import { foreignImports, near } from "./support.ts";

const imported = foreignImports();

test("Flipt: variants and booleans, segments of both kinds", () => {
  const file = imported(`
version: "1.4"
namespace: default
flags:
  - key: flag1
    name: Flag one
    type: VARIANT_FLAG_TYPE
    enabled: true
    variants:
      - {key: v1, attachment: {pi: 3.14}}
      - {key: v2}
      - {key: other, default: true}
    rules:
      - segment: team
        distributions: [{variant: v1, rollout: 60}, {variant: v2, rollout: 40}]
      - segments: [german, adult]
        operator: AND_SEGMENT_OPERATOR
        distributions: [{variant: v2, rollout: 100}]
  - key: flag2
    type: BOOLEAN_FLAG_TYPE
    enabled: false
    rollouts:
      - segment: {key: german, value: true}
      - threshold: {percentage: 30, value: true}
segments:
  - key: team
    match_type: ANY_MATCH_TYPE
    constraints:
      - {type: STRING_COMPARISON_TYPE, property: email, operator: suffix, value: "@acme.com"}
      - {type: ENTITY_ID_COMPARISON_TYPE, property: entity, operator: isoneof, value: '["ann","bob"]'}
  - key: german
    match_type: ALL_MATCH_TYPE
    constraints: [{type: STRING_COMPARISON_TYPE, property: country, operator: eq, value: de}]
  - key: adult
    match_type: ALL_MATCH_TYPE
    constraints: [{type: NUMBER_COMPARISON_TYPE, property: age, operator: gte, value: "18"}]
`);
  expect([file.product, file.messages]).toEqual(["Flipt", []]);
  expect(file.shares("flag1", { email: "x@acme.com" })).toEqual({ v1: near(60), v2: near(40) });
  expect(["v1", "v2"]).toContain(file.value("flag1", "ann") as string);
  expect(file.value("flag1", "p", { country: "de", age: 20 })).toBe("v2");
  expect(file.value("flag1", "p", { country: "de", age: 17 })).toBe("other");
  expect(file.shares("flag2")).toEqual({ true: near(30), false: near(70) });
  expect(file.value("flag2", "p", { country: "de" })).toBe(true);
});
