/**
 * Creates and changes experiments. Each is one transaction over the experiment and its flag, with an
 * activity entry on each (contract: experiments 1.1 to 1.3).
 */

import { getCreatorId } from "../accounts/activity.ts";
import type { MetadataTx } from "../accounts/db.ts";
import type { Flag } from "../flags/fields.ts";
import { getVariants } from "../flags/rules/types.ts";
import { findFlagByKey } from "../flags/store/flag.ts";
import { unusedKeyFor } from "../flags/store/flag-limits.ts";
import { createFlag, type FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { EditConflictError, InvalidFieldError, trimmedString } from "../lib/errors.ts";
import { isJsonObject, type JsonObject } from "../lib/json/value.ts";
import { recordExperiment } from "./activity.ts";
import { assertExcludable, type EditInput, getColumns, type NewInput } from "./fields.ts";
import {
  assertLaunchable,
  assertVariants,
  changeFlag,
  type ExperimentActor,
  getFlag,
  getLinkedFlag,
  holdoutFilters,
  readVariants,
} from "./flag-changes.ts";
import { changeFlagConfig } from "./flag-config.ts";
import { assertMayRollBack, readRollbacks } from "./guardrail-access.ts";
import {
  type Experiment,
  findHoldout,
  getExperiment,
  getStatus,
  getStoredExperiment,
  insertExperiment,
  type NewExperiment,
  writeExperiment,
} from "./store.ts";
import { assertTransition } from "./transitions.ts";
import { variantKeys } from "./variants.ts";

/** Creates a draft, and its flag unless one with the key exists. @throws {InvalidFieldError} */
export function createExperiment(deps: FlagWriteDeps, actor: ExperimentActor, input: NewInput): Experiment {
  const { project, now } = actor;
  const name = trimmedString("name", input.name, 400);
  return deps.metadata.change((t) => {
    const { flag, ownsFlag } = flagOfNew(deps, t, actor, { ...input, name });
    const columns = getColumns(t, project.id, input, undefined);
    assertExcludable(columns, variantKeys(flag.filters));
    const created = insertExperiment(t, {
      projectId: project.id,
      flagId: flag.id,
      ownsFlag,
      name,
      type: input.type ?? "product",
      ...columns,
      createdById: getCreatorId(actor.by),
      createdAt: now,
      updatedAt: now,
    });
    // A flag that was created just now needs no approval.
    const by = ownsFlag ? { ...actor, skipsApproval: true } : actor;
    if (created.holdoutId !== null)
      changeFlag(deps, by, created, holdoutFilters(t, created, created.holdoutId));
    assertMayRollBack(deps, t, by, created, []);
    recordExperiment(t, "created", undefined, created, actor);
    return input.start_date || input.end_date ? applyDates(deps, t, actor, created, input) : created;
  });
}

/** The flag that a new experiment uses. */
function flagOfNew(
  deps: FlagWriteDeps,
  t: MetadataTx,
  { project, by, now }: ExperimentActor,
  input: NewInput,
): { flag: Flag; ownsFlag: boolean } {
  const key = input.feature_flag_key ?? unusedKeyFor(t, project.id, input.name);
  const sentVariants = isJsonObject(input.parameters) ? input.parameters.feature_flag_variants : undefined;
  const existing = findFlagByKey(t, project.id, key);
  if (existing !== undefined) {
    assertVariants(getVariants(existing.filters), "feature_flag_key");
    return { flag: existing, ownsFlag: false };
  }
  if (input.feature_flag?.filters !== undefined && sentVariants !== undefined)
    throw new InvalidFieldError(
      "feature_flag",
      "invalid_input",
      "Send the variants either in `feature_flag.filters` or in `parameters.feature_flag_variants`.",
    );
  const filters = input.feature_flag?.filters ?? getFilters(input.parameters ?? {});
  assertVariants(
    getVariants(filters),
    input.feature_flag?.filters === undefined ? "parameters" : "feature_flag",
  );
  const flag = createFlag(deps, {
    projectId: project.id,
    by,
    now,
    createsUsageDashboard: false,
    fields: {
      key,
      name: `Feature flag of the experiment ${input.name}`,
      filters,
      active: false,
      creationContext: input.type === "web" ? "web_experiments" : "experiments",
      ensureExperienceContinuity:
        input.feature_flag?.ensure_experience_continuity ??
        input.parameters?.ensure_experience_continuity === true,
    },
  });
  return { flag, ownsFlag: true };
}

/** Filters from PostHog's older members of `parameters`. */
function getFilters({
  feature_flag_variants: variants,
  rollout_percentage: rollout,
  aggregation_group_type_index: groupType,
  feature_flag_payloads: payloads,
}: JsonObject): JsonObject {
  const evenly = ["control", "test"].map((key): JsonObject => ({ key, rollout_percentage: 50 }));
  return {
    groups: [{ properties: [], rollout_percentage: rollout ?? 100 }],
    multivariate: { variants: variants === undefined ? evenly : readVariants(variants) },
    ...(typeof groupType === "number" ? { aggregation_group_type_index: groupType } : {}),
    ...(isJsonObject(payloads) ? { payloads } : {}),
  };
}

/**
 * Changes an experiment; dates launch, end or reset it.
 *
 * @throws {NotFoundError} @throws {InvalidFieldError} @throws {EditConflictError} another user changed it since.
 */
export function updateExperiment(
  deps: FlagWriteDeps,
  actor: ExperimentActor,
  id: number,
  input: EditInput,
): Experiment {
  const { project, now } = actor;
  return deps.metadata.change((t) => {
    const before =
      input.deleted === false ? getStoredExperiment(t, project.id, id) : getExperiment(t, project.id, id);
    if (typeof input.version === "number" && input.version < before.version)
      throw new EditConflictError(undefined, "experiment");
    const flag = before.deleted
      ? getLinkedFlag(t, project.id, before.flagId, "feature_flag")
      : getFlag(t, before);
    if (input.archived !== undefined && input.archived !== before.archived)
      assertTransition(input.archived ? "archive" : "unarchive", getStatus(before, flag.active), before);
    changeFlagConfig(deps, actor, before, flag, input);
    const changed: Partial<NewExperiment> = {
      ...getColumns(t, project.id, input, before),
      ...(input.archived === undefined ? {} : { archived: input.archived }),
      ...(input.deleted === undefined ? {} : { deleted: input.deleted }),
    };
    if (changed.excludedVariants !== undefined || changed.statsConfig !== undefined) {
      const variants = variantKeys(getFlag(t, before).filters);
      // Stored ones may have been removed from the flag, which has no effect.
      const excludedVariants =
        changed.excludedVariants ?? before.excludedVariants.filter((key) => variants.includes(key));
      assertExcludable({ ...before, ...changed, excludedVariants }, variants);
    }
    const holdoutId = changed.holdoutId;
    // Those of a deleted experiment are not in effect, and were not checked when they changed.
    const rollbacks = before.deleted ? [] : readRollbacks(t, before);
    let after = writeExperiment(t, before, changed, now);
    if (holdoutId !== undefined && holdoutId !== before.holdoutId)
      changeFlag(deps, actor, after, holdoutFilters(t, after, holdoutId));
    else if (before.deleted && !after.deleted && after.endDate === null)
      restoreHoldout(deps, t, actor, after);
    assertMayRollBack(deps, t, actor, after, rollbacks);
    recordExperiment(t, after.deleted ? "deleted" : "updated", before, after, actor);
    if (!after.deleted) after = applyDates(deps, t, actor, after, input);
    return after;
  });
}

/** Writes a holdout into the flag that was changed or deleted while the experiment was deleted. */
function restoreHoldout(
  deps: FlagWriteDeps,
  t: MetadataTx,
  actor: ExperimentActor,
  experiment: Experiment,
): void {
  const { holdout: current = null } = getFlag(t, experiment).filters;
  const sent = holdoutFilters(t, experiment, experiment.holdoutId);
  if (Bun.deepEquals(current, sent.filters.holdout)) return;
  // A holdout that exists is another experiment's on the same flag, or was sent with the flag.
  const isForeign =
    experiment.holdoutId === null &&
    isJsonObject(current) &&
    findHoldout(t, experiment.projectId, Number(current.id)) !== undefined;
  if (!isForeign) changeFlag(deps, actor, experiment, sent);
}

/** Dates in a PATCH: PostHog's clients launch and end experiments with them. */
function applyDates(
  deps: FlagWriteDeps,
  t: MetadataTx,
  actor: ExperimentActor,
  experiment: Experiment,
  { start_date: sentStart, end_date: sentEnd }: Pick<EditInput, "start_date" | "end_date">,
): Experiment {
  const date = (sent: string | null | undefined, before: Date | null) =>
    sent === undefined ? before : sent === null ? null : new Date(sent);
  const startDate = date(sentStart, experiment.startDate);
  const endDate = date(sentEnd, experiment.endDate);
  if (
    startDate?.getTime() === experiment.startDate?.getTime() &&
    endDate?.getTime() === experiment.endDate?.getTime()
  )
    return experiment;
  if (endDate !== null && (startDate === null || endDate <= startDate))
    throw new InvalidFieldError("end_date", "invalid_input", "`end_date` must be after `start_date`.");
  if (experiment.startDate === null && startDate !== null) {
    assertLaunchable(getFlag(t, experiment));
    changeFlag(deps, actor, experiment, { active: true });
  }
  // Only stopped experiments are archived: otherwise no transition would lead out of the archive.
  const archived = experiment.archived && endDate !== null;
  const after = writeExperiment(t, experiment, { startDate, endDate, archived }, actor.now);
  recordExperiment(t, "updated", experiment, after, actor);
  return after;
}
