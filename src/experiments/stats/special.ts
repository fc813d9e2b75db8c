/** Distribution functions, from the tail where the tail is asked for: `1 - cdf` has no digits below 1e-16. */

import betainc from "@stdlib/math-base-special-betainc";
import betaln from "@stdlib/math-base-special-betaln";
import erfc from "@stdlib/math-base-special-erfc";
import erfcinv from "@stdlib/math-base-special-erfcinv";
import gammainc from "@stdlib/math-base-special-gammainc";
import tQuantileOf from "@stdlib/stats-base-dists-t-quantile";

/** Density of the standard normal distribution. */
export function normalDensity(x: number): number {
  return Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);
}

/** P(Z <= x) of the standard normal distribution. */
export function normalCdf(x: number): number {
  return 0.5 * erfc(-x / Math.SQRT2);
}

/** x with P(Z <= x) = p. */
export function normalQuantile(p: number): number {
  // erfcinv instead of the library's normal quantile, which is off by 4e-7 in the far tail.
  return -Math.SQRT2 * erfcinv(2 * p);
}

/** P(|T| >= |t|) of Student's distribution. */
export function tTwoSidedTail(t: number, df: number): number {
  return betainc(df / (df + t * t), df / 2, 0.5);
}

/** x with P(T <= x) = p of Student's distribution. */
export function tQuantile(p: number, df: number): number {
  return tQuantileOf(p, df);
}

/** P(X >= x) of the chi-squared distribution. */
export function chiSquaredTail(x: number, df: number): number {
  return x <= 0 ? 1 : gammainc(x / 2, df / 2, true, true);
}

/** P(X <= x) of the beta distribution; the regularized incomplete beta function. */
export function betaCdf(x: number, alpha: number, beta: number): number {
  if (x <= 0) return 0;
  return x >= 1 ? 1 : betainc(x, alpha, beta);
}

export function lnBeta(alpha: number, beta: number): number {
  return betaln(alpha, beta);
}
