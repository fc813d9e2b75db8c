/** The words of the page: what is counted stands in the right number. */

import { expect, test } from "bun:test";
import { counted, number, percent } from "../../src/console/page/lib/format.ts";
import { words } from "../../src/console/page/words/index.ts";

/** Every function of words, with its name. */
function functionsIn(part: unknown, name: string): [name: string, say: (...values: unknown[]) => unknown][] {
  if (typeof part === "function") return [[name, part as () => unknown]];
  if (typeof part !== "object" || part === null) return [];
  return Object.entries(part).flatMap(([key, inner]) => functionsIn(inner, `${name}.${key}`));
}

/** They begin with somebody's name. */
const ofNames = new Set(["words.flag.pending.proposedBy", "words.settings.removeText"]);

test("one of a kind is no plural, whatever is counted", () => {
  const said = functionsIn(words, "words").flatMap(([name, say]) => {
    try {
      return [[name, String(say(1, 1, 1, 1))] as const];
    } catch (error) {
      // It takes a list, or a text that it takes apart.
      if (error instanceof TypeError) return [];
      throw error;
    }
  });
  expect(said.length).toBeGreaterThan(80);
  // "1 of 1 persons" and "1 events/s" are right.
  const isPlural = /(?<!of )\b1 [a-z][a-z-]*[a-rt-z]s\b(?!\/s)/;
  expect(said.filter(([name, text]) => !ofNames.has(name) && isPlural.test(text))).toEqual([]);
});

test("a count brings its noun in the right number, and nothing is minus zero", () => {
  expect([0, 1, 2].map((count) => counted(count, "person", "persons"))).toEqual([
    "0 persons",
    "1 person",
    "2 persons",
  ]);
  expect(words.explore.lifecycleSummary(1, -0)).toBe(
    "1 person in the last period, 0 of the one before stayed away.",
  );
  expect([number(-0.3), number(-2), percent(-0.0001)]).toEqual(["0", "-2", "0 %"]);
});
