/** Steps of a gradual rollout. */

import { expect, test } from "bun:test";
import { getRolloutSteps, parsePercentages } from "../../../src/flags/rules/shared-rules.ts";

test("percentages rise up to 100, in a text with any separators", () => {
  for (const text of ["5, 25, 50, 100", "5 25 50 100", "5% → 25% → 50% → 100%"])
    expect(parsePercentages(text)).toEqual([5, 25, 50, 100]);
  expect(parsePercentages("0.5")).toEqual([0.5]);
  for (const text of ["", "0", "5, 5", "50, 25", "101", "a", "-1", "5 b"])
    expect([text, parsePercentages(text)]).toEqual([text, undefined]);
  const many = (count: number) => Array.from({ length: count }, (_, index) => index + 1).join(",");
  expect(parsePercentages(many(20))?.length).toBe(20);
  expect(parsePercentages(many(21))).toBeUndefined();
});

test("steps follow at the interval", () => {
  const start = new Date("2026-11-14T10:00:00Z");
  expect(getRolloutSteps([5, 100], start, 86_400_000)).toEqual([
    { percentage: 5, at: start },
    { percentage: 100, at: new Date("2026-11-15T10:00:00Z") },
  ]);
});
