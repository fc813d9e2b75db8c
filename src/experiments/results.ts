/** Results of an experiment: statistics over the sums of the event store (contract: experiments 2). */

import type { ExperimentRequest, ExposureCount, MetricSums } from "../events/insights/experiment.ts";
import { isJsonObject, type JsonObject } from "../lib/json/value.ts";
import { getMeasure, toMetricRequest } from "./metrics.ts";
import type { RoledMetric } from "./roled-metrics.ts";
import { betaPosterior, hasFewConversions, normalPosterior, type Prior } from "./stats/bayesian.ts";
import type { Difference } from "./stats/effect.ts";
import { adjustByHolm, defaultTuningParameter, sequentialTest, welchTest } from "./stats/frequentist.ts";
import { checkGuardrail } from "./stats/guardrail.ts";
import { type ExposurePeriod, type SampleRatio, testSampleRatio } from "./stats/sample-ratio.ts";
import { detectableEffect } from "./stats/sample-size.ts";
import { adjustByCuped, cupedPersonsMin, type Sample, toSample } from "./stats/samples.ts";
import type { Experiment } from "./store.ts";
import { baselineKey } from "./variants.ts";

/** The settings of the statistics, with their defaults. */
export interface StatsSettings {
  method: "bayesian" | "frequentist";
  baselineKey: string;
  level: number;
  alpha: number;
  isSequential: boolean;
  tuning: number;
  difference: Difference;
  prior: Prior | undefined;
  /** 0: no CUPED. */
  lookbackDays: number;
  minimumExposures: number;
}

const winChance = 0.95;
/** Above this share of persons who saw several variants, results carry a warning. */
const multipleShareMax = 0.005;
const defaultLookbackDays = 14;
/** Results of a running experiment include events up to the next minute, so that repeated requests are cached. */
export const endStepMs = 60_000;

export function readSettings(experiment: Experiment, variants: readonly string[]): StatsSettings {
  const config = experiment.statsConfig;
  const part = (name: string): JsonObject => (isJsonObject(config[name]) ? (config[name] as JsonObject) : {});
  const number = (value: unknown, fallback: number) => (typeof value === "number" ? value : fallback);
  const frequentist = part("frequentist");
  const cuped = part("cuped");
  const prior = part("prior");
  const planned = experiment.runningTimeCalculation.recommended_sample_size;
  return {
    method: config.method === "frequentist" ? "frequentist" : "bayesian",
    baselineKey: baselineKey(config, variants),
    level: number(part("bayesian").ci_level, 0.95),
    alpha: number(frequentist.alpha, 0.05),
    isSequential: frequentist.sequential !== false,
    tuning: number(frequentist.sequential_tuning_parameter, number(planned, 0) || defaultTuningParameter),
    difference: config.difference === "absolute" ? "absolute" : "relative",
    prior:
      typeof prior.mean === "number" && typeof prior.variance === "number"
        ? { mean: prior.mean, variance: prior.variance }
        : undefined,
    lookbackDays: cuped.enabled === true ? number(cuped.lookback_days, defaultLookbackDays) : 0,
    minimumExposures: experiment.minimumExposures,
  };
}

/** What the event store computes. @param shares changes of the percentages since the launch */
export function toRequest(
  experiment: Experiment,
  flag: { key: string },
  metrics: readonly JsonObject[],
  options: {
    variants: readonly string[];
    settings: StatsSettings;
    shares: readonly SharePeriod[];
    groupType?: string | undefined;
    now: Date;
  },
): ExperimentRequest {
  const criteria = experiment.exposureCriteria;
  const config = (name: string) => {
    const sent = criteria[name];
    if (!isJsonObject(sent) || typeof sent.event !== "string") return undefined;
    return { event: sent.event, properties: sent.properties ?? [] } as JsonObject;
  };
  const now = Math.ceil((options.now.getTime() + 1) / endStepMs) * endStepMs;
  return {
    flagKey: flag.key,
    variants: [
      ...options.variants,
      ...(experiment.holdoutId === null ? [] : [`holdout-${experiment.holdoutId}`]),
    ],
    start: (experiment.startDate ?? options.now).getTime() * 1_000,
    end: (experiment.endDate?.getTime() ?? now) * 1_000,
    exposure: config("exposure_config"),
    activation: config("activation_config"),
    multiple: multipleOf(experiment),
    maturedOnly: experiment.onlyCountMaturedUsers,
    groupType: options.groupType,
    periodStarts: options.shares.slice(1).map(({ from }) => from.getTime() * 1_000),
    metrics: metrics.map((metric) => toMetricRequest(metric, options.settings.lookbackDays)),
  };
}

