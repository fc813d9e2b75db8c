/** Sums of a metric over the persons of one variant, and the mean and variance that follow from them. */

export interface Sums {
  /** Exposed persons. */
  n: number;
  /** Sum and sum of squares of the metric's value per person. */
  y: number;
  yy: number;
  /** Ratio and retention: the same of the denominator, and the sum of products. */
  d?: number;
  dd?: number;
  yd?: number;
  /** With CUPED: the same of the value before the exposure, and the sum of products. */
  x?: number;
  xx?: number;
  xy?: number;
}

export type MeasureKind = "mean" | "proportion" | "ratio";

/** A variant as the tests see it. */
export interface Sample {
  n: number;
  mean: number;
  /** Variance of one person's value. */
  variance: number;
}

/** Unbiased variance; 0 for fewer than two persons. Never negative: sums of equal values round. */
function sampleVariance(n: number, sum: number, squares: number): number {
  return n < 2 ? 0 : Math.max(0, (squares - (sum * sum) / n) / (n - 1));
}

/** Unbiased covariance; 0 for fewer than two persons. */
function sampleCovariance(n: number, sumA: number, sumB: number, products: number): number {
  return n < 2 ? 0 : (products - (sumA * sumB) / n) / (n - 1);
}

/** The mean and variance of a variant; those of a ratio by the delta method. */
export function toSample(kind: MeasureKind, sums: Sums): Sample {
  const { n, y, yy } = sums;
  if (n === 0) return { n, mean: 0, variance: 0 };
  if (kind === "proportion") {
    const p = y / n;
    return { n, mean: p, variance: Math.max(0, p * (1 - p)) };
  }
  if (kind === "mean") return { n, mean: y / n, variance: sampleVariance(n, y, yy) };
  return ratioSample(sums);
}

function ratioSample({ n, y, yy, d = 0, dd = 0, yd = 0 }: Sums): Sample {
  if (d === 0) return { n, mean: 0, variance: 0 };
  const meanY = y / n;
  const meanD = d / n;
  const variance =
    sampleVariance(n, y, yy) / meanD ** 2 +
    (meanY ** 2 * sampleVariance(n, d, dd)) / meanD ** 4 -
    (2 * meanY * sampleCovariance(n, y, d, yd)) / meanD ** 3;
  return { n, mean: y / d, variance: Math.max(0, variance) };
}

/** Minimum persons of both variants who did anything before their exposure, for an adjustment. */
export const cupedPersonsMin = 20;

export interface CupedPair {
  theta: number;
  baseline: Sample;
  variant: Sample;
  /** Share of the variance that the adjustment removed, 0 to 1. */
  varianceReduction: number;
}

/**
 * Adjusts two variants for the value before the exposure (Deng et al. 2013).
 *
 * The adjustment is centered on the pooled mean before the exposure, so that relative effects stay relative to the
 * metric's own mean.
 */
export function adjustByCuped(baseline: Sums, variant: Sums): CupedPair {
  const arms = [baseline, variant].map(({ n, y, yy, x = 0, xx = 0, xy = 0 }) => ({ n, y, yy, x, xx, xy }));
  const pooled = arms.reduce((sum, arm) => ({
    n: sum.n + arm.n,
    y: sum.y + arm.y,
    yy: sum.yy + arm.yy,
    x: sum.x + arm.x,
    xx: sum.xx + arm.xx,
    xy: sum.xy + arm.xy,
  }));
  const varianceX = sampleVariance(pooled.n, pooled.x, pooled.xx);
  const theta = varianceX < 1e-10 ? 0 : sampleCovariance(pooled.n, pooled.y, pooled.x, pooled.xy) / varianceX;
  const center = pooled.n === 0 ? 0 : pooled.x / pooled.n;
  const adjusted = arms.map(({ n, y, yy, x, xx, xy }): Sample => {
    if (n === 0) return { n, mean: 0, variance: 0 };
    const variance =
      sampleVariance(n, y, yy) +
      theta ** 2 * sampleVariance(n, x, xx) -
      2 * theta * sampleCovariance(n, y, x, xy);
    return { n, mean: y / n - theta * (x / n - center), variance: Math.max(0, variance) };
  });
  const plain = arms.reduce((sum, { n, y, yy }) => sum + sampleVariance(n, y, yy), 0);
  const left = adjusted.reduce((sum, { variance }) => sum + variance, 0);
  return {
    theta,
    baseline: adjusted[0]!,
    variant: adjusted[1]!,
    varianceReduction: plain === 0 ? 0 : 1 - left / plain,
  };
}
