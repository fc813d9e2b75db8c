/** Computes the results of an experiment with the event store. */

import { and, asc, eq, gt } from "drizzle-orm";
import type { Reading } from "../accounts/db.ts";
import type { Metadata } from "../accounts/metadata.ts";
import type { Project } from "../accounts/project-directory.ts";
import { activity } from "../accounts/schema.ts";
import type { ExperimentRequest, ExperimentSums } from "../events/insights/experiment.ts";
import type { Refresh } from "../events/insights/insight-cache.ts";
import type { Flag } from "../flags/fields.ts";
import { getGroupType, getVariants } from "../flags/rules/types.ts";
import { findFlag } from "../flags/store/flag.ts";
import type { GroupTypeSource } from "../flags/store/flag-sets.ts";
import { InvalidFieldError, NotFoundError } from "../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import { dayMs, toApiTime, toApiTimeOrNull } from "../lib/time.ts";
import { wallTimeAt } from "../lib/time-zone.ts";
import { getMeasure, toMetricRequest } from "./metrics.ts";
import {
  type Exposures,
  getMetricResult,
  getWarnings,
  type MetricLimits,
  type MetricResult,
  multipleOf,
  readSettings,
  type SharePeriod,
  type StatsSettings,
  summarizeExposures,
  toRequest,
} from "./results.ts";
import { getMetrics, type RoledMetric } from "./roled-metrics.ts";
import { daysUntilPlanned, getSentence } from "./sentence.ts";
import { toSample } from "./stats/samples.ts";
import { type Experiment, getStatus } from "./store.ts";
import { getExcluded, variantKeys } from "./variants.ts";

export interface ExperimentQueries {
  /** Exposures and sums from the event store. @throws {InvalidFieldError} a metric uses an unsupported filter. */
  experimentSums(
    projectId: number,
    request: ExperimentRequest,
    how: { timezone: string; now: Date; refresh: Refresh },
  ): Promise<{ sums: ExperimentSums; computedAt: number; isCached: boolean }>;
}

export interface ComputeDeps {
  metadata: Metadata;
  groupTypes?: GroupTypeSource;
  /** Absent: results are not available. */
  experiments?: ExperimentQueries;
}

export interface ComputeOptions {
  project: Project;
  now: Date;
  refresh: Refresh;
}

export interface Prepared {
  flag: Flag;
  /** Those of the flag without the excluded ones. */
  variants: string[];
  excluded: string[];
  settings: StatsSettings;
  shares: SharePeriod[];
  groupType: string | undefined;
}

export function prepare(deps: ComputeDeps, experiment: Experiment, { project }: ComputeOptions): Prepared {
  const { db } = deps.metadata;
  const flag = findFlag(db, project.id, experiment.flagId);
  if (flag === undefined) throw new NotFoundError();
  const index = getGroupType({}, flag.filters);
  const types = index === null ? [] : (deps.groupTypes?.(project.id) ?? []);
  const excluded = getExcluded(experiment, flag.filters);
  const variants = variantKeys(flag.filters).filter((key) => !excluded.includes(key));
  return {
    flag,
    variants,
    excluded,
    settings: readSettings(experiment, variants),
    shares: sharePeriods(db, experiment, flag),
    groupType: index === null ? undefined : (types.find((type) => type.index === index)?.name ?? ""),
  };
}

/** The percentages since the launch, from the activity log of the flag. */
function sharePeriods(db: Reading, experiment: Experiment, flag: Flag): SharePeriod[] {
  const start = experiment.startDate ?? new Date(0);
  const entries = db
    .select({ detail: activity.detail, at: activity.createdAt })
    .from(activity)
    .where(
      and(
        eq(activity.projectId, experiment.projectId),
        eq(activity.scope, "FeatureFlag"),
        eq(activity.itemId, String(experiment.flagId)),
        gt(activity.createdAt, start),
      ),
    )
    .orderBy(asc(activity.createdAt), asc(activity.id))
    .all()
    .flatMap(({ detail, at }) => filterChanges(detail).map((change) => ({ ...change, at })))
    .filter(
      ({ before, after, at }) =>
        !Bun.deepEquals(before, after) && (experiment.endDate === null || at < experiment.endDate),
    );
  const first = entries[0]?.before ?? getShares(flag.filters);
  return [{ from: start, shares: first }, ...entries.map(({ after, at }) => ({ from: at, shares: after }))];
}

