/** Partitions of a cluster apply events in any order between them, and end with the persons of one ordered engine. */

import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { JournalEvent } from "../../../src/journal/entry.ts";
import { randomFrom } from "../../support/seeded-random.ts";
import {
  byPartitions,
  type HistoryOptions,
  inOrder,
  type PartitionedOptions,
  type Random,
  randomHistory,
} from "./random-histories.ts";

const defaults: HistoryOptions = { withOnce: true, withUnset: true, withMerges: true, lanes: "realtime" };
const seeds = fc.integer({ min: 1, max: 2 ** 31 });
const runs = 5_000;

const below = (seed: number): Random => {
  const random = randomFrom(seed);
  return (count) => Math.floor(random() * count);
};

/** Both outcomes of the history of a seed. */
function results(seed: number, options: HistoryOptions, merges: PartitionedOptions["merges"] = "in-lane") {
  const random = below(seed);
  const history = randomHistory(random, options);
  const { outcome: result } = byPartitions(history, random, { partitions: 1 + random(4), merges });
  return { history, wanted: inOrder(history), found: result };
}

/** Number of histories, out of `count`, that end differently. */
function differing(count: number, options: HistoryOptions, merges: PartitionedOptions["merges"] = "in-lane") {
  return Array.from({ length: count }, (_, seed) => results(seed + 1, options, merges)).filter(
    ({ wanted, found }) => !Bun.deepEquals(wanted, found),
  );
}

describe.each(["realtime", "historical"] as const)("in the %s lane", (lanes) => {
  test.each([
    ["sets and onces", { withUnset: false }],
    ["sets and unsets", { withOnce: false }],
    ["without merges and unsets", { withMerges: false, withUnset: false }],
  ])("%s give the same persons in any order", (_name, without) => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const { wanted, found } = results(seed, { ...defaults, ...without, lanes });
        expect(found).toEqual(wanted);
      }),
      { numRuns: runs },
    );
  });

  test("an unset and a once of the same property may lose the once, and nothing else", () => {
    const count = 5_000;
    const found = differing(count, { ...defaults, lanes });
    expect(found.length / count).toBeLessThan(0.03);
    for (const one of found) {
      const graph = ({ persons, rejected }: typeof one.wanted) => ({
        rejected,
        persons: persons.map(({ properties: _, ...person }) => person),
      });
      expect(graph(one.found)).toEqual(graph(one.wanted));
    }
  });

  test("merges applied immediately have other results: the comparison detects it", () => {
    const count = 1_000;
    expect(
      differing(count, { ...defaults, withUnset: false, lanes }, "at-once").length / count,
    ).toBeGreaterThan(0.1);
  });
});

function writes(event: JournalEvent, member: "$set" | "$set_once" | "$unset", name: string): boolean {
  const value = event.properties.valueOf(member) as string[] | Record<string, unknown> | undefined;
  return Array.isArray(value) ? value.includes(name) : Object.hasOwn(value ?? {}, name);
}

describe("between the lanes", () => {
  /**
   * Property names of persons where history is older than the last realtime write that reached the person after its
   * last merge: of those before, the target's count.
   */
  function exposed(history: readonly JournalEvent[], { persons }: ReturnType<typeof byPartitions>): string[] {
    return [...new Set(persons.persons.values())].flatMap((person) => {
      const own = history.filter(({ distinctId }) => person.distinctIds.includes(distinctId));
      const isMerged = person.distinctIds.length > 1;
      return [...person.properties].flatMap(([name, { kind, text, number, historical, realtimeMicros }]) => {
        if (!historical || kind === "unset" || name.startsWith("$")) return [];
        const write = history[number - 1]!;
        expect(text).toBe(String(kind === "set" ? number * 10 : number * 10 + 1));
        const isEarlier = write.timeMicros < realtimeMicros;
        // A once counts only if it found no value, which the writes alone do not tell.
        const realtime = own.filter((event) => !event.historical && event.mode === "full");
        const last = realtime.findLastIndex(
          (event) => writes(event, "$set", name) || writes(event, "$unset", name),
        );
        const lastOnes = realtime.filter(
          (event, at) => at === last || (at > last && writes(event, "$set_once", name)),
        );
        const isOlder =
          !isMerged && last !== -1 && lastOnes.every(({ timeMicros }) => write.timeMicros < timeMicros);
        return isEarlier || isOlder ? [name] : [];
      });
    });
  }

  const found = (seed: number, options: HistoryOptions, forget = false) => {
    const random = below(seed);
    const history = randomHistory(random, { ...options, lanes: "both" });
    const result = byPartitions(history, random, {
      partitions: 1 + random(4),
      merges: "in-lane",
      forgetsTimes: forget,
    });
    return exposed(history, result);
  };

  test.each([
    ["with merges, onces and unsets", defaults],
    ["without merges", { ...defaults, withMerges: false }],
  ])("history older than the last realtime write never shows, %s", (_name, options) => {
    fc.assert(
      fc.property(seeds, (seed) => expect(found(seed, options)).toEqual([])),
      { numRuns: runs },
    );
  });

  test("it does if the time of the realtime write is not remembered: the search finds it", () => {
    const exposedOnes = Array.from({ length: 500 }, (_, seed) =>
      found(seed + 1, { ...defaults, withMerges: false }, true),
    ).filter(({ length }) => length > 0);
    expect(exposedOnes.length).toBeGreaterThan(5);
  });

  test("distinct ids have one person each, and a person has an id that leads to it", () => {
    fc.assert(
      fc.property(seeds, (seed) => {
        const random = below(seed);
        const history = randomHistory(random, { ...defaults, lanes: "both" });
        const { persons } = byPartitions(history, random, { partitions: 1 + random(4), merges: "in-lane" });
        for (const person of persons.persons.values()) {
          expect(new Set(person.distinctIds).size).toBe(person.distinctIds.length);
          for (const id of person.distinctIds) expect(persons.persons.get(id)).toBe(person);
          expect(person.distinctIds).toContain(person.mainDistinctId);
        }
      }),
      { numRuns: 1_000 },
    );
  });
});
