/** Persons and days that an experiment needs, and the effect that it can detect. */

import type { Sample } from "./samples.ts";
import { normalQuantile } from "./special.ts";

const defaultAlpha = 0.05;
const defaultPower = 0.8;

export interface SizeRequest {
  /** A proportion has the variance p (1 - p). */
  kind: "proportion" | "mean";
  baseline: number;
  /** Variance of one person's value; of a mean only. */
  variance: number;
  /** Smallest relative effect worth detecting: 0.1 is 10 %. */
  effect: number;
  variants: number;
  exposuresPerDay: number;
  alpha?: number;
  power?: number;
  isSequential?: boolean;
}

export interface SizeResult {
  perVariant: number;
  total: number;
  /** Undefined without exposures. */
  days: number | undefined;
  /** Factor that looking at results at any time costs. */
  factor: number;
}

/** Sample size of a test of means or proportions. @throws RangeError for a baseline or an effect of zero */
export function planSampleSize(request: SizeRequest): SizeResult {
  const { kind, baseline, variance, effect, variants, exposuresPerDay } = request;
  const { alpha = defaultAlpha, power = defaultPower, isSequential = false } = request;
  if (baseline === 0 || effect === 0) throw new RangeError("The baseline and the effect must not be zero.");
  const beta = normalQuantile(power);
  const plain = (normalQuantile(1 - alpha / 2) + beta) ** 2;
  const factor = isSequential ? (sequentialQuantile(alpha) + beta) ** 2 / plain : 1;
  const changed = baseline * (1 + effect);
  const spread =
    kind === "proportion"
      ? (baseline * (1 - baseline) + changed * (1 - changed)) / (changed - baseline) ** 2
      : (2 * variance) / (effect * baseline) ** 2;
  const perVariant = Math.ceil(plain * factor * spread);
  const total = perVariant * variants;
  return {
    perVariant,
    total,
    factor,
    days: exposuresPerDay > 0 ? Math.ceil(total / exposuresPerDay) : undefined,
  };
}

/** Half width of the always-valid interval in standard errors, where it is narrowest. */
export function sequentialQuantile(alpha: number): number {
  const k = 1 - 2 * Math.log(alpha) + Math.log(1 - 2 * Math.log(alpha));
  return Math.sqrt((2 * k * Math.log(Math.sqrt(k) / alpha)) / (k - 1));
}

/** The relative effect that the present persons can detect; undefined without persons, variance or a baseline above 0. */
export function detectableEffect(
  baseline: Sample,
  variant: Pick<Sample, "n">,
  alpha = defaultAlpha,
  power = defaultPower,
): number | undefined {
  const { mean, variance, n } = baseline;
  if (!(n > 0 && variant.n > 0 && variance > 0 && mean > 0)) return undefined;
  const quantiles = normalQuantile(1 - alpha / 2) + normalQuantile(power);
  return (quantiles * Math.sqrt(variance / n + variance / variant.n)) / mean;
}
