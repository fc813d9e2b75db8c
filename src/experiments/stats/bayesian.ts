/** Posterior of the effect, and Beta-Binomial comparison of proportions with few conversions. */

import { type Difference, type Effect, getEffect } from "./effect.ts";
import type { Sample } from "./samples.ts";
import { betaCdf, lnBeta, normalCdf, normalDensity, normalQuantile } from "./special.ts";

export type Goal = "increase" | "decrease";

export interface Prior {
  mean: number;
  variance: number;
}

export interface BayesianResult extends Effect {
  model: "normal" | "beta";
  /** Probability that the variant is better, by the metric's goal. */
  chanceToWin: number;
  interval: [number, number];
  /** Expected loss if the baseline is kept, and if the variant is shipped although it is worse. */
  loss: { baseline: number; variant: number };
}

export interface NormalPosterior extends BayesianResult {
  model: "normal";
  sigma: number;
}

/** @returns undefined without variance */
export function normalPosterior(
  baseline: Sample,
  variant: Sample,
  options: { goal: Goal; level: number; difference: Difference; prior?: Prior },
): NormalPosterior | undefined {
  const effect = getEffect(baseline, variant, options.difference);
  if (!(effect.variance > 0)) return undefined;
  const { mu, sigma } = withPrior(effect, options.prior);
  const z = mu / sigma;
  const up = Math.max(0, sigma * normalDensity(z) + mu * normalCdf(z));
  const down = Math.max(0, sigma * normalDensity(z) - mu * normalCdf(-z));
  const half = normalQuantile(0.5 + options.level / 2) * sigma;
  return {
    ...effect,
    model: "normal",
    estimate: mu,
    variance: sigma * sigma,
    sigma,
    chanceToWin: normalCdf(options.goal === "increase" ? z : -z),
    interval: [mu - half, mu + half],
    loss: options.goal === "increase" ? { baseline: up, variant: down } : { baseline: down, variant: up },
  };
}

function withPrior({ estimate, variance }: Effect, prior: Prior | undefined) {
  if (prior === undefined) return { mu: estimate, sigma: Math.sqrt(variance) };
  const precision = 1 / variance + 1 / prior.variance;
  return {
    mu: (estimate / variance + prior.mean / prior.variance) / precision,
    sigma: Math.sqrt(1 / precision),
  };
}

/** Minimum successes and failures per variant for the normal approximation. */
const fewConversions = 5;

/** True when proportions need the Beta-Binomial model. */
export function hasFewConversions(arms: readonly { n: number; successes: number }[]): boolean {
  return arms.some(({ n, successes }) => Math.min(successes, n - successes) < fewConversions);
}

interface Beta {
  alpha: number;
  beta: number;
}

export interface BetaPosterior extends BayesianResult {
  model: "beta";
}

/** Compares two proportions with uniform priors. The loss is absolute, the interval relative. */
export function betaPosterior(
  baseline: { n: number; successes: number },
  variant: { n: number; successes: number },
  options: { goal: Goal; level: number },
): BetaPosterior {
  const [c, t] = [baseline, variant].map(({ n, successes }) => ({
    alpha: 1 + successes,
    beta: 1 + n - successes,
  }));
  const chance = chanceGreater(t!, c!);
  const meanC = getMean(c!);
  const meanT = getMean(t!);
  const up =
    meanT * chanceGreater({ ...t!, alpha: t!.alpha + 1 }, c!) -
    meanC * chanceGreater(t!, { ...c!, alpha: c!.alpha + 1 });
  const down = up - (meanT - meanC);
  const tail = (1 - options.level) / 2;
  const lift = liftQuantiles(t!, c!, [tail, 0.5, 1 - tail]);
  const loss = { baseline: Math.max(0, up), variant: Math.max(0, down) };
  return {
    model: "beta",
    difference: "relative",
    estimate: lift[1]!,
    variance: Number.NaN,
    chanceToWin: options.goal === "increase" ? chance : 1 - chance,
    interval: [lift[0]!, lift[2]!],
    loss: options.goal === "increase" ? loss : { baseline: loss.variant, variant: loss.baseline },
  };
}

function getMean({ alpha, beta }: Beta): number {
  return alpha / (alpha + beta);
}

/** P(t > c), exactly (Miller), as the sum over the smallest of the four parameters. */
function chanceGreater(t: Beta, c: Beta): number {
  const mirror = ({ alpha, beta }: Beta): Beta => ({ alpha: beta, beta: alpha });
  const least = Math.min(t.alpha, c.alpha, t.beta, c.beta);
  if (least === t.alpha) return sumOverAlpha(t, c);
  if (least === c.alpha) return 1 - sumOverAlpha(c, t);
  if (least === c.beta) return sumOverAlpha(mirror(c), mirror(t));
  return 1 - sumOverAlpha(mirror(t), mirror(c));
}

