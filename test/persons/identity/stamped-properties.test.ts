/** One property of a person with IDs in several partitions, written in both lanes. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { randomFrom } from "../../support/seeded-random.ts";
import {
  absorbProperties,
  applyWrite,
  type StampedMerge,
  type StampedProperties,
  type StampedWrite,
} from "./stamped-properties.ts";

type Sent = Partial<StampedWrite> & Pick<StampedWrite, "number">;

const write = (sent: Sent): StampedWrite => ({
  kind: "set",
  name: "p",
  text: sent.kind === "unset" ? "" : String(sent.number),
  historical: false,
  timeMicros: sent.number,
  ...sent,
});

function after(...sent: Sent[]): StampedProperties {
  const properties: StampedProperties = new Map();
  for (const one of sent) applyWrite(properties, write(one));
  return properties;
}

/** The value, or undefined after an unset. */
const value = (properties: StampedProperties) => {
  const { kind, text } = properties.get("p")!;
  return kind === "unset" ? undefined : text;
};

test("sets in any interleaving: the last of realtime, the last of history, and none older than realtime", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 2 ** 31 }), (seed) => {
      const next = randomFrom(seed);
      const random = (below: number) => Math.floor(next() * below);
      const writes = Array.from({ length: 2 + random(7) }, (_, index) => ({
        ...write({ number: index + 1, historical: random(2) === 0, timeMicros: random(20) }),
        partition: random(3),
      }));
      const queues = [0, 1, 2].flatMap((at) =>
        [false, true].map((historical) =>
          writes.filter((one) => one.partition === at && one.historical === historical),
        ),
      );
      const properties: StampedProperties = new Map();
      for (let left = writes.length; left > 0; left--) {
        const waiting = queues.filter(({ length }) => length > 0);
        applyWrite(properties, waiting[random(waiting.length)]!.shift()!);
      }
      const { historical, number } = properties.get("p")!;
      const last = writes.findLast((one) => !one.historical);
      if (!historical) expect(number).toBe(last!.number);
      else if (last === undefined) expect(number).toBe(writes.length);
      else expect(writes[number - 1]!.timeMicros).toBeGreaterThanOrEqual(last.timeMicros);
    }),
    { numRuns: 5_000 },
  );
});

describe("between the lanes", () => {
  const history = { historical: true, timeMicros: 100 };

  test("a realtime write replaces history, unless a later one is below it", () => {
    expect(value(after({ number: 5 }, { number: 3, ...history }, { number: 7 }))).toBe("7");
    expect(value(after({ number: 7 }, { number: 3, ...history }, { number: 5 }))).toBe("3");
  });

  test("what history has unset does not restore a once that a later realtime value masked", () => {
    const unset = { kind: "unset", number: 3, ...history } as const;
    expect(value(after({ number: 7 }, unset, { kind: "once", number: 5 }))).toBe(undefined);
    expect(value(after({ number: 7 }, unset, { kind: "once", number: 8 }))).toBe("8");
  });
});

describe("merges", () => {
  const merged = (target: StampedProperties, from: StampedProperties, merge: Partial<StampedMerge>) => {
    absorbProperties(target, from, { number: 10, historical: false, timeMicros: 10, ...merge });
    return value(target);
  };

  test("earlier writes follow the target, later ones their number", () => {
    expect(merged(after({ number: 1 }), after({ number: 2 }), {})).toBe("1");
    expect(merged(after({ number: 1 }), after({ number: 12 }), {})).toBe("12");
    expect(merged(after({ number: 12 }), after({ number: 2 }), {})).toBe("12");
    expect(merged(after({ number: 11 }), after({ number: 12 }), {})).toBe("12");
    expect(merged(after({ number: 12 }), after({ number: 11 }), {})).toBe("12");
  });

  test("a late once finds the value from before", () => {
    const late = { kind: "once", number: 12 } as const;
    expect(merged(after({ number: 1 }), after(late), {})).toBe("1");
    expect(merged(after({ kind: "unset", number: 1 }), after(late), {})).toBe("12");
  });

  test("late history does not replace a realtime write of the other person", () => {
    const late = { number: 12, historical: true, timeMicros: 50 };
    const merge = { historical: true };
    expect(merged(after({ number: 1, timeMicros: 90 }), after(late), merge)).toBe("1");
    expect(merged(after({ number: 1, historical: true }), after(late), merge)).toBe("12");
  });

  test("of late writes in both lanes, the one over the later realtime write stays", () => {
    const withHistory = (number: number) =>
      after({ number, timeMicros: 1 }, { number: 3, historical: true, timeMicros: 50 });
    expect(merged(withHistory(12), after({ number: 11 }), {})).toBe("3");
    expect(merged(withHistory(11), after({ number: 12 }), {})).toBe("12");
    expect(merged(after({ number: 12 }), withHistory(11), {})).toBe("12");
  });
});