function filterChanges(detail: JsonObject) {
  const changes = Array.isArray(detail.changes) ? detail.changes.filter(isJsonObject) : [];
  return changes
    .filter(({ field, before, after }) => field === "filters" && isJsonObject(before) && isJsonObject(after))
    .map(({ before, after }) => ({
      before: getShares(before as JsonObject),
      after: getShares(after as JsonObject),
    }));
}

const getShares = (filters: JsonObject): Map<string, number> =>
  new Map(
    getVariants(filters).map(({ key, rollout_percentage: share }) => [String(key), Number(share ?? 0)]),
  );

/** Exposures and sums from the event store; in a series those at the end of each day, in `days`. */
export async function ask(
  deps: ComputeDeps,
  experiment: Experiment,
  prepared: Prepared,
  metrics: readonly JsonObject[],
  options: ComputeOptions & { dayEnds?: readonly Date[] },
) {
  if (deps.experiments === undefined)
    throw new InvalidFieldError(null, "unavailable", "Results require a running server. Use --url.");
  const { project, now, refresh } = options;
  const request = toRequest(experiment, prepared.flag, metrics, { ...prepared, now });
  const dayEnds = options.dayEnds?.map((end) => end.getTime() * 1_000);
  const asked = dayEnds === undefined ? request : { ...request, dayEnds, end: dayEnds.at(-1)! };
  return await deps.experiments.experimentSums(project.id, asked, {
    timezone: project.timezone,
    now,
    refresh,
  });
}

interface ShownMetric extends RoledMetric {
  result: MetricResult | null;
  error: string | null;
}

/** The results of all metrics; a metric that cannot be computed has its reason instead. */
export async function computeResults(
  deps: ComputeDeps,
  experiment: Experiment,
  options: ComputeOptions,
): Promise<JsonObject> {
  const prepared = prepare(deps, experiment, options);
  const { variants, excluded, settings, shares, flag } = prepared;
  const metrics = getMetrics(deps.metadata.db, experiment);
  const status = getStatus(experiment, flag.active);
  if (experiment.startDate === null)
    return {
      ...head(experiment, status, null, false),
      sentence: "The experiment has not been launched.",
      warnings: [],
      exposures: null,
      sample_ratio: null,
      metrics: metrics.map((metric) => metricBody({ ...metric, result: null, error: null })),
    };
  const { sums, problems, computedAt, isCached } = await sumsOfAll(
    deps,
    experiment,
    prepared,
    metrics,
    options,
  );
  const exposures = summarize(experiment, prepared, sums.exposures);
  const isBlocked = exposures.sampleRatio?.isMismatch ?? false;
  const shown = metrics.map((metric, index): ShownMetric => {
    const own = sums.metrics[index];
    if (own === undefined || problems[index] !== undefined)
      return { ...metric, result: null, error: problems[index] ?? "The metric could not be computed." };
    return {
      ...metric,
      result: getMetricResult(metric, own, variants, { settings, isBlocked }),
      error: null,
    };
  });
  return {
    ...head(experiment, status, computedAt, isCached),
    sentence: getSentence(shown, {
      isBlocked,
      daysLeft: daysUntilPlanned(experiment, exposures, options.now),
    }),
    warnings: getWarnings(exposures, { shares, excluded }) as unknown as Json,
    exposures: exposuresBody(exposures, sums.exposures, variants, options),
    sample_ratio: ratioBody(exposures),
    metrics: shown.map(metricBody),
  };
}