/** Whether persons who saw several variants count, by their first. */
export const multipleOf = ({ exposureCriteria }: Experiment): ExperimentRequest["multiple"] =>
  exposureCriteria.multiple_variant_handling === "first_seen" ? "first_seen" : "exclude";

/** Percentages of the variants from a moment on. */
export interface SharePeriod {
  from: Date;
  /** By key of the variant. */
  shares: ReadonlyMap<string, number>;
}

export interface Exposures {
  total: number;
  /** Persons per variant that count in the results, in the order of the variants. */
  byVariant: { key: string; persons: number }[];
  multiple: number;
  holdout: number;
  lastAt: number | undefined;
  sampleRatio: SampleRatio | undefined;
}

export function summarizeExposures(
  counts: readonly ExposureCount[],
  variants: readonly string[],
  { shares, multiple }: { shares: readonly SharePeriod[]; multiple: ExperimentRequest["multiple"] },
): Exposures {
  const sum = (wanted: (count: ExposureCount) => boolean) =>
    counts.reduce((total, count) => total + (wanted(count) ? count.persons : 0), 0);
  const counted = ({ isMultiple }: ExposureCount) => multiple === "first_seen" || !isMultiple;
  const byVariant = variants.map((key) => ({
    key,
    persons: sum((row) => row.variant === key && counted(row)),
  }));
  const periods = shares.map(
    (period, index): ExposurePeriod => ({
      observed: variants.map((key) => sum((row) => row.variant === key && row.period === index)),
      weights: variants.map((key) => period.shares.get(key) ?? 0),
    }),
  );
  return {
    byVariant,
    total: byVariant.reduce((all, { persons }) => all + persons, 0),
    multiple: sum(({ isMultiple }) => isMultiple),
    holdout: sum(({ variant }) => !variants.includes(variant)),
    lastAt: counts.length === 0 ? undefined : Math.max(...counts.map(({ at }) => at)),
    sampleRatio: testSampleRatio(periods),
  };
}

export interface Warning {
  code: string;
  message: string;
}

/** What makes results doubtful. */
export function getWarnings(
  { multiple, total, sampleRatio }: Exposures,
  { shares, excluded }: { shares: readonly SharePeriod[]; excluded: readonly string[] },
): Warning[] {
  const warnings: Warning[] = [];
  if (excluded.length > 0)
    warnings.push({
      code: "excluded_variants",
      message: `Variants left out of results: ${excluded.join(", ")}.`,
    });
  if (sampleRatio?.isMismatch)
    warnings.push({
      code: "sample_ratio_mismatch",
      message: `The variants do not have the persons their percentages promise (p = ${sampleRatio.pValue.toPrecision(2)}); no verdict is given.`,
    });
  const seen = multiple + total;
  if (seen > 0 && multiple / seen > multipleShareMax)
    warnings.push({
      code: "multiple_variants",
      message:
        `${((100 * multiple) / seen).toFixed(1)} % of the persons saw several variants. Usual causes: persons who are identified ` +
        "later (enable ensure_experience_continuity) and changed percentages.",
    });
  if (shares.length > 1)
    warnings.push({
      code: "percentages_changed",
      message: "The percentages of the variants changed while the experiment was running.",
    });
  return warnings;
}

