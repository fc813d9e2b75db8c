/** Sample ratio mismatch: whether variants have as many persons as their percentages promise. */

import { chiSquaredTail } from "./special.ts";

/** Persons per variant between two changes of the percentages. */
export interface ExposurePeriod {
  observed: readonly number[];
  /** Percentages of the variants, of any sum. */
  weights: readonly number[];
}

export interface SampleRatio {
  chiSquared: number;
  df: number;
  pValue: number;
  isMismatch: boolean;
}

/** The bound of Fabijan et al. 2019, and PostHog's. */
const mismatchBelow = 0.001;
const personsMin = 100;
const expectedMin = 5;

/** @returns undefined if there are too few persons for a conclusion */
export function testSampleRatio(periods: readonly ExposurePeriod[]): SampleRatio | undefined {
  let chiSquared = 0;
  let df = 0;
  let persons = 0;
  for (const { observed, weights } of periods) {
    const total = observed.reduce((sum, count) => sum + count, 0);
    const weight = weights.reduce((sum, weight) => sum + weight, 0);
    const used = weights.map((item, index) => ({
      expected: (total * item) / weight,
      count: observed[index]!,
    }));
    const tested = used.filter(({ expected }) => expected > 0);
    if (total === 0 || tested.length < 2) continue;
    if (tested.some(({ expected }) => expected < expectedMin)) continue;
    persons += total;
    df += tested.length - 1;
    for (const { expected, count } of tested) chiSquared += (count - expected) ** 2 / expected;
  }
  if (persons < personsMin || df === 0) return undefined;
  const pValue = chiSquaredTail(chiSquared, df);
  return { chiSquared, df, pValue, isMismatch: pValue < mismatchBelow };
}