/** All metrics in one question; if one cannot be computed, each on its own. */
async function sumsOfAll(
  deps: ComputeDeps,
  experiment: Experiment,
  prepared: Prepared,
  metrics: readonly RoledMetric[],
  options: ComputeOptions,
) {
  const problems: (string | undefined)[] = [];
  const all = metrics.map(({ metric }) => metric);
  try {
    return { ...(await ask(deps, experiment, prepared, all, options)), problems };
  } catch (error) {
    if (!(error instanceof InvalidFieldError) || metrics.length === 0) throw error;
  }
  const base = await ask(deps, experiment, prepared, [], options);
  const found: ExperimentSums["metrics"] = [];
  for (const [index, metric] of all.entries()) {
    try {
      found[index] = (await ask(deps, experiment, prepared, [metric], options)).sums.metrics[0]!;
    } catch (error) {
      if (!(error instanceof InvalidFieldError)) throw error;
      problems[index] = error.message;
    }
  }
  return { ...base, sums: { ...base.sums, metrics: found }, problems };
}

function head(
  experiment: Experiment,
  status: string,
  computedAt: number | null,
  isCached: boolean,
): JsonObject {
  return {
    experiment_id: experiment.id,
    name: experiment.name,
    status,
    start_date: toApiTimeOrNull(experiment.startDate),
    end_date: toApiTimeOrNull(experiment.endDate),
    computed_at: computedAt === null ? null : toApiTime(new Date(computedAt)),
    is_cached: isCached,
  };
}

function metricBody({ metric, role, result, error }: ShownMetric): JsonObject {
  return {
    uuid: metric.uuid ?? null,
    name: metric.name ?? null,
    metric_type: metric.metric_type ?? null,
    goal: metric.goal ?? "increase",
    role,
    error,
    baseline: result?.baseline ?? null,
    variant_results: result?.variant_results ?? [],
    holdout: result?.holdout ?? null,
  };
}

function ratioBody({ sampleRatio }: Exposures): JsonObject | null {
  if (sampleRatio === undefined) return null;
  const { chiSquared, df, pValue, isMismatch } = sampleRatio;
  return { chi_squared: chiSquared, df, p_value: pValue, mismatch: isMismatch };
}

function exposuresBody(
  exposures: Exposures,
  counts: ExperimentSums["exposures"],
  variants: readonly string[],
  options: ComputeOptions,
): JsonObject {
  const { total, byVariant, multiple, holdout, lastAt } = exposures;
  return {
    total,
    $multiple: multiple,
    holdout,
    variants: byVariant.map(({ key, persons }) => ({
      key,
      persons,
      percentage: total === 0 ? 0 : (100 * persons) / total,
    })),
    last_exposure_at: lastAt === undefined ? null : toApiTime(new Date(lastAt)),
    timeseries: exposureSeries(counts, variants, options),
  };
}

/** Cumulative exposures by day of the project's time zone. */
function exposureSeries(
  counts: ExperimentSums["exposures"],
  variants: readonly string[],
  { project }: Pick<ComputeOptions, "project">,
): JsonObject[] {
  const toDay = (ms: number) => new Date(wallTimeAt(ms, project.timezone)).toISOString().slice(0, 10);
  const days = [...new Set(counts.map(({ at }) => toDay(at)))].sort();
  if (days.length === 0) return variants.map((variant) => ({ variant, days: [], exposure_counts: [] }));
  const all: string[] = [];
  for (let at = Date.parse(days[0]!); at <= Date.parse(days.at(-1)!); at += dayMs)
    all.push(new Date(at).toISOString().slice(0, 10));
  return variants.map((variant) => {
    const byDay = new Map<string, number>();
    for (const count of counts)
      if (count.variant === variant && !count.isMultiple)
        byDay.set(toDay(count.at), (byDay.get(toDay(count.at)) ?? 0) + count.persons);
    let sum = 0;
    return {
      variant,
      days: all,
      exposure_counts: all.map((day) => {
        sum += byDay.get(day) ?? 0;
        return sum;
      }),
    };
  });
}

/** Results of one metric: of `ExperimentQuery`. */
export async function computeMetric(
  deps: ComputeDeps,
  experiment: Experiment,
  metric: RoledMetric,
  options: ComputeOptions & { limits?: MetricLimits | undefined },
): Promise<MetricResult> {
  const prepared = prepare(deps, experiment, options);
  const { sums } = await ask(deps, experiment, prepared, [metric.metric], options);
  const found = { exposures: sums.exposures, sums: sums.metrics[0]! };
  return judgedResult(experiment, prepared, metric, found, options.limits);
}

