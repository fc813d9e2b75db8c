/** Experiments in the activity log. */

import { changeRecorder } from "../accounts/activity.ts";
import type { JsonObject } from "../lib/json/value.ts";
import type { Experiment } from "./store.ts";

function getShown(of: Experiment): JsonObject {
  return {
    name: of.name,
    description: of.description,
    start_date: of.startDate?.toISOString() ?? null,
    end_date: of.endDate?.toISOString() ?? null,
    archived: of.archived,
    deleted: of.deleted,
    conclusion: of.conclusion,
    conclusion_comment: of.conclusionComment,
    metrics: of.metrics,
    metrics_secondary: of.metricsSecondary,
    saved_metrics_ids: of.savedMetrics,
    exposure_criteria: of.exposureCriteria,
    stats_config: of.statsConfig,
    holdout_id: of.holdoutId,
    parameters: of.parameters,
    only_count_matured_users: of.onlyCountMaturedUsers,
    minimum_exposures: of.minimumExposures,
    running_time_calculation: of.runningTimeCalculation,
    tags: of.tags,
  };
}

/** Records a change of an experiment. */
export const recordExperiment = changeRecorder("Experiment", getShown);
