/**
 * Who may set a guardrail that rolls back: a rollback needs no approval, so the user who sets its guardrail must be
 * allowed to change the flag (contract: experiments 2.8).
 */

import type { Reading } from "../accounts/db.ts";
import { checkMayEdit, flagAnswers } from "../flags/api/feature-flags.ts";
import type { FlagWriteDeps } from "../flags/store/flag-writes.ts";
import { needsApproval } from "../flags/store/protected-flags.ts";
import { PermissionDeniedError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { assertFlagScope, type ExperimentActor, getFlag } from "./flag-changes.ts";
import { rollbackGuardrails } from "./roled-metrics.ts";
import { type Experiment, experimentsWithMetric } from "./store.ts";

/** The guardrails of an experiment that roll back, as their metrics. */
export function readRollbacks(db: Reading, experiment: Experiment): JsonObject[] {
  return rollbackGuardrails(db, experiment).map(({ metric }) => metric);
}

/**
 * Rejects guardrails that a request added or changed.
 *
 * @param before those before the request. @throws {PermissionDeniedError} the actor may not change the flag, or only
 * after approval.
 */
export function assertMayRollBack(
  deps: FlagWriteDeps,
  db: Reading,
  actor: ExperimentActor,
  experiment: Experiment,
  before: readonly JsonObject[],
): void {
  const isNew = (metric: JsonObject) => !before.some((item) => Bun.deepEquals(item, metric));
  if (experiment.deleted || !readRollbacks(db, experiment).some(isNew)) return;
  assertFlagScope(actor, experiment);
  const flag = getFlag(db, experiment);
  checkMayEdit(flagAnswers(deps, actor), flag);
  // A flag that is off is switched on by an approved change.
  if (actor.user === undefined || actor.skipsApproval || !flag.active || !needsApproval(deps, flag)) return;
  throw new PermissionDeniedError(
    `A guardrail that rolls back the flag "${flag.key}" needs approval: create a change request that adds it to \`rollback_conditions\` of the flag, as an \`experiment_metric\`.`,
    "approval_required",
  );
}

/** Runs a change of a saved metric, which changes the guardrails of its experiments. @throws {PermissionDeniedError} */
export function changeSavedGuardrail<Result>(
  deps: FlagWriteDeps,
  db: Reading,
  actor: ExperimentActor,
  id: number,
  change: () => Result,
): Result {
  const before = experimentsWithMetric(db, actor.project.id, id).map(
    (experiment) => [experiment, readRollbacks(db, experiment)] as const,
  );
  const result = change();
  for (const [experiment, rollbacks] of before) assertMayRollBack(deps, db, actor, experiment, rollbacks);
  return result;
}
