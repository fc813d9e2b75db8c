import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { canonicalJson as json, nestingMax } from "../../../src/lib/json/canonical.ts";
import {
  PropertyState,
  propertyBytesMax,
  unsetNamesMax,
} from "../../../src/persons/identity/property-state.ts";
import { openPersons } from "../../../src/persons/open.ts";
import { readPropertyState, timeColumns } from "../../../src/persons/property-columns.ts";
import { KeySetWriter, serializeObject } from "../../../src/persons/property-key-sets.ts";

const folder = mkdtempSync(join(tmpdir(), "flagkeep-bags-"));
const client = openPersons(join(folder, "people.sqlite")).$client;
const lists = new KeySetWriter(client);
afterAll(() => {
  client.close();
  rmSync(folder, { recursive: true });
});

const live = (timeMicros: number) => ({ timeMicros, historical: false });
const loaded = (timeMicros: number) => ({ timeMicros, historical: true });
const getValues = (bag: PropertyState) => JSON.parse(serializeObject(bag.content));
const getBytes = (bag: PropertyState) => Buffer.byteLength(serializeObject(bag.content));

function stored(bag: PropertyState): PropertyState {
  const { propertyTimes, unsetTimes } = timeColumns(bag);
  return readPropertyState(client, lists.toJson(bag.content), propertyTimes, unsetTimes);
}

function nested(levels: number): unknown {
  return JSON.parse("[".repeat(levels) + "]".repeat(levels));
}

describe("size", () => {
  test("a write that would make the properties too large is rejected, others are not", () => {
    const bag = new PropertyState();
    bag.set("small", json("old"), live(1));
    bag.set("big", json("x".repeat(propertyBytesMax)), live(2));
    bag.set("small", json("new"), live(2));
    expect(getValues(bag)).toEqual({ small: "new" });
    expect(bag.rejections).toBe(1);
  });

  test("exactly the limit fits, one byte more does not; removing values makes it fit", () => {
    const bag = new PropertyState();
    const text = "é".repeat((propertyBytesMax - '{"a":"","b":0}'.length) / 2);
    bag.set("a", json(text), live(1));
    bag.set("b", json(0), live(1));
    expect(getBytes(bag)).toBe(propertyBytesMax);
    bag.set("b", json(10), live(1));
    expect([getValues(bag).b, bag.rejections]).toEqual([0, 1]);
    const again = stored(bag);
    again.set("b", json(10), live(1));
    expect([getValues(again).b, again.rejections]).toEqual([0, 1]);
    again.set("a", json("short"), live(2));
    again.set("b", json(10), live(2));
    expect(getValues(again)).toEqual({ a: "short", b: 10 });
  });

  test("names count as they are written, six bytes for each of their control characters", () => {
    const bag = new PropertyState();
    // NUL is none that is stored.
    const control = Array.from({ length: 31 }, (_, code) => String.fromCharCode(code + 1));
    for (const a of control)
      for (const b of control) for (const c of control) bag.set(a + b + c, "1", live(1));
    expect(bag.rejections).toBeGreaterThan(0);
    expect(getBytes(bag)).toBeLessThanOrEqual(propertyBytesMax);
    expect(getBytes(bag)).toBeGreaterThan(propertyBytesMax - 30);
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
        const cached = new PropertyState();
        let restored = new PropertyState();
        list.forEach(({ name, value, isUnset }, index) => {
          for (const bag of [cached, restored]) {
            if (isUnset) bag.unset(name, live(index));
            else bag.set(name, json(value), live(index));
          }
          if (stores[index]) restored = stored(restored);
        });
        expect(getValues(restored)).toEqual(getValues(cached));
        expect(getBytes(cached)).toBeLessThanOrEqual(propertyBytesMax);
      }),
      { numRuns: 60 },
    );
  });

  test("of two large persons the target's properties stay", () => {
    const target = new PropertyState();
    const other = new PropertyState();
    target.set("mine", json("x".repeat(400_000)), live(1));
    other.set("theirs", json("y".repeat(400_000)), live(1));
    other.set("plan", json("pro"), live(1));
    target.absorb(other, live(2));
    expect(Object.keys(getValues(target))).toEqual(["mine", "plan"]);
    expect(target.rejections).toBe(1);
  });

  test("a value nested too deep to be written out is rejected", () => {
    const bag = new PropertyState();
    bag.set("deep", json(nested(100_000)), live(1));
    bag.set("fine", json(nested(nestingMax)), live(1));
    bag.set("fine", json(nested(nestingMax + 1)), live(1));
    expect(Object.keys(getValues(bag))).toEqual(["fine"]);
    expect(bag.rejections).toBe(2);
  });
});