/** Sums as PostHog names them. */
function getSums(key: string, sums: MetricSums | undefined) {
  const { n = 0, y = 0, yy = 0, d, dd, yd, steps } = sums ?? {};
  return {
    key,
    number_of_samples: n,
    sum: y,
    sum_squares: yy,
    ...(d === undefined
      ? {}
      : { denominator_sum: d, denominator_sum_squares: dd!, numerator_denominator_sum_product: yd! }),
    ...(steps === undefined ? {} : { step_counts: steps }),
  };
}

type Row = JsonObject & { key: string };

export interface MetricResult {
  baseline: Row | null;
  variant_results: Row[];
  /** Persons of the holdout, who are in no test. */
  holdout: Row | null;
}

/** Limits of a metric instead of those of its guardrail. */
export interface MetricLimits {
  tolerance: number;
  /** Default: that of guardrails. */
  alpha: number | undefined;
}

/** Statistics of one metric. @param isBlocked no verdict: the samples do not have the promised ratio. */
export function getMetricResult(
  { metric, role }: RoledMetric,
  sums: readonly MetricSums[],
  variants: readonly string[],
  {
    settings,
    isBlocked,
    limits,
  }: { settings: StatsSettings; isBlocked: boolean; limits?: MetricLimits | undefined },
): MetricResult {
  const { kind, goal } = getMeasure(metric);
  const find = (key: string) => sums.find(({ variant }) => variant === key);
  const { baselineKey } = settings;
  const baseline = find(baselineKey);
  const plain = toSample(kind, { ...empty, ...baseline });
  const guardrail =
    limits ?? (isJsonObject(metric.guardrail) ? metric.guardrail : role === "guardrail" ? {} : undefined);
  const tolerance = Number(guardrail?.tolerance ?? 0.05);
  const rows = variants
    .filter((key) => key !== baselineKey)
    .map((key) => {
      const variant = find(key);
      const samples = getSamples(kind, baseline, variant, settings);
      const failures = getFailures(samples, settings);
      const isJudged = failures.length === 0 && !isBlocked;
      const tested =
        settings.method === "bayesian"
          ? bayesianRow({ baseline, variant, samples, kind, goal }, settings, isJudged)
          : frequentistRow(samples, settings, isJudged);
      const check =
        guardrail && checkGuardrail(samples.baseline, samples.variant, goal, tolerance, limits?.alpha);
      return {
        ...getSums(key, variant),
        mean: toSample(kind, { ...empty, ...variant }).mean,
        ...tested,
        detectable_effect: detectableEffect(samples.baseline, samples.variant) ?? null,
        // The Beta-Binomial model compares the counts themselves.
        ...(samples.cuped === undefined || tested.model === "beta" ? {} : { cuped: samples.cuped }),
        ...(guardrail === undefined
          ? {}
          : {
              guardrail: {
                tolerance,
                interval: check?.interval ?? null,
                violated: check !== undefined && isLargeEnough(samples, settings) ? check.isViolated : null,
              },
            }),
        validation_failures: failures,
      } as Row;
    });
  if (settings.method === "frequentist" && role === "primary" && rows.length > 1)
    adjustRows(rows, settings, isBlocked);
  const held = sums.find(({ variant }) => !variants.includes(variant));
  return {
    baseline: { ...getSums(baselineKey, baseline), mean: plain.mean, validation_failures: [] } as Row,
    variant_results: rows,
    holdout:
      held === undefined
        ? null
        : ({ ...getSums(held.variant, held), mean: toSample(kind, held).mean } as Row),
  };
}

const empty = { n: 0, y: 0, yy: 0 };

interface Samples {
  baseline: Sample;
  variant: Sample;
  cuped: JsonObject | undefined;
}

