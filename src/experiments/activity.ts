/** Experiments in the activity log. */

import { changeRecorder } from "../accounts/activity.ts";
import type { JsonObject } from "../lib/json/value.ts";
import type { Experiment } from "./store.ts";

function getShown(experiment: Experiment): JsonObject {
  return {
    name: experiment.name,
    description: experiment.description,
    start_date: experiment.startDate?.toISOString() ?? null,
    end_date: experiment.endDate?.toISOString() ?? null,
    archived: experiment.archived,
    deleted: experiment.deleted,
    conclusion: experiment.conclusion,
    conclusion_comment: experiment.conclusionComment,
    metrics: experiment.metrics,
    metrics_secondary: experiment.metricsSecondary,
    saved_metrics_ids: experiment.savedMetrics,
    exposure_criteria: experiment.exposureCriteria,
    stats_config: experiment.statsConfig,
    holdout_id: experiment.holdoutId,
    parameters: experiment.parameters,
    only_count_matured_users: experiment.onlyCountMaturedUsers,
    minimum_exposures: experiment.minimumExposures,
    excluded_variants: experiment.excludedVariants,
    primary_metrics_ordered_uuids: experiment.primaryMetricsOrder,
    secondary_metrics_ordered_uuids: experiment.secondaryMetricsOrder,
    running_time_calculation: experiment.runningTimeCalculation,
    tags: experiment.tags,
  };
}

/** Records a change of an experiment. */
export const recordExperiment = changeRecorder("Experiment", getShown);