/** The statistics of a metric; without a verdict if the samples do not have the promised ratio. */
export function judgedResult(
  experiment: Experiment,
  prepared: Prepared,
  metric: RoledMetric,
  { exposures, sums }: { exposures: ExperimentSums["exposures"]; sums: ExperimentSums["metrics"][number] },
  limits?: MetricLimits,
): MetricResult {
  const { variants, settings } = prepared;
  const { sampleRatio } = summarize(experiment, prepared, exposures);
  const isBlocked = sampleRatio?.isMismatch ?? false;
  return getMetricResult(metric, sums, variants, { settings, isBlocked, limits });
}

function summarize(
  experiment: Experiment,
  { variants, shares }: Prepared,
  counts: ExperimentSums["exposures"],
): Exposures {
  return summarizeExposures(counts, variants, { shares, multiple: multipleOf(experiment) });
}

/** Exposures alone: of `ExperimentExposureQuery`. */
export async function computeExposures(
  deps: ComputeDeps,
  experiment: Experiment,
  options: ComputeOptions,
): Promise<JsonObject> {
  const prepared = prepare(deps, experiment, options);
  const { variants } = prepared;
  const { sums } = await ask(deps, experiment, prepared, [], options);
  const exposures = summarize(experiment, prepared, sums.exposures);
  return {
    kind: "ExperimentExposureQuery",
    timeseries: exposureSeries(sums.exposures, variants, options),
    total_exposures: {
      ...Object.fromEntries(exposures.byVariant.map(({ key, persons }) => [key, persons])),
      ...(exposures.multiple > 0 ? { $multiple: exposures.multiple } : {}),
    },
    sample_ratio_mismatch: ratioBody(exposures),
    date_range: {
      date_from: toApiTimeOrNull(experiment.startDate),
      date_to: toApiTimeOrNull(experiment.endDate),
    },
  };
}

/** What finds the exposed persons of an experiment. @throws {InvalidFieldError} not launched, or its units are groups */
export function exposureRequest(
  deps: ComputeDeps,
  experiment: Experiment,
  options: ComputeOptions,
): ExperimentRequest {
  const fail = (detail: string) => new InvalidFieldError(null, "invalid_input", detail);
  if (experiment.startDate === null)
    throw fail("The experiment has not been launched: no one is exposed to it.");
  const prepared = prepare(deps, experiment, options);
  if (prepared.groupType !== undefined)
    throw fail("The experiment is on groups: a cohort contains persons. Use an experiment on persons.");
  return toRequest(experiment, prepared.flag, [], { ...prepared, now: options.now });
}

/** A metric's value per person in the last days, over all persons with an event. */
export async function computeBaseline(
  deps: ComputeDeps,
  metric: JsonObject,
  { project, now, refresh }: ComputeOptions,
  days: number,
): Promise<{ kind: "proportion" | "mean"; mean: number; variance: number; persons: number }> {
  if (deps.experiments === undefined)
    throw new InvalidFieldError("metric", "unavailable", "The metric requires a running server. Use --url.");
  const end = Math.ceil((now.getTime() + 1) / 60_000) * 60_000;
  const request: ExperimentRequest = {
    flagKey: "",
    variants: ["all"],
    isEveryone: true,
    multiple: "first_seen",
    maturedOnly: false,
    start: (end - days * dayMs) * 1_000,
    end: end * 1_000,
    periodStarts: [],
    metrics: [toMetricRequest(metric, 0)],
  };
  const { sums } = await deps.experiments.experimentSums(project.id, request, {
    timezone: project.timezone,
    now,
    refresh,
  });
  const { kind } = getMeasure(metric);
  const { n, mean, variance } = toSample(kind, sums.metrics[0]?.[0] ?? { n: 0, y: 0, yy: 0 });
  return { kind: kind === "proportion" ? "proportion" : "mean", mean, variance, persons: n };
}
