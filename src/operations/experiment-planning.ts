/** What planning an experiment needs: flags, counts and the running time (contract: experiments 2.9). */

import { Type } from "@sinclair/typebox";
import { readMetric } from "../experiments/metrics.ts";
import {
  BaselineStats,
  calculatorTypes,
  isCalculatorType,
  planBaseline,
} from "../experiments/planned-baseline.ts";
import { loadStatistics } from "../experiments/statistics.ts";
import { listExperiments } from "../experiments/store.ts";
import { flagAnswers } from "../flags/api/feature-flags.ts";
import { FlagPage } from "../flags/api/flag-schemas.ts";
import { exampleFlag } from "../flags/fields.ts";
import { getVariants } from "../flags/rules/types.ts";
import { listAllFlags } from "../flags/store/flag-list.ts";
import { bool, enumeration, int, nullable, num, object, optional, record, string } from "../http/schemas.ts";
import { InvalidFieldError } from "../lib/errors.ts";
import { isJsonObject } from "../lib/json/value.ts";

import {
  type ExperimentContext as Context,
  getExperimentActor,
  experimentTag as tag,
} from "./experiment-list.ts";
import { listOperation, operation } from "./operation.ts";

const eligibleFlags = listOperation({
  id: "experiments.eligible_flags",
  on: "project",
  scope: "feature_flag:read",
  tag,
  summary: "List the flags an experiment can use",
  description: "Flags with at least two variants.",
  http: { method: "GET", path: "/experiments/eligible_feature_flags", answer: "One page of flags." },
  input: object({ search: optional(string({ description: "Part of key or name." })) }),
  output: FlagPage,
  example: exampleFlag,
  readQuery: (query) => ({ search: query.get("search") ?? undefined }),
  run: (context: Context, { limit, offset, search }) => {
    const { stores, project, now } = context;
    const all = listAllFlags(
      stores.metadata.db,
      project.id,
      { type: "multivariant", ...(search ? { search } : {}) },
      now,
    );
    const flags = all.filter(({ filters }) => getVariants(filters).length >= 2);
    const answers = flagAnswers(stores, getExperimentActor(context));
    return { count: flags.length, results: answers.many(flags.slice(offset, offset + limit)) };
  },
});

const getStats = operation({
  id: "experiments.stats",
  on: "project",
  scope: "experiment:read",
  tag,
  summary: "Count launched and ended experiments",
  http: { method: "GET", path: "/experiments/stats", answer: "Counts." },
  input: object({}),
  output: object({
    launched_last_30d: int(),
    launched_previous_30d: int(),
    active_experiments: int(),
    completed_last_30d: int(),
  }),
  example: { launched_last_30d: 2, launched_previous_30d: 1, active_experiments: 1, completed_last_30d: 1 },
  run: ({ stores, project, now }: Context) => {
    const page = { limit: Number.MAX_SAFE_INTEGER, offset: 0 };
    const { experiments } = listExperiments(stores.metadata.db, project.id, {}, page, now);
    const daysAgo = (date: Date | null) =>
      date === null ? Number.NaN : (now.getTime() - date.getTime()) / 86_400_000;
    const count = (wanted: (days: number) => boolean, dates: (Date | null)[]) =>
      dates.filter((date) => wanted(daysAgo(date))).length;
    const starts = experiments.map(({ startDate }) => startDate);
    return {
      launched_last_30d: count((days) => days >= 0 && days < 30, starts),
      launched_previous_30d: count((days) => days >= 30 && days < 60, starts),
      active_experiments: experiments.filter(
        ({ startDate, endDate }) => startDate !== null && endDate === null,
      ).length,
      completed_last_30d: count(
        (days) => days >= 0 && days < 30,
        experiments.map(({ endDate }) => endDate),
      ),
    };
  },
});

const planningDays = 14;
const daysWhole = 7;
const daysMany = 90;

