/** The difference of two variants and its variance. */

import type { Sample } from "./samples.ts";

export type Difference = "relative" | "absolute";

export interface Effect {
  /** 0.12 is 12 % more than the baseline, or 0.12 units of the metric if absolute. */
  estimate: number;
  variance: number;
  difference: Difference;
}

/** A baseline of zero or less has no relative effect; the absolute one is used. */
export function getEffect(baseline: Sample, variant: Sample, wanted: Difference): Effect {
  const c = baseline.mean;
  const t = variant.mean;
  const difference: Difference = wanted === "relative" && c > 0 ? "relative" : "absolute";
  const [a, b] = meanVariances(baseline, variant);
  return difference === "absolute"
    ? { estimate: t - c, variance: a + b, difference }
    : { estimate: (t - c) / c, variance: a / c ** 2 + (t ** 2 * b) / c ** 4, difference };
}

/** Variances of the means of the variant and of the baseline. */
function meanVariances(baseline: Sample, variant: Sample): [number, number] {
  return [
    variant.n === 0 ? 0 : variant.variance / variant.n,
    baseline.n === 0 ? 0 : baseline.variance / baseline.n,
  ];
}

/** Degrees of freedom of Welch's test. */
export function welchDf(baseline: Sample, variant: Sample): number {
  const [a, b] = meanVariances(baseline, variant);
  // A variant of one person has no variance, and adds nothing.
  const part = (variance: number, n: number) => (variance === 0 ? 0 : variance ** 2 / (n - 1));
  return (a + b) ** 2 / (part(a, variant.n) + part(b, baseline.n));
}
