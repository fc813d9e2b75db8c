import { expect, test } from "bun:test";
import fc from "fast-check";
import type { StampedProperty } from "../../../src/persons/identity/stamped-properties.ts";
import { decodeProperties, encodeProperties } from "../../../src/persons/identity/stamps-codec.ts";

const numbers = fc.oneof(fc.constant(0), fc.nat(), fc.maxSafeNat());
const names = fc.oneof(fc.string({ unit: "grapheme" }), fc.constantFrom("__proto__", "7", "", "plan"));
const values = fc.oneof(
  fc.constantFrom("1", '"x"', "null", "[1,{}]", "12.5", "12345678901234567890"),
  fc.nat().map(String),
);

const property: fc.Arbitrary<StampedProperty> = fc
  .record({
    kind: fc.constantFrom("set" as const, "once" as const, "unset" as const),
    text: values,
    number: numbers,
    historical: fc.boolean(),
    realtimeUnset: numbers,
    historicalUnset: numbers,
    realtimeNumber: numbers,
    realtimeMicros: fc.oneof(fc.constant(Number.NEGATIVE_INFINITY), fc.maxSafeInteger()),
  })
  .map((one) => (one.kind === "unset" ? { ...one, text: "" } : one));

test("what is decoded is what was encoded", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(names, property), { maxLength: 20 }), (entries) => {
      const properties = new Map(entries);
      expect(decodeProperties(encodeProperties(properties))).toEqual(properties);
    }),
    { numRuns: 1_000 },
  );
});

test("a stamp of many properties is written once", () => {
  const stamped: StampedProperty = {
    kind: "set",
    text: '"x"',
    number: 2 ** 50,
    historical: false,
    realtimeUnset: 0,
    historicalUnset: 0,
    realtimeNumber: 2 ** 50,
    realtimeMicros: 1_700_000_000_000_000,
  };
  const properties = (count: number) =>
    new Map(Array.from({ length: count }, (_, index) => [`p${index}`, stamped] as const));
  const { length } = encodeProperties(properties(1)).stamps;
  expect(encodeProperties(properties(30)).stamps.length).toBe(length + 29);
});

test("bytes of other properties, of another format or cut off are errors", () => {
  const encoded = encodeProperties(
    new Map([
      ["plan", { ...base(), kind: "set" as const, text: "1" }],
      ["gone", { ...base(), kind: "unset" as const, text: "" }],
    ]),
  );
  const { stamps } = encoded;
  expect(() => decodeProperties({ ...encoded, json: '{"plan":1,"more":2}' })).toThrow();
  expect(() => decodeProperties({ ...encoded, json: "{}" })).toThrow();
  expect(() => decodeProperties({ ...encoded, stamps: stamps.with(0, 2) })).toThrow("unknown format 2");
  for (let length = 0; length < stamps.length; length++)
    expect(() => decodeProperties({ ...encoded, stamps: stamps.subarray(0, length) })).toThrow();
});

function base() {
  return {
    number: 5,
    historical: false,
    realtimeUnset: 0,
    historicalUnset: 0,
    realtimeNumber: 5,
    realtimeMicros: 9,
  };
}