const calculateRunningTime = operation({
  id: "experiments.running_time",
  on: "project",
  scope: "experiment:read",
  tag,
  summary: "Calculate sample size and running time",
  description: `Stores nothing. Without \`baseline_value\` the metric's last ${planningDays} days are used.`,
  mcp: { name: "calculate_running_time" },
  http: { method: "POST", path: "/experiments/calculate_running_time", status: 200, answer: "The plan." },
  input: object({
    metric: optional(nullable(record({ description: "A metric of kind `ExperimentMetric`." }))),
    metric_type: optional(
      nullable(
        enumeration(["proportion", "mean", ...calculatorTypes], {
          description: "Without `metric`. With a type of PostHog (`funnel`, …) the effect is in percent.",
        }),
      ),
    ),
    baseline_value: optional(nullable(num())),
    variance: optional(nullable(num({ minimum: 0, description: "Of one person's value; of means only." }))),
    baseline_stats: optional(nullable(BaselineStats)),
    minimum_detectable_effect: num({
      description: "Smallest relative effect: 0.1 is 10 %; 10 with a `metric_type` of PostHog.",
    }),
    exposure_rate_per_day: optional(nullable(num({ minimum: 0 }))),
    number_of_variants: optional(int({ minimum: 2, maximum: 20, default: 2 })),
    alpha: optional(num({ minimum: 0.0001, maximum: 0.5, default: 0.05 })),
    power: optional(num({ minimum: 0.5, maximum: 0.9999, default: 0.8 })),
    sequential: optional(bool({ default: false })),
  }),
  inputExample: {
    metric_type: "proportion",
    baseline_value: 0.1,
    minimum_detectable_effect: 0.1,
    exposure_rate_per_day: 500,
  },
  output: object({
    baseline_value: Type.Number(),
    variance: Type.Number(),
    sample_size_per_variant: int(),
    recommended_sample_size: int(),
    recommended_running_time_days: nullable(int()),
    exposure_rate_per_day: Type.Number(),
    advice: nullable(string()),
  }),
  example: {
    baseline_value: 0.1,
    variance: 0.09,
    sample_size_per_variant: 14749,
    recommended_sample_size: 29498,
    recommended_running_time_days: 59,
    exposure_rate_per_day: 500,
    advice: null,
  },
  run: async ({ stores, project, now }: Context, input) => {
    const [{ computeBaseline }, { planSampleSize }] = await Promise.all([
      loadStatistics(),
      import("../experiments/stats/sample-size.ts"),
    ]);
    const metric = isJsonObject(input.metric) ? readMetric(input.metric, "metric") : undefined;
    const measured =
      metric === undefined
        ? undefined
        : await computeBaseline(stores, metric, { project, now, refresh: "blocking" }, planningDays);
    const type = input.metric_type ?? "proportion";
    const isInPercent = isCalculatorType(type);
    const effect = input.minimum_detectable_effect / (isInPercent ? 100 : 1);
    const planned = isInPercent
      ? planBaseline(type, input)
      : { kind: type, value: undefined, variance: undefined };
    const kind = measured?.kind ?? planned.kind;
    const baseline = input.baseline_value ?? measured?.mean ?? planned.value;
    if (baseline === undefined)
      throw new InvalidFieldError(
        "baseline_value",
        "required",
        "Send `baseline_value`, `baseline_stats` or `metric`.",
      );
    const variance =
      kind === "proportion"
        ? baseline * (1 - baseline)
        : (input.variance ?? measured?.variance ?? planned.variance ?? 0);
    const exposuresPerDay = input.exposure_rate_per_day ?? (measured?.persons ?? 0) / planningDays;
    assertPlannable(kind, baseline, variance, effect);
    const plan = planSampleSize({
      kind,
      baseline,
      variance,
      effect,
      exposuresPerDay,
      variants: input.number_of_variants ?? 2,
      alpha: input.alpha,
      power: input.power,
      isSequential: input.sequential === true,
    });
    if (!Number.isSafeInteger(plan.total))
      throw new InvalidFieldError(
        "minimum_detectable_effect",
        "invalid_input",
        "The effect is too small for this baseline: no number of persons can show it.",
      );
    const days = plan.days ?? null;
    return {
      baseline_value: baseline,
      variance,
      sample_size_per_variant: plan.perVariant,
      recommended_sample_size: plan.total,
      recommended_running_time_days: days,
      exposure_rate_per_day: exposuresPerDay,
      advice:
        days === null
          ? null
          : days < daysWhole
            ? "Run it for a whole week, so that every day of the week counts."
            : days > daysMany
              ? "Choose a larger effect: this takes more than 90 days."
              : null,
    };
  },
});

/** @throws {InvalidFieldError} */
function assertPlannable(
  kind: "proportion" | "mean",
  baseline: number,
  variance: number,
  effect: number,
): void {
  if (effect === 0 || !Number.isFinite(effect))
    throw new InvalidFieldError("minimum_detectable_effect", "invalid_input", "The effect must not be 0.");
  if (baseline === 0)
    throw new InvalidFieldError(
      "baseline_value",
      "invalid_input",
      "The baseline is 0, so a relative effect is not defined.",
    );
  const changed = baseline * (1 + effect);
  if (kind === "proportion" && !(baseline > 0 && baseline < 1 && changed >= 0 && changed <= 1))
    throw new InvalidFieldError(
      "baseline_value",
      "invalid_input",
      "The baseline of a proportion must be between 0 and 1, with and without the effect.",
    );
  if (kind === "mean" && !(variance > 0))
    throw new InvalidFieldError("variance", "invalid_input", "A mean requires a `variance` above 0.");
}

export const planningOperations = [eligibleFlags, getStats, calculateRunningTime];
