/** Columns of an experiment from the members of a request. */

import type { Static } from "@sinclair/typebox";
import type { MetadataTx } from "../accounts/db.ts";
import { normalizeTags } from "../flags/rules/key.ts";
import { InvalidFieldError, trimmedString } from "../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import type { ExperimentEdit, NewExperimentInput } from "./api/schemas.ts";
import { checkFilters, readMetrics } from "./metrics.ts";
import { type Experiment, findHoldout, type NewExperiment, savedMetricsById } from "./store.ts";
import { baselineKey } from "./variants.ts";

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
    const { feature_flag_variants: _, excluded_variants: excluded, ...others } = input.parameters ?? {};
    changed.parameters = others;
    // Older clients of PostHog send them there.
    if (excluded !== undefined) changed.excludedVariants = readKeys(excluded);
  }
  if (input.excluded_variants !== undefined)
    changed.excludedVariants = [...new Set(input.excluded_variants ?? [])];
  if (input.primary_metrics_ordered_uuids !== undefined)
    changed.primaryMetricsOrder = input.primary_metrics_ordered_uuids;
  if (input.secondary_metrics_ordered_uuids !== undefined)
    changed.secondaryMetricsOrder = input.secondary_metrics_ordered_uuids;
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

function readKeys(sent: Json): string[] {
  if (sent === null) return [];
  if (Array.isArray(sent) && sent.every((key) => typeof key === "string")) return [...new Set(sent)];
  throw invalidExclusion("excluded_variants must be a list of strings");
}

/** @throws {InvalidFieldError} the texts of PostHog: results compare at least one variant with the baseline. */
export function assertExcludable(
  { excludedVariants: excluded = [], statsConfig = {} }: Partial<NewExperiment>,
  variants: readonly string[],
): void {
  if (excluded.length === 0) return;
  const holdouts = excluded.filter((key) => key.startsWith("holdout-"));
  if (holdouts.length > 0)
    throw invalidExclusion(`cannot exclude holdout pseudo-variants: ${holdouts.join(", ")}`);
  const baseline = baselineKey(statsConfig, variants);
  if (excluded.includes(baseline))
    throw invalidExclusion(`baseline variant cannot be excluded ('${baseline}')`);
  const unknown = excluded.filter((key) => !variants.includes(key));
  if (unknown.length > 0)
    throw invalidExclusion(`unknown variants for this experiment: ${unknown.join(", ")}`);
  if (excluded.length + 1 === variants.length)
    throw invalidExclusion("at least one test variant must remain in analysis");
}

const invalidExclusion = (detail: string) =>
  new InvalidFieldError("excluded_variants", "invalid_input", detail);

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