describe("times", () => {
  test("survive storage, however many different ones there are", () => {
    for (const count of [0, 1, 2, 254, 255, 256, 300]) {
      const bag = new PropertyState();
      // Names that are array indexes are listed first by objects, whatever the order of writing.
      for (let index = count; index > 0; index -= 1) {
        bag.set(index % 3 === 0 ? String(index) : `name-${index}`, json(index), live(1.7e15 + index));
      }
      bag.unset("gone", live(7));
      const again = stored(bag);
      expect(getValues(again)).toEqual(getValues(bag));
      for (const name of Object.keys(getValues(bag))) expect(again.timeOf(name)).toBe(bag.timeOf(name));
      expect([...again.unsetTimes]).toEqual([["gone", 7]]);
    }
  });

  test("a name that is set again has its new time", () => {
    const bag = new PropertyState();
    bag.set("a", json(1), live(5));
    bag.set("a", json(2), live(9));
    bag.unset("a", live(10));
    bag.set("a", json(3), live(5));
    bag.set("a", json(4), loaded(6));
    expect(getValues(stored(bag))).toEqual({ a: 4 });
  });

  test("a limited number of unset names is stored, those with the latest times", () => {
    const bag = new PropertyState();
    for (let index = 0; index < unsetNamesMax + 5; index += 1) bag.unset(`n${index}`, live(index));
    bag.unset("x".repeat(401), live(1e9));
    bag.boundUnsetNames();
    expect(bag.unsetTimes.size).toBe(unsetNamesMax);
    expect([bag.unsetTimes.has("n4"), bag.unsetTimes.has("n5")]).toEqual([false, true]);
  });

  test("whatever the order in which they were unset; among equal times the first by name go", () => {
    const bag = new PropertyState();
    const names = Array.from(
      { length: unsetNamesMax + 3 },
      (_, index) => `n${String(index).padStart(6, "0")}`,
    );
    for (const name of names.toReversed()) bag.unset(name, live(5));
    bag.unset("late", live(7));
    bag.unset("early", live(3));
    bag.boundUnsetNames();
    expect(bag.unsetTimes.size).toBe(unsetNamesMax);
    const deleted = ["early", ...names].filter((name) => !bag.unsetTimes.has(name));
    expect(deleted).toEqual(["early", ...names.slice(0, 4)]);
  });

  test("a name that is not well-formed is the one that can be stored, however it is written", () => {
    const bag = new PropertyState();
    bag.set("a\ud800", json(1), live(1));
    bag.setOnce("b\udfff", json(2), live(1));
    bag.setOnce("a\ud800", json(3), live(1));
    expect(getValues(bag)).toEqual({ "a\ufffd": 1, "b\ufffd": 2 });
    bag.unset("a\ud800", live(2));
    expect([Object.keys(getValues(bag)), [...bag.unsetTimes]]).toEqual([["b\ufffd"], [["a\ufffd", 2]]]);
  });

  test("a row edited by hand can be read", () => {
    const bag = readPropertyState(client, '{"a":1,"b":2}', new Uint8Array(), null);
    bag.set("a", json(3), loaded(1));
    expect(getValues(bag)).toEqual({ a: 3, b: 2 });
    const { propertyTimes } = timeColumns(bag);
    expect(getValues(readPropertyState(client, '{"a":1,"b":2,"c":3}', propertyTimes, null))).toEqual({
      a: 1,
      b: 2,
      c: 3,
    });
  });
});

test("a repeated value is no change, in any order of its members; its time is", () => {
  const bag = new PropertyState();
  bag.set("a", '{"x":1,"y":[2]}', live(1));
  bag.set("b", '"1"', live(1));
  const { changes, touches } = bag;
  bag.set("a", '{"y":[2],"x":1}', live(1));
  bag.set("b", '"1"', live(1));
  expect([bag.changes, bag.touches]).toEqual([changes, touches]);
  bag.set("a", '{"y":[2],"x":1}', live(5));
  expect([bag.changes, bag.touches, bag.timeOf("a")]).toEqual([changes, touches + 1, 5]);
  bag.set("a", '{"y":[3],"x":1}', live(5));
  expect([bag.changes, getValues(bag)]).toEqual([changes + 1, { a: { y: [3], x: 1 }, b: "1" }]);
});

describe("a person that is folded in", () => {
  const folded = (
    ours: (bag: PropertyState) => void,
    theirs: (bag: PropertyState) => void,
    merge: ReturnType<typeof live>,
  ) => {
    const target = new PropertyState();
    const other = new PropertyState();
    ours(target);
    theirs(other);
    target.absorb(other, merge);
    return [getValues(target), Object.fromEntries(target.unsetTimes), target.rejections];
  };

  test("brings what only history wrote here in the place of it, within the limit", () => {
    const text = (letter: string) => letter.repeat(propertyBytesMax - 100);
    expect(
      folded(
        (bag) => bag.set("a", json(text("x")), loaded(1)),
        (bag) => bag.set("a", json(text("y")), live(2)),
        live(3),
      ),
    ).toEqual([{ a: text("y") }, {}, 0]);
  });

  test("brings a value for a name that was unset here, and of two that unset it the later time", () => {
    const unsetAt = (time: number) => (bag: PropertyState) => bag.unset("a", live(time));
    expect(folded(unsetAt(5), (bag) => bag.set("a", json(1), live(9)), live(10))).toEqual([{ a: 1 }, {}, 0]);
    expect(folded(unsetAt(3), unsetAt(7), live(10))).toEqual([{}, { a: 7 }, 0]);
    expect(folded(unsetAt(7), unsetAt(3), live(10))).toEqual([{}, { a: 7 }, 0]);
  });

  test("by history: gives way only to what happened here after the merge, and later than its own", () => {
    const unsetAt5 = (bag: PropertyState) => bag.unset("a", live(5));
    const setAt = (time: number) => (bag: PropertyState) => bag.set("a", json(1), live(time));
    expect(folded(unsetAt5, setAt(4), loaded(4))[0]).toEqual({});
    expect(folded(unsetAt5, setAt(4), loaded(5))[0]).toEqual({ a: 1 });
    expect(folded(unsetAt5, setAt(5), loaded(4))[0]).toEqual({ a: 1 });
  });

  test("brings no more unset names than are remembered", () => {
    const unset = (from: number) => (bag: PropertyState) => {
      for (let index = 0; index < unsetNamesMax; index++) bag.unset(`n${from + index}`, live(1));
    };
    const [, times] = folded(unset(0), unset(5), live(2));
    expect(Object.keys(times as object)).toHaveLength(unsetNamesMax);
  });
});
