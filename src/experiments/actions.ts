/**
 * Creates, changes, launches and ends experiments. Each is one transaction over the experiment and its flag, with an
 * activity entry on each (contract: experiments 1.1 to 1.3).
 */

import type { Static } from "@sinclair/typebox";
import { getCreatorId } from "../accounts/activity.ts";
import type { MetadataTx } from "../accounts/db.ts";
import type { Flag } from "../flags/fields.ts";
import { normalizeTags } from "../flags/rules/tags.ts";
import { getGroups, getVariants } from "../flags/rules/types.ts";
import { findFlagByKey } from "../flags/store/flag.ts";
import { unusedKeyFor } from "../flags/store/flag-keys.ts";
import { createFlag, type FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { EditConflictError, InvalidFieldError, trimmedString } from "../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json.ts";
import { recordExperiment } from "./activity.ts";
import type { conclusions, ExperimentEdit, NewExperimentInput } from "./api/schemas.ts";
import { changeFlag, type ExperimentActor, getFlag, holdoutFilters } from "./flag-changes.ts";
import { checkFilters, readMetrics } from "./metrics.ts";
import { assertTransition, getStatus, type Transition } from "./states.ts";
import {
  type Experiment,
  findHoldout,
  getExperiment,
  insertExperiment,
  type NewExperiment,
  savedMetricsById,
  writeExperiment,
} from "./store.ts";

const variantsMin = 2;
const variantsMax = 20;

type NewInput = Static<typeof NewExperimentInput>;
type EditInput = Static<typeof ExperimentEdit>;

/** Creates a draft, and its flag unless one with the key exists. @throws {InvalidFieldError} */
export function createExperiment(deps: FlagWriteDeps, actor: ExperimentActor, input: NewInput): Experiment {
  const { project, now } = actor;
  const name = trimmedString("name", input.name, 400);
  return deps.metadata.change((t) => {
    const { flag, ownsFlag } = flagOfNew(deps, t, actor, { ...input, name });
    const created = insertExperiment(t, {
      projectId: project.id,
      flagId: flag.id,
      ownsFlag,
      name,
      type: input.type ?? "product",
      ...getColumns(t, project.id, input, undefined),
      createdById: getCreatorId(actor.by),
      createdAt: now,
      updatedAt: now,
    });
    // A flag that was created just now needs no approval.
    const by = ownsFlag ? { ...actor, skipsApproval: true } : actor;
    if (created.holdoutId !== null)
      changeFlag(deps, by, created, holdoutFilters(t, created, created.holdoutId));
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
  const filters =
    input.feature_flag?.filters ?? getFilters(sentVariants, input.parameters?.rollout_percentage);
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
      ensureExperienceContinuity: input.feature_flag?.ensure_experience_continuity ?? false,
    },
  });
  return { flag, ownsFlag: true };
}

function getFilters(variants: Json | undefined, rollout: Json | undefined): JsonObject {
  const evenly = ["control", "test"].map((key): JsonObject => ({ key, rollout_percentage: 50 }));
  return {
    groups: [{ properties: [], rollout_percentage: typeof rollout === "number" ? rollout : 100 }],
    multivariate: { variants: variants ?? evenly },
  };
}

function assertVariants(variants: readonly JsonObject[], field: string): void {
  if (variants.length >= variantsMin && variants.length <= variantsMax) return;
  throw new InvalidFieldError(
    field,
    "invalid_input",
    `An experiment requires a feature flag with ${variantsMin} to ${variantsMax} variants; this one has ${variants.length}.`,
  );
}

/** The columns that a request sets. @throws {InvalidFieldError} */
function getColumns(
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
    const before = getExperiment(t, project.id, id);
    if (typeof input.version === "number" && input.version < before.version)
      throw new EditConflictError(undefined, "experiment");
    const flag = getFlag(t, before);
    if (input.archived !== undefined && input.archived !== before.archived)
      assertTransition(input.archived ? "archive" : "unarchive", getStatus(before, flag.active), before);
    changeVariants(deps, actor, before, flag, input);
    const changed: Partial<NewExperiment> = {
      ...getColumns(t, project.id, input, before),
      ...(input.archived === undefined ? {} : { archived: input.archived }),
      ...(input.deleted === undefined ? {} : { deleted: input.deleted }),
    };
    const holdoutId = changed.holdoutId;
    let after = writeExperiment(t, before, changed, now);
    if (holdoutId !== undefined && holdoutId !== before.holdoutId)
      changeFlag(deps, actor, after, holdoutFilters(t, after, holdoutId));
    recordExperiment(t, after.deleted ? "deleted" : "updated", before, after, actor);
    if (!after.deleted) after = applyDates(deps, t, actor, after, input);
    return after;
  });
}

/** Variants in `parameters` follow the flag; sending back what was read changes nothing. */
function changeVariants(
  deps: FlagWriteDeps,
  actor: ExperimentActor,
  before: Experiment,
  flag: Flag,
  { parameters }: EditInput,
): void {
  const sent = parameters?.feature_flag_variants;
  if (sent === undefined || Bun.deepEquals(sent, getVariants(flag.filters))) return;
  if (before.startDate !== null)
    throw new InvalidFieldError(
      "parameters",
      "experiment_running",
      "Variants of a launched experiment cannot change here; change the percentages of its feature flag.",
    );
  const variants = Array.isArray(sent) ? sent.filter(isJsonObject) : [];
  assertVariants(variants, "parameters");
  const multivariate = isJsonObject(flag.filters.multivariate) ? flag.filters.multivariate : {};
  changeFlag(deps, actor, before, { filters: { multivariate: { ...multivariate, variants: sent } } });
}

