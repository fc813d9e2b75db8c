/** Experiments, holdouts and saved metrics in the API (contract: experiments 1.2). */

import type { Static } from "@sinclair/typebox";
import { exampleUser, UserBody, userBody } from "../../accounts/api/user-schemas.ts";
import type { Reading } from "../../accounts/db.ts";
import type { UserFinder } from "../../accounts/users.ts";
import { FlagBody } from "../../flags/api/flag-schemas.ts";
import { exampleFlag, type FlagAnswer } from "../../flags/fields.ts";
import { getVariants } from "../../flags/rules/types.ts";
import {
  anyJson,
  bool,
  dateTime,
  enumeration,
  int,
  list,
  named,
  nullable,
  num,
  object,
  openObject,
  optional,
  pageOf,
  record,
  string,
  tag,
} from "../../http/schemas.ts";
import { toApiTime, toApiTimeOrNull } from "../../lib/time.ts";
import { variantsMax } from "../flag-changes.ts";
import {
  type Experiment,
  experimentStatuses,
  findHoldout,
  getStatus,
  type Holdout,
  type SavedMetric,
  savedMetricLinks,
  savedMetricsById,
} from "../store.ts";

export const conclusions = ["won", "lost", "inconclusive", "stopped_early", "invalid"] as const;

const nameMax = 400;
const Metrics = list(record(), { description: "Metrics of kind `ExperimentMetric`; at most 20." });

const ExposureConfig = openObject({
  kind: optional(enumeration(["ExperimentEventExposureConfig"])),
  event: string({ max: nameMax }),
  properties: optional(list(record())),
});
const ExposureCriteria = openObject({
  exposure_config: optional(nullable(ExposureConfig)),
  multiple_variant_handling: optional(nullable(enumeration(["exclude", "first_seen"]))),
  activation_config: optional(nullable(ExposureConfig)),
  filterTestAccounts: optional(nullable(bool())),
});

const StatsConfig = openObject({
  method: optional(nullable(enumeration(["bayesian", "frequentist"], { default: "bayesian" }))),
  baseline_variant_key: optional(nullable(string({ max: nameMax }))),
  bayesian: optional(nullable(openObject({ ci_level: optional(num({ minimum: 0.5, maximum: 0.9999 })) }))),
  frequentist: optional(
    nullable(
      openObject({
        alpha: optional(num({ minimum: 0.0001, maximum: 0.5 })),
        sequential: optional(
          bool({ default: true, description: "Results hold however often you look at them." }),
        ),
        sequential_tuning_parameter: optional(num({ minimum: 1 })),
      }),
    ),
  ),
  difference: optional(nullable(enumeration(["relative", "absolute"], { default: "relative" }))),
  prior: optional(nullable(openObject({ mean: num(), variance: num({ minimum: 1e-12 }) }))),
  cuped: optional(
    nullable(
      openObject({
        enabled: optional(bool()),
        lookback_days: optional(int({ minimum: 1, maximum: 30, default: 14 })),
      }),
    ),
  ),
});

const SavedMetricLink = object({ id: int(), metadata: optional(nullable(record())) });
const SavedMetricLinks = list(SavedMetricLink);
/** An experiment has at most as many saved metrics as its two lists and guardrails have places. */
const savedMetricsMax = 60;

/** Both lists of metrics and the saved ones. */
const orderedMax = 100;
const MetricOrder = list(string({ max: nameMax }), {
  maxItems: orderedMax,
  description: "UUIDs of metrics in the order of results; others follow.",
});
const ExcludedVariants = list(string({ max: nameMax }), {
  maxItems: variantsMax,
  description:
    "Variants that are served, but left out of results; never the baseline. Guardrails that roll back check them.",
});

const descriptionMax = 3_000;
export const conclusionCommentMax = 4_000;
const editable = {
  description: optional(
    nullable(string({ blank: true, max: descriptionMax, description: "The hypothesis." })),
  ),
  tags: optional(nullable(list(tag()))),
  parameters: optional(nullable(record({ description: "`feature_flag_variants` follow the flag." }))),
  start_date: optional(nullable(dateTime({ description: "On a draft: launches it." }))),
  end_date: optional(nullable(dateTime())),
  archived: optional(bool()),
  metrics: optional(nullable(Metrics)),
  metrics_secondary: optional(nullable(Metrics)),
  saved_metrics_ids: optional(nullable(list(SavedMetricLink, { maxItems: savedMetricsMax }))),
  exposure_criteria: optional(nullable(ExposureCriteria)),
  stats_config: optional(nullable(StatsConfig)),
  only_count_matured_users: optional(bool()),
  minimum_exposures: optional(int({ minimum: 0, maximum: 1_000_000_000 })),
  excluded_variants: optional(nullable(ExcludedVariants)),
  primary_metrics_ordered_uuids: optional(nullable(MetricOrder)),
  secondary_metrics_ordered_uuids: optional(nullable(MetricOrder)),
  running_time_calculation: optional(
    nullable(record({ description: "The plan; `minimum_detectable_effect` is in percent." })),
  ),
  holdout_id: optional(nullable(int({ description: "Draft only." }))),
  conclusion: optional(nullable(enumeration(conclusions))),
  conclusion_comment: optional(nullable(string({ blank: true, max: conclusionCommentMax }))),
};

