/** Experiments in API responses, their metrics and results. */

import type { Refine } from "../lib/api.ts";
import { request } from "../lib/api.ts";
import type { ExperimentHoldout, ExperimentSavedMetric } from "../lib/api-types.ts";
import { decimal, percent } from "../lib/format.ts";
import { inProject } from "../lib/session.ts";
import { lazyMessages } from "../messages/later.ts";
import type { Condition, Flag, ShortUser } from "./flags.ts";

const w = lazyMessages.experiments;

export type Status = "draft" | "running" | "paused" | "stopped";

/** An event and what is computed from it. */
export interface Source {
  kind: "EventsNode";
  event: string;
  math?: string;
  math_property?: string;
  properties?: Condition[];
}

export type MetricType = keyof typeof w.types;

/** A metric as the API has it; members that the page does not know are preserved. */
export interface Metric {
  kind: "ExperimentMetric";
  uuid?: string;
  name?: string;
  goal: "increase" | "decrease";
  metric_type: MetricType;
  source?: Source;
  series?: Source[];
  funnel_order_type?: "ordered" | "unordered";
  numerator?: Source;
  denominator?: Source;
  start_event?: Source;
  completion_event?: Source;
  retention_window_start?: number;
  retention_window_end?: number;
  retention_window_unit?: string;
  conversion_window?: number;
  conversion_window_unit?: string;
  upper_bound_percentile?: number;
  guardrail?: { tolerance: number; action: "warn" | "rollback" } | null;
  [more: string]: unknown;
}

interface EventConfig {
  kind?: string;
  event: string;
  properties?: Condition[];
}

export interface Experiment {
  id: number;
  name: string;
  description: string;
  /** `web`: posthog-js changes pages; `product`: code asks for the variant. */
  type: "product" | "web";
  status: Status;
  archived: boolean;
  start_date: string | null;
  end_date: string | null;
  metrics: Metric[];
  metrics_secondary: Metric[];
  saved_metrics_ids: { id: number; metadata: { type?: string } }[];
  saved_metrics: { saved_metric: number; name: string; query: Metric; metadata: { type?: string } }[];
  exposure_criteria: {
    exposure_config?: EventConfig | null;
    activation_config?: EventConfig | null;
    multiple_variant_handling?: "exclude" | "first_seen" | null;
    [more: string]: unknown;
  };
  stats_config: {
    method?: "bayesian" | "frequentist" | null;
    baseline_variant_key?: string | null;
    frequentist?: { sequential?: boolean } | null;
    cuped?: { enabled?: boolean; lookback_days?: number } | null;
    [more: string]: unknown;
  };
  only_count_matured_users: boolean;
  minimum_exposures: number;
  running_time_calculation: {
    minimum_detectable_effect?: number;
    recommended_sample_size?: number;
    recommended_running_time?: number | null;
    exposure_rate_per_day?: number;
  };
  holdout_id: number | null;
  holdout: Holdout | null;
  conclusion: keyof typeof w.conclusions | null;
  conclusion_comment: string | null;
  version: number;
  created_by: ShortUser | null;
  user_access_level: string;
  feature_flag: Flag;
}

/** Of a step of the setup. */
export interface StepProps {
  experiment: Experiment;
  rejection: string | false;
  /** Saved: shows the next step. */
  onDone: (after: Experiment) => void;
}

export type Holdout = Refine<ExperimentHoldout, { filters: { rollout_percentage: number }[] }>;

export type SavedMetric = Refine<ExperimentSavedMetric, { query: Metric }>;

export interface ResultRow {
  key: string;
  number_of_samples: number;
  mean: number | null;
  step_counts?: number[];
  delta?: number | null;
  difference?: "relative" | "absolute";
  credible_interval?: [number, number] | null;
  confidence_interval?: [number, number] | null;
  chance_to_win?: number | null;
  p_value?: number | null;
  p_value_adjusted?: number;
  /** Null: no verdict. */
  significant?: boolean | null;
  expected_loss?: { baseline: number; variant: number } | null;
  guardrail?: { tolerance: number; violated: boolean | null };
  cuped?: { variance_reduction: number };
  validation_failures: string[];
}

export interface MetricResult {
  uuid: string | null;
  name: string | null;
  metric_type: MetricType | null;
  goal: "increase" | "decrease";
  role: "primary" | "secondary" | "guardrail";
  error: string | null;
  baseline: ResultRow | null;
  variant_results: ResultRow[];
  holdout: ResultRow | null;
}

export interface ExposureSeries {
  variant: string;
  days: string[];
  exposure_counts: number[];
}

