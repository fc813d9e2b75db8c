/**
 * The baseline that PostHog's clients send to plan an experiment: a type of metric, an effect in percent, and a value
 * or the sums of the control group (contract: experiments 2.9).
 */

import type { Static } from "@sinclair/typebox";
import { int, list, nullable, num, object, optional } from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { type MeasureKind, toSample } from "./stats/samples.ts";

/** Types of PostHog's calculator; with one of these, effects are in percent. */
export const calculatorTypes = ["funnel", "mean_count", "mean_sum_or_avg", "ratio", "retention"] as const;
type CalculatorType = (typeof calculatorTypes)[number];
export const isCalculatorType = (type: string | null | undefined): type is CalculatorType =>
  (calculatorTypes as readonly (string | null | undefined)[]).includes(type);

const stepsMax = 100;
const optionalSum = () => optional(nullable(num()));

export const BaselineStats = object(
  {
    number_of_samples: int({ minimum: 0 }),
    sum: num(),
    sum_squares: optionalSum(),
    denominator_sum: optionalSum(),
    denominator_sum_squares: optionalSum(),
    numerator_denominator_sum_product: optionalSum(),
    step_counts: optional(nullable(list(num(), { maxItems: stepsMax }))),
  },
  { description: "Sums of the control group, as in `baseline` of results." },
);
type Stats = Static<typeof BaselineStats>;

export interface PlannedBaseline {
  kind: "proportion" | "mean";
  value: number | undefined;
  variance: number | undefined;
}

/** @throws {InvalidFieldError} the sums have no persons, or no denominator where one is needed */
export function planBaseline(
  type: CalculatorType,
  sent: {
    baseline_value?: number | null | undefined;
    variance?: number | null | undefined;
    baseline_stats?: Stats | null | undefined;
  },
): PlannedBaseline {
  const stats = sent.baseline_stats ?? undefined;
  const found = stats && getSample(type, stats);
  const value = sent.baseline_value ?? found?.mean;
  const kind = type === "funnel" ? "proportion" : "mean";
  const variance = sent.variance ?? (found?.variance || assumedVariance(type, value));
  if (kind === "mean" && value !== undefined && variance === undefined)
    throw new InvalidFieldError(
      null,
      "invalid_input",
      "Ratio and retention metrics require baseline_stats, or both baseline_value and variance.",
    );
  return { kind, value, variance };
}

function getSample(type: CalculatorType, stats: Stats): { mean: number; variance: number } {
  const { number_of_samples: n, sum: y, step_counts: steps } = stats;
  const fail = (detail: string) => new InvalidFieldError("baseline_stats", "invalid_input", detail);
  if (n === 0) throw fail("`number_of_samples` must be greater than 0.");
  const kinds: Partial<Record<CalculatorType, MeasureKind>> = { ratio: "ratio", retention: "ratio" };
  const kind = kinds[type] ?? "mean";
  if (kind === "ratio" && !stats.denominator_sum)
    throw fail("`denominator_sum` is required for ratio and retention metrics.");
  if (type === "funnel") return { mean: (steps?.at(-1) ?? y) / n, variance: 0 };
  // Without squares the variance is assumed, not 0.
  if (kind === "mean" && !stats.sum_squares) return { mean: y / n, variance: 0 };
  return toSample(kind, {
    n,
    y,
    yy: stats.sum_squares ?? 0,
    d: stats.denominator_sum ?? 0,
    dd: stats.denominator_sum_squares ?? 0,
    yd: stats.numerator_denominator_sum_product ?? 0,
  });
}

/** What PostHog assumes without sums: twice the mean for counts, a quarter of its square for sums and averages. */
function assumedVariance(type: CalculatorType, mean: number | undefined): number | undefined {
  if (mean === undefined) return undefined;
  if (type === "mean_count") return 2 * Math.abs(mean);
  return type === "mean_sum_or_avg" ? mean ** 2 / 4 : undefined;
}