function getSamples(
  kind: ReturnType<typeof getMeasure>["kind"],
  baseline: MetricSums | undefined,
  variant: MetricSums | undefined,
  { lookbackDays }: StatsSettings,
): Samples {
  const c = { ...empty, ...baseline };
  const t = { ...empty, ...variant };
  const plain = { baseline: toSample(kind, c), variant: toSample(kind, t), cuped: undefined };
  const active = (baseline?.active ?? 0) + (variant?.active ?? 0);
  if (lookbackDays === 0 || active < cupedPersonsMin) return plain;
  const adjusted = adjustByCuped(c, t);
  return {
    baseline: adjusted.baseline,
    variant: adjusted.variant,
    cuped: {
      theta: adjusted.theta,
      variance_reduction: adjusted.varianceReduction,
      adjusted_mean: adjusted.variant.mean,
      adjusted_baseline_mean: adjusted.baseline.mean,
    },
  };
}

const isLargeEnough = ({ baseline, variant }: Samples, { minimumExposures }: StatsSettings) =>
  Math.min(baseline.n, variant.n) >= minimumExposures;

/** Codes of PostHog. */
function getFailures(samples: Samples, settings: StatsSettings): string[] {
  const failures: string[] = [];
  if (!isLargeEnough(samples, settings)) failures.push("not-enough-exposures");
  if (samples.baseline.mean === 0) failures.push("baseline-mean-is-zero");
  if (!(samples.baseline.variance > 0 || samples.variant.variance > 0))
    failures.push("not-enough-metric-data");
  return failures;
}

interface Compared {
  baseline: MetricSums | undefined;
  variant: MetricSums | undefined;
  samples: Samples;
  kind: ReturnType<typeof getMeasure>["kind"];
  goal: ReturnType<typeof getMeasure>["goal"];
}

function bayesianRow(
  { baseline, variant, samples, kind, goal }: Compared,
  { level, difference, prior }: StatsSettings,
  isJudged: boolean,
): JsonObject {
  const counts = [baseline, variant].map((sums) => ({ n: sums?.n ?? 0, successes: sums?.y ?? 0 }));
  const usesBeta = kind === "proportion" && counts.every(({ n }) => n > 0) && hasFewConversions(counts);
  const result = usesBeta
    ? betaPosterior(counts[0]!, counts[1]!, { goal, level })
    : normalPosterior(samples.baseline, samples.variant, { goal, level, difference, prior });
  if (result === undefined)
    return {
      method: "bayesian",
      significant: null,
      chance_to_win: null,
      credible_interval: null,
      delta: null,
      difference,
      expected_loss: null,
      model: "normal",
    };
  const { chanceToWin, interval, loss, estimate, model } = result;
  return {
    method: "bayesian",
    significant: isJudged ? chanceToWin > winChance || chanceToWin < 1 - winChance : null,
    chance_to_win: chanceToWin,
    credible_interval: interval,
    delta: estimate,
    difference: result.difference,
    model,
    expected_loss: { baseline: loss.baseline, variant: loss.variant },
  };
}

function frequentistRow(samples: Samples, settings: StatsSettings, isJudged: boolean): JsonObject {
  const { alpha, difference, tuning, isSequential } = settings;
  const result = isSequential
    ? sequentialTest(samples.baseline, samples.variant, alpha, difference, tuning)
    : welchTest(samples.baseline, samples.variant, alpha, difference);
  return {
    method: "frequentist",
    significant: result !== undefined && isJudged ? result.pValue < alpha : null,
    p_value: result?.pValue ?? null,
    confidence_interval: result?.interval ?? null,
    delta: result?.estimate ?? null,
    difference: result?.difference ?? difference,
    sequential: isSequential,
  };
}

/** Holm's correction among the variants of a primary metric; intervals stay unadjusted. */
function adjustRows(rows: Row[], { alpha }: StatsSettings, isBlocked: boolean): void {
  const tested = rows.filter(({ p_value: p }) => typeof p === "number");
  const adjusted = adjustByHolm(tested.map(({ p_value: p }) => p as number));
  for (const [index, row] of tested.entries()) {
    row.p_value_adjusted = adjusted[index]!;
    row.confidence_interval_adjusted = false;
    if (row.significant !== null && !isBlocked) row.significant = adjusted[index]! < alpha;
  }
}
