/** Experiments in the activity log. */

import { changesBetween, type NewActivity, recordActivity } from "../accounts/activity.ts";
import type { MetadataTx } from "../accounts/db.ts";
import type { JsonObject } from "../lib/json/value.ts";
import type { Experiment } from "./store.ts";

const trackedFields = [
  "name",
  "description",
  "start_date",
  "end_date",
  "archived",
  "deleted",
  "conclusion",
  "conclusion_comment",
  "metrics",
  "metrics_secondary",
  "saved_metrics_ids",
  "exposure_criteria",
  "stats_config",
  "holdout_id",
  "parameters",
  "only_count_matured_users",
  "minimum_exposures",
  "running_time_calculation",
  "tags",
];

function getShown(of: Experiment | undefined): JsonObject {
  if (of === undefined) return {};
  return {
    name: of.name,
    description: of.description,
    archived: of.archived,
    deleted: of.deleted,
    start_date: of.startDate?.toISOString() ?? null,
    end_date: of.endDate?.toISOString() ?? null,
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
    tags: of.tags,
    minimum_exposures: of.minimumExposures,
    running_time_calculation: of.runningTimeCalculation,
  };
}

export function recordExperiment(
  t: MetadataTx,
  activity: "created" | "updated" | "deleted",
  before: Experiment | undefined,
  after: Experiment,
  { by, now }: Pick<NewActivity, "by" | "now">,
): void {
  const changes =
    before === undefined
      ? []
      : changesBetween("Experiment", getShown(before), getShown(after), trackedFields);
  if (activity === "updated" && changes.length === 0) return;
  recordActivity(t, {
    by,
    now,
    projectId: after.projectId,
    activity,
    scope: "Experiment",
    itemId: after.id,
    name: after.name,
    changes,
  });
}