function sumOverAlpha(t: Beta, c: Beta): number {
  let sum = 0;
  const constant = lnBeta(c.alpha, c.beta);
  for (let i = 0; i < t.alpha; i++)
    sum += Math.exp(
      lnBeta(c.alpha + i, c.beta + t.beta) - Math.log(t.beta + i) - lnBeta(1 + i, t.beta) - constant,
    );
  return Math.min(1, sum);
}

const nodes = 200;
let legendre: { x: Float64Array; w: Float64Array } | undefined;

/** Nodes and weights of Gauss-Legendre quadrature on -1..1, by Newton's method. */
function gaussLegendre() {
  if (legendre !== undefined) return legendre;
  const x = new Float64Array(nodes);
  const w = new Float64Array(nodes);
  for (let i = 0; i < nodes; i++) {
    let z = Math.cos((Math.PI * (i + 0.75)) / (nodes + 0.5));
    let slope = 0;
    for (let step = 0; step < 100; step++) {
      let now = 1;
      let last = 0;
      for (let j = 0; j < nodes; j++) [now, last] = [((2 * j + 1) * z * now - j * last) / (j + 1), now];
      slope = (nodes * (z * now - last)) / (z * z - 1);
      const next = z - now / slope;
      if (Math.abs(next - z) < 1e-16) break;
      z = next;
    }
    x[i] = z;
    w[i] = 2 / ((1 - z * z) * slope * slope);
  }
  legendre = { x, w };
  return legendre;
}

/** Quantiles of t/c - 1. */
function liftQuantiles(t: Beta, c: Beta, levels: readonly number[]): number[] {
  const from = betaQuantile(1e-12, c);
  const to = betaQuantile(1 - 1e-12, c);
  const constant = lnBeta(c.alpha, c.beta);
  const density = (x: number) =>
    Math.exp((c.alpha - 1) * Math.log(x) + (c.beta - 1) * Math.log1p(-x) - constant);
  const { x, w } = gaussLegendre();
  const cdf = (lift: number) => {
    // Above 1 / (1 + lift) the factor is 1: splitting there avoids integrating over the kink.
    const kink = 1 / (1 + lift);
    const end = Math.min(to, kink);
    let sum = kink < to ? 1 - betaCdf(kink, c.alpha, c.beta) : 0;
    if (end <= from) return sum;
    const half = (end - from) / 2;
    const center = (end + from) / 2;
    for (let i = 0; i < nodes; i++) {
      const at = center + half * x[i]!;
      sum += half * w[i]! * density(at) * betaCdf((1 + lift) * at, t.alpha, t.beta);
    }
    return sum;
  };
  return levels.map((level) => {
    const low = -1;
    let high = 1;
    while (cdf(high) < level) high = high * 2 + 1;
    return findRoot((lift) => cdf(lift) - level, low, high);
  });
}

function betaQuantile(level: number, { alpha, beta }: Beta): number {
  return findRoot((x) => betaCdf(x, alpha, beta) - level, 0, 1);
}

/** The root of an increasing function between two points, by Chandrupatla's method: a quarter of the steps of bisection. */
function findRoot(valueAt: (x: number) => number, low: number, high: number): number {
  let a = high;
  let b = low;
  let c = high;
  let atA = valueAt(a);
  let atB = valueAt(b);
  let atC = Number.NaN;
  let part = 0.5;
  for (let step = 0; step < 200; step++) {
    const x = a + part * (b - a);
    const value = valueAt(x);
    if (value === 0) return x;
    if (Math.sign(value) === Math.sign(atA)) [c, atC] = [a, atA];
    else [c, b, atC, atB] = [b, a, atB, atA];
    [a, atA] = [x, value];
    const best = Math.abs(atA) < Math.abs(atB) ? a : b;
    const limit = (0.5e-13 * Math.max(1, Math.abs(best))) / Math.abs(b - c);
    if (limit > 0.5) return best;
    part = isInverseSafe(a, b, c, atA, atB, atC)
      ? (atA / (atB - atA)) * (atC / (atB - atC)) +
        ((c - a) / (b - a)) * (atA / (atC - atA)) * (atB / (atC - atB))
      : 0.5;
    part = Math.min(1 - limit, Math.max(limit, part));
  }
  return a;
}

/** Whether inverse quadratic interpolation stays inside the interval. */
function isInverseSafe(a: number, b: number, c: number, atA: number, atB: number, atC: number): boolean {
  const xi = (a - b) / (c - b);
  const phi = (atA - atB) / (atC - atB);
  return phi ** 2 < xi && (1 - phi) ** 2 < 1 - xi;
}
