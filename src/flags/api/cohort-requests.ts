/** Change requests for cohorts that protected flags use (contract: management-api 5.19). */

import { type CohortDeps, fillChanged, readCohortChange } from "../../cohorts/api/cohorts.ts";
import { type Cohort, type CohortFields, findCohort, updateCohort } from "../../cohorts/cohorts.ts";
import { EditConflictError, InvalidFieldError } from "../../lib/errors.ts";
import type { JsonObject } from "../../lib/json/value.ts";
import type { Flag } from "../fields.ts";
import type { FlagWriteDeps } from "../store/flag-writes.ts";
import { type ChangeRequest, decideRequest, type RequestTarget } from "../store/pending-changes.ts";
import { protectedDependents } from "../store/protected-flags.ts";
import { assertOtherUser, type Deciding, getApprover } from "./pending-changes.ts";

type Deps = FlagWriteDeps & CohortDeps;
export type CohortRequest = ChangeRequest & { cohortId: number };

export function isCohortRequest(request: ChangeRequest): request is CohortRequest {
  return request.cohortId !== null;
}

/**
 * The cohort as the target of a valid change request.
 *
 * @throws {InvalidFieldError} the cohort does not exist, or the change is invalid.
 */
export async function cohortTarget(
  deps: Deps,
  { projectId, userId, now }: Deciding & { projectId: number },
  cohortId: number,
  changes: JsonObject,
): Promise<RequestTarget> {
  const cohort = findCohort(deps.metadata.db, projectId, cohortId);
  if (cohort === undefined)
    throw new InvalidFieldError(
      "cohort_id",
      "does_not_exist",
      `Invalid pk "${cohortId}" - object does not exist.`,
    );
  const change = await readCohortChange(changes, cohort, { isPartial: true });
  undone(deps, () =>
    updateCohort(deps.metadata, { projectId, id: cohortId, by: userId }, change.fields, now),
  );
  return { projectId, flagId: null, cohortId, version: 0, original: getOriginal(cohort) };
}

/**
 * Applies a requested change of a cohort, except for the members that it adds.
 *
 * @param fields of the requested change. @param checkMayEdit throws if the user may not edit the flag.
 * @throws {PermissionDeniedError} own request, or a protected flag may not be edited. @throws {EditConflictError} the
 * fields have changed since.
 */
function approveCohortRequest(
  deps: FlagWriteDeps,
  request: CohortRequest,
  fields: Partial<CohortFields>,
  { userId, now }: Deciding,
  checkMayEdit: (flag: Flag) => void,
): { decided: ChangeRequest; cohort: Cohort } {
  assertOtherUser(request, userId);
  const { cohortId: id, projectId } = request;
  return deps.metadata.change((t) => {
    checkProtected(deps, request, checkMayEdit);
    const decided = decideRequest(deps, request, "applied", userId, now);
    const present = getOriginal(findCohort(t, projectId, id, { includeDeleted: true })!);
    const names = Object.keys(fields).map((name) => (name === "isStatic" ? "is_static" : name));
    if (!names.every((name) => isSame(present, request.original, name)))
      throw new EditConflictError(undefined);
    const target = { projectId, id, by: getApprover(deps, request, userId) };
    return { decided, cohort: updateCohort(deps.metadata, target, fields, now) };
  });
}

/** The same with the members that the change adds; starts their calculation. */
export async function approveWithMembers(
  deps: Deps,
  request: CohortRequest,
  deciding: Deciding,
  checkMayEdit: (flag: Flag) => void,
): Promise<ChangeRequest> {
  const { cohortId, projectId, changes } = request;
  const before = findCohort(deps.metadata.db, projectId, cohortId, { includeDeleted: true })!;
  const change = await readCohortChange(changes, before, { isPartial: true });
  const { decided, cohort } = approveCohortRequest(deps, request, change.fields, deciding, checkMayEdit);
  await fillChanged(deps, cohort, change);
  return decided;
}

/** Checks each protected flag that uses the cohort. */
export function checkProtected(
  deps: Pick<Deps, "metadata">,
  { projectId, cohortId }: CohortRequest,
  checkMayEdit: (flag: Flag) => void,
): void {
  for (const flag of protectedDependents(deps, { projectId, cohortIds: [cohortId] })) checkMayEdit(flag);
}

/** Fields of the cohort that a change can write, with the names of the API. */
function getOriginal({ name, description, filters, isStatic, deleted, groups, query }: Cohort): JsonObject {
  return { name, description, filters, is_static: isStatic, deleted, groups, query };
}

const isSame = (item: JsonObject, other: JsonObject, name: string) =>
  Bun.deepEquals(item[name] ?? null, other[name] ?? null);

class RolledBackError extends Error {}

/** Tries a change in a transaction that is rolled back. @throws errors of the change. */
function undone({ metadata }: Pick<Deps, "metadata">, change: () => void): void {
  try {
    metadata.change(() => {
      change();
      throw new RolledBackError();
    });
  } catch (error) {
    if (!(error instanceof RolledBackError)) throw error;
  }
}
