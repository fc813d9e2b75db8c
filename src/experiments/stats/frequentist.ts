/** Welch's test, the always-valid test for results that are looked at repeatedly, and Holm's correction. */

import { type Difference, type Effect, getEffect, welchDf } from "./effect.ts";
import type { Sample } from "./samples.ts";
import { tQuantile, tTwoSidedTail } from "./special.ts";

export interface TestResult extends Effect {
  /** Two-sided. */
  pValue: number;
  interval: [number, number];
}

export interface WelchResult extends TestResult {
  standardError: number;
  t: number;
  df: number;
}

/** Sample size at which the always-valid interval is narrowest, unless a running time is planned. */
export const defaultTuningParameter = 5_000;

/** @returns undefined without variance: there is nothing to compare. */
export function welchTest(
  baseline: Sample,
  variant: Sample,
  alpha: number,
  difference: Difference = "relative",
): WelchResult | undefined {
  const effect = getEffect(baseline, variant, difference);
  if (!(effect.variance > 0)) return undefined;
  const standardError = Math.sqrt(effect.variance);
  const t = effect.estimate / standardError;
  const df = welchDf(baseline, variant);
  const half = tQuantile(1 - alpha / 2, df) * standardError;
  return {
    ...effect,
    standardError,
    t,
    df,
    pValue: tTwoSidedTail(t, df),
    interval: [effect.estimate - half, effect.estimate + half],
  };
}

export interface SequentialResult extends TestResult {
  rho: number;
  halfWidth: number;
}

/**
 * A test whose p-value and interval hold at every look, however often results are looked at.
 *
 * Asymptotic confidence sequences (Waudby-Smith et al., arXiv 2103.06476).
 *
 * @param tuning total sample size at which the interval is narrowest
 * @returns undefined without variance
 */
export function sequentialTest(
  baseline: Sample,
  variant: Sample,
  alpha: number,
  difference: Difference = "relative",
  tuning = defaultTuningParameter,
): SequentialResult | undefined {
  const effect = getEffect(baseline, variant, difference);
  const { estimate, variance } = effect;
  if (!(variance > 0)) return undefined;
  const n = baseline.n + variant.n;
  const logAlpha = Math.log(alpha);
  const rhoSquared = (-2 * logAlpha + Math.log(1 - 2 * logAlpha)) / tuning;
  const k = n * rhoSquared + 1;
  const halfWidth = Math.sqrt(
    variance * n * ((2 * k * Math.log(Math.sqrt(k) / alpha)) / (n * n * rhoSquared)),
  );
  const logEvidence = (rhoSquared * ((estimate * estimate * n) / variance)) / (2 * k) - 0.5 * Math.log(k);
  return {
    ...effect,
    rho: Math.sqrt(rhoSquared),
    halfWidth,
    pValue: Math.min(1, Math.exp(-logEvidence)),
    interval: [estimate - halfWidth, estimate + halfWidth],
  };
}

/** Holm's p-values of several variants of one metric, in the order given. */
export function adjustByHolm(pValues: readonly number[]): number[] {
  const order = pValues.map((_, index) => index).sort((a, b) => pValues[a]! - pValues[b]!);
  const adjusted = new Array<number>(pValues.length);
  let largest = 0;
  for (const [rank, index] of order.entries()) {
    largest = Math.max(largest, Math.min(1, pValues[index]! * (pValues.length - rank)));
    adjusted[index] = largest;
  }
  return adjusted;
}
