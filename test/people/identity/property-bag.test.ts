import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { PropertyBag, unsetNamesMax } from "../../../src/people/identity/property-bag.ts";
import { nestingMax, propertyBytesMax } from "../../../src/people/identity/property-size.ts";
import { propertyColumns, readBag } from "../../../src/people/property-columns.ts";

const live = (timeMicros: number) => ({ timeMicros, historical: false });
const loaded = (timeMicros: number) => ({ timeMicros, historical: true });
const bytesOf = (bag: PropertyBag) => Buffer.byteLength(propertyColumns(bag).properties);

function stored(bag: PropertyBag): PropertyBag {
  const { properties, propertyTimes, unsetTimes } = propertyColumns(bag);
  return readBag(properties, propertyTimes, unsetTimes);
}

function nested(levels: number): unknown {
  return JSON.parse("[".repeat(levels) + "]".repeat(levels));
}

describe("size", () => {
  test("a write that would make the properties too large is refused, others are not", () => {
    const bag = new PropertyBag();
    bag.set("small", "old", live(1));
    bag.set("big", "x".repeat(propertyBytesMax), live(2));
    bag.set("small", "new", live(2));
    expect({ ...bag.values }).toEqual({ small: "new" });
    expect(bag.refusals).toBe(1);
  });

  test("exactly the limit fits, one byte more does not; making room helps", () => {
    const bag = new PropertyBag();
    const text = "é".repeat((propertyBytesMax - '{"a":"","b":0}'.length) / 2);
    bag.set("a", text, live(1));
    bag.set("b", 0, live(1));
    expect(bytesOf(bag)).toBe(propertyBytesMax);
    bag.set("b", 10, live(1));
    expect([bag.values.b, bag.refusals]).toEqual([0, 1]);
    const again = stored(bag);
    again.set("b", 10, live(1));
    expect([again.values.b, again.refusals]).toEqual([0, 1]);
    again.set("a", "short", live(2));
    again.set("b", 10, live(2));
    expect({ ...again.values }).toEqual({ a: "short", b: 10 });
  });

  test("the limit does not depend on when the properties were stored", () => {
    const writes = fc.array(
      fc.record({
        name: fc.constantFrom("a", "b", "c", "d"),
        value: fc.integer({ min: 0, max: 200 }).map((thousands) => "é\u0001x".repeat(thousands * 333)),
        isUnset: fc.boolean(),
      }),
      { minLength: 4, maxLength: 12 },
    );
    fc.assert(
      fc.property(writes, fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }), (list, stores) => {
        const kept = new PropertyBag();
        let restored = new PropertyBag();
        list.forEach(({ name, value, isUnset }, index) => {
          for (const bag of [kept, restored]) {
            if (isUnset) bag.unset(name, live(index));
            else bag.set(name, value, live(index));
          }
          if (stores[index]) restored = stored(restored);
        });
        expect({ ...restored.values }).toEqual({ ...kept.values });
        expect(bytesOf(kept)).toBeLessThanOrEqual(propertyBytesMax);
      }),
      { numRuns: 60 },
    );
  });

  test("of two large persons the target's properties stay", () => {
    const [target, other] = [new PropertyBag(), new PropertyBag()];
    target.set("mine", "x".repeat(400_000), live(1));
    other.set("theirs", "y".repeat(400_000), live(1));
    other.set("plan", "pro", live(1));
    target.absorb(other, live(2));
    expect(Object.keys(target.values)).toEqual(["mine", "plan"]);
    expect(target.refusals).toBe(1);
  });

  test("a value nested too deep to be written out is refused", () => {
    const bag = new PropertyBag();
    bag.set("deep", nested(100_000), live(1));
    bag.set("fine", nested(nestingMax), live(1));
    bag.set("fine", nested(nestingMax + 1), live(1));
    expect(Object.keys(bag.values)).toEqual(["fine"]);
    expect(bag.refusals).toBe(2);
  });
});

describe("times", () => {
  test("survive storage, however many different ones there are", () => {
    for (const count of [0, 1, 2, 254, 255, 256, 300]) {
      const bag = new PropertyBag();
      // Names that are array indexes are listed first by objects, whatever the order of writing.
      for (let index = count; index > 0; index -= 1) {
        bag.set(index % 3 === 0 ? String(index) : `name-${index}`, index, live(1.7e15 + index));
      }
      bag.unset("gone", live(7));
      const again = stored(bag);
      expect({ ...again.values }).toEqual({ ...bag.values });
      for (const name of Object.keys(bag.values)) expect(again.timeOf(name)).toBe(bag.timeOf(name));
      expect([...again.unsetTimes]).toEqual([["gone", 7]]);
    }
  });

  test("a name that comes back has its new time", () => {
    const bag = new PropertyBag();
    bag.set("a", 1, live(5));
    bag.set("a", 2, live(9));
    bag.unset("a", live(10));
    bag.set("a", 3, live(5));
    bag.set("a", 4, loaded(6));
    expect({ ...stored(bag).values }).toEqual({ a: 4 });
  });

  test("only so many unset names are remembered, those with the latest times", () => {
    const bag = new PropertyBag();
    for (let index = 0; index < unsetNamesMax + 5; index += 1) bag.unset(`n${index}`, live(index));
    bag.unset("x".repeat(401), live(1e9));
    bag.boundUnsetNames();
    expect(bag.unsetTimes.size).toBe(unsetNamesMax);
    expect([bag.unsetTimes.has("n4"), bag.unsetTimes.has("n5")]).toEqual([false, true]);
  });

  test("a row edited by hand can be read", () => {
    const bag = readBag('{"a":1,"b":2}', new Uint8Array(), null);
    bag.set("a", 3, loaded(1));
    expect({ ...bag.values }).toEqual({ a: 3, b: 2 });
    const { propertyTimes } = propertyColumns(bag);
    expect({ ...readBag('{"a":1,"b":2,"c":3}', propertyTimes, null).values }).toEqual({ a: 1, b: 2, c: 3 });
  });
});
