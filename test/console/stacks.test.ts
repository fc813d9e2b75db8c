/** Stacked bars: what is above zero and below, and what is left out. */

import { expect, test } from "bun:test";
import { stackBands } from "../../src/console/page/components/stacks.ts";

test("positive values grow upwards, negative ones downwards, each from the one before", () => {
  const bands = stackBands(
    [
      [2, 0],
      [-1, -4],
      [3, 5],
      [-2, 1],
    ],
    [0, 1, 2, 3],
  );
  expect(bands.map(([first]) => first)).toEqual([
    { from: 0, to: 2 },
    { from: 0, to: -1 },
    { from: 2, to: 5 },
    { from: -1, to: -3 },
  ]);
  expect(bands[3]![1]).toEqual({ from: 5, to: 6 });
});

test("a hidden series takes no space; missing values are zero", () => {
  const [hidden, shown] = stackBands([[7, 7], [1]], [1]);
  expect(hidden).toEqual([
    { from: 0, to: 0 },
    { from: 0, to: 0 },
  ]);
  expect(shown).toEqual([
    { from: 0, to: 1 },
    { from: 0, to: 0 },
  ]);
});
