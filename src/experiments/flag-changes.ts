/** Changes of flags by experiments, early access features and surveys (contract: experiments 1.1). */

import type { Author } from "../accounts/activity.ts";
import type { MetadataTx, Reading } from "../accounts/db.ts";
import { allows, type KeyRestrictions } from "../accounts/limits.ts";
import { editByActor, type FlagActor } from "../flags/api/feature-flags.ts";
import type { Flag } from "../flags/fields.ts";
import { getVariants } from "../flags/rules/types.ts";
import { findFlag } from "../flags/store/flag.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { InvalidFieldError, NotFoundError, PermissionDeniedError } from "../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../lib/json/value.ts";
import { type Experiment, findHoldout } from "./store.ts";

/** Who acts on experiments of a project. */
export interface ExperimentActor extends FlagActor {
  by: Author;
  /** Of the key or session; undefined: the operator. */
  limits: KeyRestrictions | undefined;
  skipsApproval?: boolean | undefined;
}

const variantsMin = 2;
export const variantsMax = 20;

/** `filters.holdout` of the flag for a holdout, or null to remove it. */
export function holdoutFilters(
  t: MetadataTx,
  experiment: Pick<Experiment, "projectId">,
  holdoutId: number | null,
): { filters: { holdout: JsonObject | null } } {
  const holdout = holdoutId === null ? undefined : findHoldout(t, experiment.projectId, holdoutId);
  const percentage = holdout?.filters[0]?.rollout_percentage;
  return {
    filters: {
      holdout: holdout === undefined ? null : { id: holdout.id, exclusion_percentage: percentage ?? 0 },
    },
  };
}

/**
 * Changes the flag of an experiment.
 *
 * A flag that existed before the experiment also requires the scope of flags: otherwise a launch would bypass access
 * to flags. @throws {PermissionDeniedError}
 */
export function changeFlag(
  deps: FlagWriteDeps,
  actor: ExperimentActor,
  experiment: Pick<Experiment, "flagId" | "ownsFlag">,
  sent: JsonObject,
): void {
  assertFlagScope(actor, experiment);
  const flag = findFlag(deps.metadata.db, actor.project.id, experiment.flagId);
  if (flag?.deleted)
    throw new InvalidFieldError(
      "feature_flag",
      "invalid_input",
      "The feature flag is deleted. Restore it first.",
    );
  // After an approved change request has made the same change, the request needs no other one.
  const skipsApproval = actor.skipsApproval || (flag !== undefined && isUnchanged(flag, sent));
  try {
    editByActor(deps, { ...actor, skipsApproval }, experiment.flagId, sent);
  } catch (error) {
    if (!(error instanceof PermissionDeniedError) || error.code !== "approval_required") throw error;
    throw new PermissionDeniedError(
      `Changes of the flag "${flag?.key}" need approval: create a change request for it with POST …/change_requests/, and repeat this request when it is applied.`,
      error.code,
    );
  }
}

/** @throws {PermissionDeniedError} */
export function assertFlagScope(
  { limits }: ExperimentActor,
  { ownsFlag }: Pick<Experiment, "ownsFlag">,
): void {
  if (limits === undefined || ownsFlag || allows(limits.scopes, "feature_flag:write")) return;
  throw new PermissionDeniedError(
    "The feature flag existed before this experiment: changing it also requires the scope feature_flag:write.",
  );
}

/** Whether a flag already is as a request would leave it. */
function isUnchanged(
  { active, filters }: Flag,
  { active: isOn = active, filters: set = {}, ...more }: JsonObject,
) {
  const parts = isJsonObject(set) ? Object.entries(set) : [];
  return (
    isOn === active &&
    Object.keys(more).length === 0 &&
    parts.every(([name, value]) => Bun.deepEquals(filters[name] ?? null, value))
  );
}

/** A flag that a request links an object to. @throws {InvalidFieldError} the text of PostHog. */
export function getLinkedFlag(t: Reading, projectId: number, id: number, field: string): Flag {
  const flag = findFlag(t, projectId, id);
  if (flag === undefined || flag.deleted)
    throw new InvalidFieldError(field, "invalid_input", "Feature Flag with this ID does not exist");
  return flag;
}

/** The flag of an experiment or feature. @throws {NotFoundError} it was removed. */
export function getFlag(t: Reading, { projectId, flagId }: Pick<Experiment, "projectId" | "flagId">): Flag {
  const flag = findFlag(t, projectId, flagId);
  if (flag === undefined) throw new NotFoundError();
  return flag;
}

/** Variants of `parameters`, which PostHog's clients send with `split_percent` as the percentage. */
export function readVariants(sent: Json): Json {
  if (!Array.isArray(sent)) return sent;
  return sent.map((variant) => {
    if (!isJsonObject(variant) || variant.split_percent === undefined) return variant;
    const { split_percent: share, ...others } = variant;
    return { ...others, rollout_percentage: share };
  });
}

/** Whether an experiment can use a flag with these variants. @throws {InvalidFieldError} */
export function assertVariants(variants: readonly JsonObject[], field: string): void {
  if (variants.length >= variantsMin && variants.length <= variantsMax) return;
  throw new InvalidFieldError(
    field,
    "invalid_input",
    `An experiment requires a feature flag with ${variantsMin} to ${variantsMax} variants; this one has ${variants.length}.`,
  );
}

/** Whether an experiment with this flag can start. @throws {InvalidFieldError} */
export function assertLaunchable({ filters }: Flag): void {
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
