/** Results of an experiment in one sentence for people (contract: experiments 2.13). */

import { dayMs } from "../lib/time.ts";
import type { Exposures, MetricResult } from "./results.ts";
import type { MetricRole } from "./roled-metrics.ts";
import type { Experiment } from "./store.ts";

type Row = MetricResult["variant_results"][number];

const percent = (value: number) => `${(100 * value).toFixed(1)} %`;

/** The first primary metric in one sentence. @param daysLeft until the planned size, if that is known */
export function getSentence(
  metrics: readonly { metric: { goal?: unknown }; role: MetricRole; result: MetricResult | null }[],
  { isBlocked, daysLeft }: { isBlocked: boolean; daysLeft?: number | undefined },
): string {
  const first = metrics.find(({ role }) => role === "primary") ?? metrics[0];
  if (first?.result == null) return "No results yet.";
  if (isBlocked) return "No verdict: the variants do not have the persons that their percentages promise.";
  const goal = first.metric.goal === "decrease" ? -1 : 1;
  const { variant_results: rows, baseline } = first.result;
  const best = rows
    .filter(({ significant }) => significant === true)
    .sort((a, b) => goal * (Number(b.delta) - Number(a.delta)))[0];
  if (best !== undefined) return verdict(best, String(baseline?.key), goal);
  const failures = new Set(rows.flatMap(({ validation_failures: codes }) => codes as string[]));
  if (failures.has("not-enough-exposures") && daysLeft === undefined)
    return "Not yet: too few persons for a verdict.";
  if (daysLeft !== undefined)
    return `Not yet: in about ${daysLeft} ${daysLeft === 1 ? "day" : "days"} at this rate.`;
  if (failures.has("baseline-mean-is-zero"))
    return "Not yet: the value of the baseline is 0, so differences are absolute.";
  if (failures.size > 0) return "Not yet: too little data for a verdict.";
  return "Not yet: no variant differs significantly from the baseline.";
}

function verdict(row: Row, baseline: string, goal: 1 | -1): string {
  const delta = Number(row.delta);
  const isBetter = delta * goal > 0;
  const [low, high] = (row.credible_interval ?? row.confidence_interval) as [number, number];
  const shown = (value: number) => (row.difference === "relative" ? percent(value) : value.toPrecision(3));
  const effect = `${row.key} is ${isBetter ? "better" : "worse"} than ${baseline}: ${delta > 0 ? "+" : ""}${shown(delta)} (${shown(low)} to ${shown(high)}).`;
  if (typeof row.chance_to_win !== "number")
    return `${effect} p = ${Number(row.p_value_adjusted ?? row.p_value).toPrecision(2)}.`;
  const chance = isBetter ? row.chance_to_win : 1 - row.chance_to_win;
  const losses = row.expected_loss as { baseline: number; variant: number };
  const loss = isBetter ? losses.variant : losses.baseline;
  const lost =
    row.model === "beta"
      ? `${(100 * loss).toFixed(2)} percentage points`
      : row.difference === "relative"
        ? `${(100 * loss).toFixed(2)} %`
        : loss.toPrecision(3);
  return `${effect} ${percent(chance)} chance; if wrong, expect to lose ${lost}.`;
}

/** Days until the planned number of persons is exposed; undefined if there is no plan, or it is reached. */
export function daysUntilPlanned(
  { startDate, endDate, runningTimeCalculation: { recommended_sample_size: planned } }: Experiment,
  { total }: Pick<Exposures, "total">,
  now: Date,
): number | undefined {
  if (typeof planned !== "number" || startDate === null || endDate !== null) return undefined;
  const days = (now.getTime() - startDate.getTime()) / dayMs;
  if (!(days > 0) || total === 0 || total >= planned) return undefined;
  return Math.max(1, Math.ceil(((planned - total) * days) / total));
}