/** Dates in a PATCH: PostHog's clients launch and end experiments with them. */
function applyDates(
  deps: FlagWriteDeps,
  t: MetadataTx,
  actor: ExperimentActor,
  of: Experiment,
  { start_date: sentStart, end_date: sentEnd }: Pick<EditInput, "start_date" | "end_date">,
): Experiment {
  const date = (sent: string | null | undefined, before: Date | null) =>
    sent === undefined ? before : sent === null ? null : new Date(sent);
  const startDate = date(sentStart, of.startDate);
  const endDate = date(sentEnd, of.endDate);
  if (startDate?.getTime() === of.startDate?.getTime() && endDate?.getTime() === of.endDate?.getTime())
    return of;
  if (endDate !== null && (startDate === null || endDate <= startDate))
    throw new InvalidFieldError("end_date", "invalid_input", "`end_date` must be after `start_date`.");
  if (of.startDate === null && startDate !== null) {
    assertLaunchable(getFlag(t, of));
    changeFlag(deps, actor, of, { active: true });
  }
  // Only stopped experiments are archived: otherwise no transition would lead out of the archive.
  const archived = of.archived && endDate !== null;
  const after = writeExperiment(t, of, { startDate, endDate, archived }, actor.now);
  recordExperiment(t, "updated", of, after, actor);
  return after;
}

export interface TransitionInput {
  conclusion?: (typeof conclusions)[number] | null | undefined;
  conclusion_comment?: string | null | undefined;
  variant_key?: string | undefined;
  release_to_everyone?: boolean | undefined;
}

/** Moves an experiment to another state. @throws {NotFoundError} @throws {InvalidFieldError} `invalid_transition` */
export function transitExperiment(
  deps: FlagWriteDeps,
  actor: ExperimentActor,
  id: number,
  transition: Transition,
  input: TransitionInput = {},
): Experiment {
  const { project, now } = actor;
  return deps.metadata.change((t) => {
    const before = getExperiment(t, project.id, id);
    const flag = getFlag(t, before);
    assertTransition(transition, getStatus(before, flag.active), before);
    const flagChange = getFlagChange(transition, flag, input);
    if (flagChange !== undefined) changeFlag(deps, actor, before, flagChange);
    const after = writeExperiment(t, before, columnsAfter(transition, before, input, now), now);
    recordExperiment(t, "updated", before, after, actor);
    return after;
  });
}

function columnsAfter(
  transition: Transition,
  before: Experiment,
  input: TransitionInput,
  now: Date,
): Partial<NewExperiment> {
  const concluded = {
    ...(input.conclusion === undefined ? {} : { conclusion: input.conclusion }),
    ...(input.conclusion_comment === undefined ? {} : { conclusionComment: input.conclusion_comment }),
  };
  switch (transition) {
    case "launch":
      return { startDate: now };
    case "end":
      return { endDate: now, ...concluded };
    case "ship_variant":
      return { endDate: before.endDate ?? now, ...concluded };
    case "reset":
      return { startDate: null, endDate: null, conclusion: null, conclusionComment: null, archived: false };
    case "archive":
      return { archived: true };
    case "unarchive":
      return { archived: false };
    default:
      return {};
  }
}

/** The members of a PATCH of the flag; undefined: it stays as it is. */
function getFlagChange(transition: Transition, flag: Flag, input: TransitionInput): JsonObject | undefined {
  switch (transition) {
    case "launch":
      assertLaunchable(flag);
      return { active: true };
    case "pause":
      return { active: false };
    case "resume":
      return { active: true };
    case "ship_variant":
      return { active: true, filters: shippedFilters(flag, input) };
    default:
      return undefined;
  }
}

/** Everyone gets the variant; the former condition sets stay below, and `revert` undoes it. */
function shippedFilters(
  { filters }: Flag,
  { variant_key: key = "", release_to_everyone: isForEveryone = true }: TransitionInput,
): JsonObject {
  const keys = getVariants(filters).map((variant) => String(variant.key));
  if (!keys.includes(key))
    throw new InvalidFieldError(
      "variant_key",
      "invalid_input",
      `The feature flag has no variant "${key}". Its variants: ${keys.join(", ")}.`,
    );
  const groups = getGroups(filters);
  if (!isForEveryone) return { groups: groups.map((group) => ({ ...group, variant: key })) };
  const everyone = { properties: [], rollout_percentage: 100, variant: key };
  return { groups: Bun.deepEquals(groups[0], everyone) ? groups : [everyone, ...groups] };
}

function assertLaunchable({ filters }: Flag): void {
  const variants = getVariants(filters);
  assertVariants(variants, "feature_flag");
  const total = variants.reduce((sum, { rollout_percentage: share }) => sum + Number(share ?? 0), 0);
  if (Math.abs(total - 100) < 1e-6) return;
  throw new InvalidFieldError(
    "feature_flag",
    "invalid_input",
    `The percentages of the variants must total 100; they total ${total}.`,
  );
}
