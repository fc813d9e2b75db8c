/** Change requests for cohorts that protected flags use (contract: management-api 5.19). */

import { checkScopes } from "../../accounts/api/guard.ts";
import type { ProjectCall } from "../../accounts/api/routes.ts";
import { type CohortDeps, fillChanged, readCohortChange } from "../../cohorts/api/cohorts.ts";
import { type Cohort, findCohort, updateCohort } from "../../cohorts/cohorts.ts";
import { EditConflict, InvalidField } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { FlagWriting } from "../store/flag-writes.ts";
import { type ChangeRequest, decideRequest, type RequestTarget } from "../store/pending-changes.ts";
import { protectedDependents } from "../store/protected-flags.ts";
import { checkMayEdit, flagAnswers } from "./feature-flags.ts";
import { assertOtherUser } from "./later-changes.ts";

type Deps = FlagWriting & CohortDeps;
export type CohortRequest = ChangeRequest & { cohortId: number };

export function isCohortRequest(request: ChangeRequest): request is CohortRequest {
  return request.cohortId !== null;
}

/**
 * The cohort as the target of a change request that could be made now.
 *
 * @throws {InvalidField} no such cohort, or the change is not valid. @throws {HttpFailure} the caller may not change cohorts.
 */
export async function cohortTarget(
  deps: Deps,
  call: ProjectCall<unknown>,
  cohortId: number,
  changes: JsonObject,
): Promise<RequestTarget> {
  checkScopes(call.limits, ["cohort:write"]);
  const { db } = deps.metadata;
  const cohort = findCohort(db, call.project.id, cohortId);
  if (cohort === undefined)
    throw new InvalidField(
      "cohort_id",
      "does_not_exist",
      `Invalid pk "${cohortId}" - object does not exist.`,
    );
  const change = await readCohortChange(changes, cohort, { isPartial: true });
  undone(deps, () => updateCohort(deps.metadata, ofCall(call, cohortId), change.fields, call.now));
  return { projectId: call.project.id, flagId: null, cohortId, version: 0, original: originalOf(cohort) };
}

/**
 * Applies a requested change of a cohort.
 *
 * @throws {NotPermitted} own request, or a protected flag may not be edited. @throws {EditConflict} the fields were changed since.
 */
export async function approveCohortRequest(
  deps: Deps,
  call: ProjectCall<unknown>,
  request: CohortRequest,
): Promise<ChangeRequest> {
  assertOtherUser(request, call.user.id);
  assertMayDecide(deps, call, request);
  const { cohortId, projectId } = request;
  const before = findCohort(deps.metadata.db, projectId, cohortId, { includeDeleted: true })!;
  const change = await readCohortChange(request.changes, before, { isPartial: true });
  const { decided, after } = deps.metadata.change(() => {
    const decided = decideRequest(deps, request, "applied", call.user.id, call.now);
    const present = originalOf(findCohort(deps.metadata.db, projectId, cohortId, { includeDeleted: true })!);
    const names = Object.keys(change.fields).map((name) => (name === "isStatic" ? "is_static" : name));
    if (!names.every((name) => isSame(present, request.original, name))) throw new EditConflict(undefined);
    return { decided, after: updateCohort(deps.metadata, ofCall(call, cohortId), change.fields, call.now) };
  });
  await fillChanged(deps, after, change);
  return decided;
}

/** @throws {HttpFailure} @throws {NotPermitted} the caller may not change cohorts, or not each protected flag that uses it. */
export function assertMayDecide(
  deps: Deps,
  call: ProjectCall<unknown>,
  { projectId, cohortId }: CohortRequest,
): void {
  checkScopes(call.limits, ["cohort:write"]);
  const answers = flagAnswers(deps, call);
  for (const flag of protectedDependents(deps, { projectId, cohortIds: [cohortId] }))
    checkMayEdit(answers, flag);
}

const ofCall = (call: ProjectCall<unknown>, id: number) => ({
  projectId: call.project.id,
  id,
  by: call.user.id,
});

/** What a change of the cohort can write, in the names of the API. */
function originalOf({ name, description, filters, isStatic, deleted, groups, query }: Cohort): JsonObject {
  return { name, description, filters, is_static: isStatic, deleted, groups, query };
}

const isSame = (one: JsonObject, other: JsonObject, name: string) =>
  Bun.deepEquals(one[name] ?? null, other[name] ?? null);

class Undone extends Error {}

/** Tries a change in a transaction that is rolled back. @throws what the change throws. */
function undone({ metadata }: Pick<Deps, "metadata">, change: () => void): void {
  try {
    metadata.change(() => {
      change();
      throw new Undone();
    });
  } catch (error) {
    if (!(error instanceof Undone)) throw error;
  }
}