/** Configuration of the flag; its other members are those of a response. */
const FlagConfig = openObject(
  { filters: optional(record()), ensure_experience_continuity: optional(nullable(bool())) },
  { description: "Filters of the flag." },
);

export const NewExperimentInput = object({
  name: string({ max: 400 }),
  ...editable,
  type: optional(nullable(enumeration(["product", "web"], { default: "product" }))),
  feature_flag_key: optional(
    string({ max: 400, description: "An existing flag with 2 to 20 variants, or the key of a new one." }),
  ),
  feature_flag: optional(nullable(FlagConfig)),
});

export const ExperimentEdit = object({
  name: optional(string({ max: 400 })),
  ...editable,
  feature_flag: optional(nullable(FlagConfig)),
  update_feature_flag_params: optional(
    bool({ description: "Changes percentages and conditions of the flag while the experiment runs." }),
  ),
  deleted: optional(bool({ description: "Deletes the experiment, or restores it; its flag stays." })),
  version: optional(nullable(int({ description: "The version you read; 409 if it is older." }))),
});

export const HoldoutBody = named(
  "ExperimentHoldout",
  object({
    id: int(),
    name: string(),
    description: string({ blank: true }),
    filters: list(record()),
    created_by: nullable(UserBody),
    created_at: dateTime(),
    updated_at: dateTime(),
  }),
);

export const SavedMetricBody = named(
  "ExperimentSavedMetric",
  object({
    id: int(),
    name: string(),
    description: string({ blank: true }),
    query: record({ description: "A metric." }),
    tags: list(string()),
    created_by: nullable(UserBody),
    created_at: dateTime(),
    updated_at: dateTime(),
  }),
);

export const ExperimentBody = named(
  "Experiment",
  object({
    id: int(),
    name: string(),
    description: string({ blank: true }),
    type: enumeration(["product", "web"]),
    status: enumeration(experimentStatuses),
    feature_flag_key: string(),
    feature_flag: FlagBody,
    tags: list(string()),
    parameters: record(),
    start_date: nullable(dateTime()),
    end_date: nullable(dateTime()),
    archived: bool(),
    deleted: bool(),
    metrics: Metrics,
    metrics_secondary: Metrics,
    saved_metrics: list(
      object({
        id: int(),
        experiment: int(),
        saved_metric: int(),
        metadata: record(),
        query: record(),
        name: string(),
      }),
    ),
    saved_metrics_ids: SavedMetricLinks,
    exposure_criteria: record(),
    exposure_cohort: anyJson(),
    stats_config: record(),
    only_count_matured_users: bool(),
    minimum_exposures: int(),
    excluded_variants: ExcludedVariants,
    primary_metrics_ordered_uuids: nullable(MetricOrder),
    secondary_metrics_ordered_uuids: nullable(MetricOrder),
    running_time_calculation: record(),
    holdout_id: nullable(int()),
    holdout: nullable(HoldoutBody),
    conclusion: nullable(enumeration(conclusions)),
    conclusion_comment: nullable(string({ blank: true })),
    version: int(),
    created_by: nullable(UserBody),
    created_at: dateTime(),
    updated_at: dateTime(),
    user_access_level: string(),
  }),
);
export const ExperimentPage = pageOf("ExperimentPage", ExperimentBody);

export type ExperimentRecord = Static<typeof ExperimentBody>;

