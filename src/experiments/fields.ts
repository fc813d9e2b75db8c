/** Columns of an experiment from the members of a request. */

import type { Static } from "@sinclair/typebox";
import type { MetadataTx } from "../accounts/db.ts";
import { normalizeTags } from "../flags/rules/key.ts";
import { InvalidFieldError, trimmedString } from "../lib/errors.ts";
import { isJsonObject, type JsonObject } from "../lib/json/value.ts";
import type { ExperimentEdit, NewExperimentInput } from "./api/schemas.ts";
import { checkFilters, readMetrics } from "./metrics.ts";
import { type Experiment, findHoldout, type NewExperiment, savedMetricsById } from "./store.ts";

export type NewInput = Static<typeof NewExperimentInput>;
export type EditInput = Static<typeof ExperimentEdit>;

/** The columns that a request sets. @throws {InvalidFieldError} */
export function getColumns(
  t: MetadataTx,
  projectId: number,
  input: EditInput | NewInput,
  before: Experiment | undefined,
): Partial<NewExperiment> {
  const changed: Partial<NewExperiment> = {};
  if (input.name !== undefined) changed.name = trimmedString("name", input.name, 400);
  if (input.description !== undefined) changed.description = input.description ?? "";
  if (input.tags !== undefined) changed.tags = normalizeTags(input.tags ?? [], "tags") ?? [];
  if (input.parameters !== undefined) {
    const { feature_flag_variants: _, ...others } = input.parameters ?? {};
    changed.parameters = others;
  }
  if (input.metrics !== undefined) changed.metrics = readMetrics(input.metrics, "metrics");
  if (input.metrics_secondary !== undefined)
    changed.metricsSecondary = readMetrics(input.metrics_secondary, "metrics_secondary");
  if (input.saved_metrics_ids !== undefined)
    changed.savedMetrics = savedLinks(t, projectId, input.saved_metrics_ids ?? []);
  if (input.exposure_criteria !== undefined)
    changed.exposureCriteria = readCriteria((input.exposure_criteria ?? {}) as JsonObject);
  if (input.stats_config !== undefined) changed.statsConfig = (input.stats_config ?? {}) as JsonObject;
  if (input.only_count_matured_users !== undefined)
    changed.onlyCountMaturedUsers = input.only_count_matured_users;
  if (input.minimum_exposures !== undefined) changed.minimumExposures = input.minimum_exposures;
  if (input.running_time_calculation !== undefined)
    changed.runningTimeCalculation = input.running_time_calculation ?? {};
  if (input.conclusion !== undefined) changed.conclusion = input.conclusion;
  if (input.conclusion_comment !== undefined) changed.conclusionComment = input.conclusion_comment;
  if (input.holdout_id !== undefined) changed.holdoutId = readHoldout(t, projectId, input.holdout_id, before);
  return changed;
}

/** @throws {InvalidFieldError} */
function readCriteria(criteria: JsonObject): JsonObject {
  for (const name of ["exposure_config", "activation_config"]) {
    const config = criteria[name];
    if (isJsonObject(config)) checkFilters(config.properties ?? null, "exposure_criteria");
  }
  return criteria;
}

function readHoldout(
  t: MetadataTx,
  projectId: number,
  id: number | null,
  before: Experiment | undefined,
): number | null {
  if (id === (before?.holdoutId ?? null)) return id;
  if (before !== undefined && before.startDate !== null)
    throw new InvalidFieldError(
      "holdout_id",
      "experiment_running",
      "The holdout of a launched experiment cannot change.",
    );
  if (id !== null && findHoldout(t, projectId, id) === undefined)
    throw new InvalidFieldError(
      "holdout_id",
      "does_not_exist",
      `Invalid pk "${id}" - object does not exist.`,
    );
  return id;
}

function savedLinks(
  t: MetadataTx,
  projectId: number,
  sent: readonly { id: number; metadata?: JsonObject | null }[],
): JsonObject[] {
  const known = savedMetricsById(
    t,
    projectId,
    sent.map(({ id }) => id),
  );
  return sent.map(({ id, metadata }) => {
    if (!known.has(id))
      throw new InvalidFieldError(
        "saved_metrics_ids",
        "does_not_exist",
        `Invalid pk "${id}" - object does not exist.`,
      );
    const type = metadata?.type ?? "primary";
    if (type !== "primary" && type !== "secondary" && type !== "guardrail")
      throw new InvalidFieldError(
        "saved_metrics_ids",
        "invalid_input",
        "`metadata.type` must be primary, secondary or guardrail.",
      );
    return { id, metadata: { ...metadata, type } };
  });
}