export interface Results {
  status: Status;
  sentence: string;
  warnings: { code: string; message: string }[];
  exposures: {
    total: number;
    $multiple: number;
    holdout: number;
    last_exposure_at: string | null;
    variants: { key: string; persons: number; percentage: number }[];
    timeseries: ExposureSeries[];
  } | null;
  sample_ratio: { chi_squared: number; df: number; p_value: number; mismatch: boolean } | null;
  metrics: MetricResult[];
}

export const experimentPath = (id: number | string, rest = "") =>
  inProject(`experiments/${encodeURIComponent(id)}/${rest}`);

/** @param isFresh not from the server's cache */
export const readResults = (id: number | string, signal: AbortSignal, isFresh = false) =>
  request<Results>(experimentPath(id, `results/${isFresh ? "?refresh=true" : ""}`), { signal });

export const changeExperiment = (id: number, body: object) =>
  request<Experiment>(experimentPath(id), { method: "PATCH", body });

export const variantKeys = ({ feature_flag: flag }: Experiment): string[] =>
  (flag.filters.multivariate?.variants ?? []).map(({ key }) => key);

/** Why the user cannot change the experiment. */
export const getRejection = ({ user_access_level: level }: Experiment): string | false =>
  (level === "none" || level === "viewer") && w.viewOnly;

export const getInterval = (row: ResultRow): readonly [number, number] | undefined =>
  row.credible_interval ?? row.confidence_interval ?? undefined;

/** A delta or a bound of its interval: a percentage if the difference is relative. */
export function formatDelta(value: number | null | undefined, { difference }: ResultRow): string {
  if (typeof value !== "number") return "–";
  const text = difference === "absolute" ? decimal(value) : percent(value);
  return value > 0 ? `+${text}` : text;
}

/** "99.5%", or "p 0.012". */
export function formatCertainty(row: ResultRow): string {
  if (typeof row.chance_to_win === "number") {
    const { chance_to_win: chance } = row;
    return chance > 0.999 ? "> 99.9%" : chance < 0.001 ? "< 0.1%" : percent(chance);
  }
  const p = row.p_value_adjusted ?? row.p_value;
  return typeof p === "number" ? `p ${p < 0.001 ? "< 0.001" : p.toFixed(3)}` : "–";
}

export type Verdict = "better" | "worse" | "none" | "open";

/** What the result of a variant means. `open`: no verdict is possible yet. */
export function getVerdict(row: ResultRow, goal: "increase" | "decrease"): Verdict {
  if (row.significant === null || row.significant === undefined) return "open";
  if (!row.significant || typeof row.delta !== "number") return "none";
  return row.delta > 0 === (goal === "increase") ? "better" : "worse";
}

const dayMs = 86_400_000;

/** Days since the launch, or between launch and end. */
export function daysRunning({ start_date: start, end_date: end }: Experiment): number | undefined {
  if (start === null) return undefined;
  return Math.max(0, Math.floor(((end === null ? Date.now() : Date.parse(end)) - Date.parse(start)) / dayMs));
}

const freshSource = (): Source => ({ kind: "EventsNode", event: "" });

/** A metric of another type that keeps its events. */
export function withType(metric: Metric, type: MetricType): Metric {
  const known =
    metric.source ?? metric.series?.[0] ?? metric.numerator ?? metric.start_event ?? freshSource();
  const { source: _, series: __, numerator, denominator, start_event, completion_event, ...rest } = metric;
  const base: Metric = { ...rest, metric_type: type };
  switch (type) {
    case "mean":
      return { ...base, source: known };
    case "funnel":
      return { ...base, series: metric.series ?? [known] };
    case "ratio":
      return { ...base, numerator: numerator ?? known, denominator: denominator ?? freshSource() };
    case "retention":
      return {
        ...base,
        start_event: start_event ?? known,
        completion_event: completion_event ?? freshSource(),
        retention_window_start: metric.retention_window_start ?? 1,
        retention_window_end: metric.retention_window_end ?? 7,
        retention_window_unit: metric.retention_window_unit ?? "day",
      };
  }
}

export const freshMetric = (): Metric =>
  withType({ kind: "ExperimentMetric", goal: "increase", metric_type: "funnel" }, "funnel");

/** The events of a metric, for its summary. */
export function getEvents(metric: Metric): string {
  const sources = [
    metric.source,
    ...(metric.series ?? []),
    metric.numerator,
    metric.denominator,
    metric.start_event,
    metric.completion_event,
  ];
  return sources.flatMap((source) => (source ? [source.event || w.anyEvent] : [])).join(" → ");
}

export const metricName = (metric: { name?: string | null }, events = ""): string =>
  metric.name || events || w.unnamed;