/** An experiment in a response. */
export function experimentBody(
  db: Reading,
  experiment: Experiment,
  { flag, users }: { flag: FlagAnswer; users: UserFinder },
): ExperimentRecord {
  const holdout =
    experiment.holdoutId === null ? undefined : findHoldout(db, experiment.projectId, experiment.holdoutId);
  const links = savedMetricLinks(experiment);
  const saved = savedMetricsById(
    db,
    experiment.projectId,
    links.map(({ id }) => id),
  );
  const creator = users(experiment.createdById);
  return {
    id: experiment.id,
    name: experiment.name,
    description: experiment.description,
    type: experiment.type,
    status: getStatus(experiment, flag.active),
    feature_flag_key: flag.key,
    feature_flag: flag,
    tags: experiment.tags,
    parameters: { ...experiment.parameters, feature_flag_variants: getVariants(flag.filters) },
    start_date: toApiTimeOrNull(experiment.startDate),
    end_date: toApiTimeOrNull(experiment.endDate),
    archived: experiment.archived,
    deleted: experiment.deleted,
    metrics: experiment.metrics,
    metrics_secondary: experiment.metricsSecondary,
    saved_metrics: links.flatMap(({ id, metadata }) => {
      const metric = saved.get(id);
      if (metric === undefined) return [];
      return [
        { id, experiment: experiment.id, saved_metric: id, metadata, query: metric.query, name: metric.name },
      ];
    }),
    saved_metrics_ids: links.map(({ id, metadata }) => ({ id, metadata })),
    exposure_criteria: experiment.exposureCriteria,
    exposure_cohort: null,
    stats_config: experiment.statsConfig,
    only_count_matured_users: experiment.onlyCountMaturedUsers,
    minimum_exposures: experiment.minimumExposures,
    excluded_variants: experiment.excludedVariants,
    primary_metrics_ordered_uuids: experiment.primaryMetricsOrder,
    secondary_metrics_ordered_uuids: experiment.secondaryMetricsOrder,
    running_time_calculation: experiment.runningTimeCalculation,
    holdout_id: experiment.holdoutId,
    holdout: holdout === undefined ? null : holdoutBody(holdout, users),
    conclusion: experiment.conclusion as ExperimentRecord["conclusion"],
    conclusion_comment: experiment.conclusionComment,
    version: experiment.version,
    created_by: creator ? userBody(creator) : null,
    created_at: toApiTime(experiment.createdAt),
    updated_at: toApiTime(experiment.updatedAt),
    user_access_level: flag.user_access_level ?? "editor",
  };
}

export function holdoutBody(holdout: Holdout, users: UserFinder): Static<typeof HoldoutBody> {
  const creator = users(holdout.createdById);
  return {
    id: holdout.id,
    name: holdout.name,
    description: holdout.description,
    filters: holdout.filters,
    created_by: creator ? userBody(creator) : null,
    created_at: toApiTime(holdout.createdAt),
    updated_at: toApiTime(holdout.updatedAt),
  };
}

export function savedMetricBody(savedMetric: SavedMetric, users: UserFinder): Static<typeof SavedMetricBody> {
  const creator = users(savedMetric.createdById);
  return {
    id: savedMetric.id,
    name: savedMetric.name,
    description: savedMetric.description,
    query: savedMetric.query,
    tags: savedMetric.tags,
    created_by: creator ? userBody(creator) : null,
    created_at: toApiTime(savedMetric.createdAt),
    updated_at: toApiTime(savedMetric.updatedAt),
  };
}

const exampleTimes = {
  created_by: exampleUser,
  created_at: "2026-03-02T08:15:30.120000Z",
  updated_at: "2026-03-04T16:00:01.007000Z",
};

export const exampleMetric = {
  kind: "ExperimentMetric",
  uuid: "0193d1a2-7b1c-7c3e-9f60-7a6b7c8d9e0f",
  name: "Orders",
  goal: "increase",
  metric_type: "funnel",
  series: [{ kind: "EventsNode", event: "order paid" }],
};

export const exampleHoldout = {
  id: 2,
  name: "Never in experiments",
  description: "",
  filters: [{ properties: [], rollout_percentage: 5, variant: "holdout-2" }],
  ...exampleTimes,
};

export const exampleSavedMetric = {
  id: 4,
  name: "Orders",
  description: "",
  query: exampleMetric,
  tags: [],
  ...exampleTimes,
};

export const exampleExperiment = {
  id: 7,
  name: "One-click payment",
  description: "If people pay with one click, more orders are paid.",
  type: "product",
  status: "running",
  feature_flag_key: exampleFlag.key,
  feature_flag: exampleFlag,
  tags: [],
  parameters: { feature_flag_variants: [] },
  start_date: "2026-03-02T09:00:00.000000Z",
  end_date: null,
  archived: false,
  deleted: false,
  metrics: [exampleMetric],
  metrics_secondary: [],
  saved_metrics: [],
  saved_metrics_ids: [],
  exposure_criteria: {},
  exposure_cohort: null,
  stats_config: { method: "bayesian" },
  only_count_matured_users: false,
  minimum_exposures: 100,
  excluded_variants: [],
  primary_metrics_ordered_uuids: null,
  secondary_metrics_ordered_uuids: null,
  running_time_calculation: {},
  holdout_id: null,
  holdout: null,
  conclusion: null,
  conclusion_comment: null,
  version: 2,
  ...exampleTimes,
  user_access_level: "editor",
};
