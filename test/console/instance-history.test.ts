/** Bars of the server page: one per hour, of the samples of the last day. */

import { expect, test } from "bun:test";
import { foldSamples } from "../../src/console/page/model/instance.ts";

const hour = (...values: number[]) => [...values, ...new Array(12 - values.length).fill(1)];

test("a bar is the largest sample of its hour, the newest at the right", () => {
  const bars = foldSamples([...hour(5), ...hour(0, 7)]);
  expect(bars).toHaveLength(24);
  expect(bars.slice(-3)).toEqual([0, 5, 7]);
});

test("an hour with an outage is down", () => {
  expect(foldSamples([...hour(1), ...hour(1, 0), ...hour(1)], Math.min).slice(-3)).toEqual([1, 0, 1]);
});
