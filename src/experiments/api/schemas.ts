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

const descriptionMax = 3_000;
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
  running_time_calculation: optional(nullable(record())),
  holdout_id: optional(nullable(int({ description: "Draft only." }))),
  conclusion: optional(nullable(enumeration(conclusions))),
  conclusion_comment: optional(nullable(string({ blank: true, max: descriptionMax }))),
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
  of: Experiment,
  { flag, users }: { flag: FlagAnswer; users: UserFinder },
): ExperimentRecord {
  const holdout = of.holdoutId === null ? undefined : findHoldout(db, of.projectId, of.holdoutId);
  const links = savedMetricLinks(of);
  const saved = savedMetricsById(
    db,
    of.projectId,
    links.map(({ id }) => id),
  );
  const creator = users(of.createdById);
  return {
    id: of.id,
    name: of.name,
    description: of.description,
    type: of.type,
    status: getStatus(of, flag.active),
    feature_flag_key: flag.key,
    feature_flag: flag,
    tags: of.tags,
    parameters: { ...of.parameters, feature_flag_variants: getVariants(flag.filters) },
    start_date: toApiTimeOrNull(of.startDate),
    end_date: toApiTimeOrNull(of.endDate),
    archived: of.archived,
    deleted: of.deleted,
    metrics: of.metrics,
    metrics_secondary: of.metricsSecondary,
    saved_metrics: links.flatMap(({ id, metadata }) => {
      const metric = saved.get(id);
      if (metric === undefined) return [];
      return [{ id, experiment: of.id, saved_metric: id, metadata, query: metric.query, name: metric.name }];
    }),
    saved_metrics_ids: links.map(({ id, metadata }) => ({ id, metadata })),
    exposure_criteria: of.exposureCriteria,
    exposure_cohort: null,
    stats_config: of.statsConfig,
    only_count_matured_users: of.onlyCountMaturedUsers,
    minimum_exposures: of.minimumExposures,
    running_time_calculation: of.runningTimeCalculation,
    holdout_id: of.holdoutId,
    holdout: holdout === undefined ? null : holdoutBody(holdout, users),
    conclusion: of.conclusion as ExperimentRecord["conclusion"],
    conclusion_comment: of.conclusionComment,
    version: of.version,
    created_by: creator ? userBody(creator) : null,
    created_at: toApiTime(of.createdAt),
    updated_at: toApiTime(of.updatedAt),
    user_access_level: flag.user_access_level ?? "editor",
  };
}

export function holdoutBody(of: Holdout, users: UserFinder): Static<typeof HoldoutBody> {
  const creator = users(of.createdById);
  return {
    id: of.id,
    name: of.name,
    description: of.description,
    filters: of.filters,
    created_by: creator ? userBody(creator) : null,
    created_at: toApiTime(of.createdAt),
    updated_at: toApiTime(of.updatedAt),
  };
}

export function savedMetricBody(of: SavedMetric, users: UserFinder): Static<typeof SavedMetricBody> {
  const creator = users(of.createdById);
  return {
    id: of.id,
    name: of.name,
    description: of.description,
    query: of.query,
    tags: of.tags,
    created_by: creator ? userBody(creator) : null,
    created_at: toApiTime(of.createdAt),
    updated_at: toApiTime(of.updatedAt),
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
  running_time_calculation: {},
  holdout_id: null,
  holdout: null,
  conclusion: null,
  conclusion_comment: null,
  version: 2,
  ...exampleTimes,
  user_access_level: "editor",
};
