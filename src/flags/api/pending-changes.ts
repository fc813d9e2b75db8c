/** Stores and applies future changes of flags: at a scheduled time, or after approval. */

import { findOrganization } from "../../accounts/organizations.ts";
import { findUser, getLevel } from "../../accounts/users.ts";
import { InvalidFieldError, PermissionDeniedError } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import type { Flag } from "../fields.ts";
import { getGroups, redactedPayload } from "../rules/types.ts";
import { checkCohortsOfRevived } from "../store/flag-dependencies.ts";
import { canEdit, readFlagPermissions } from "../store/flag-permissions.ts";
import { type FlagWriteDeps, filtersToStore, flagToEdit, writeFlag } from "../store/flag-writes.ts";
import { encryptionWarning } from "../store/payload-history.ts";
import {
  assertNoSecretPayload,
  assertPayloadsKnown,
  type ChangeRequest,
  decideRequest,
  dueChanges,
  findRequest,
  recordExecuted,
  rolloutOperation,
  type ScheduledChange,
  scheduleChange,
} from "../store/pending-changes.ts";
import { assertNoApprovalNeeded, protectedDependents } from "../store/protected-flags.ts";
import { getEdit } from "./feature-flags.ts";

/** A user who acts on a future change. */
export interface Deciding {
  userId: number;
  now: Date;
}

/**
 * @throws {InvalidFieldError} @throws {InvalidFlagError} @throws {HttpError} the change is invalid, or requires approval.
 */
export function scheduleFlagChange(
  deps: FlagWriteDeps,
  flag: Flag,
  change: Pick<ScheduledChange, "payload" | "scheduledAt">,
  { userId, now }: Deciding,
): ScheduledChange {
  assertSchedulable(deps, flag, change, now);
  const { payload, scheduledAt } = change;
  const { projectId, id: flagId } = flag;
  return scheduleChange(deps, {
    projectId,
    flagId,
    payload,
    scheduledAt,
    createdById: userId,
    createdAt: now,
  });
}

/**
 * @throws {InvalidFieldError} @throws {InvalidFlagError} @throws {HttpError} the change is invalid, or requires approval.
 */
export function assertSchedulable(
  deps: FlagWriteDeps,
  flag: Flag,
  { payload, scheduledAt }: Pick<ScheduledChange, "payload" | "scheduledAt">,
  now: Date,
): void {
  const sent = sentBy(payload, flag);
  assertNoApprovalNeeded(deps, flag, getEdit(sent, flag).fields);
  if (scheduledAt <= now) {
    throw new InvalidFieldError("scheduled_at", "invalid_input", "The time must be in the future.");
  }
  assertPossible(deps, flag, sent, "payload");
}

export type FlagRequest = ChangeRequest & { flagId: number };

/** @throws {PermissionDeniedError} the user requested the change. */
export function assertOtherUser(request: ChangeRequest, userId: number): void {
  if (request.createdById === userId)
    throw new PermissionDeniedError("Your own change request requires approval by another user.");
}

/**
 * Applies a requested change.
 *
 * @param checkMayEdit throws if the user may not edit the flag. @throws {PermissionDeniedError}
 * @throws {EditConflictError}
 */
export function approveRequest(
  deps: FlagWriteDeps,
  request: FlagRequest,
  { userId, now }: Deciding,
  checkMayEdit: (flag: Flag) => void,
): { decided: ChangeRequest; flag: Flag; warnings: string[] } {
  assertOtherUser(request, userId);
  let isTurnedOn = false;
  const target = {
    projectId: request.projectId,
    id: request.flagId,
    by: getApprover(deps, request, userId),
    now,
  };
  const flag = deps.metadata.change((t) => {
    const before = flagToEdit(t, target);
    checkMayEdit(before);
    // A change of a flag also changes the flags that depend on it.
    for (const dependent of protectedDependents(deps, { projectId: target.projectId, flagIds: [target.id] }))
      checkMayEdit(dependent);
    decideRequest(deps, request, "applied", userId, now);
    const { version, original, note } = request;
    assertPayloadsKnown(request.changes);
    const originalFlag = withPayloadsOf(original, deps.payloads.open(before));
    isTurnedOn = !before.hasEncryptedPayloads;
    const edit = { ...getEdit(request.changes, before), version, originalFlag, note };
    return writeFlag(deps, t, before, edit, target);
  });
  isTurnedOn &&= flag.hasEncryptedPayloads === true;
  // Read again: a request that turns encryption on has lost its payloads by now.
  const decided = findRequest(deps.metadata.db, request.projectId, request.id);
  return { decided, flag, warnings: isTurnedOn ? [encryptionWarning] : [] };
}

/** The approver as the author of a requested change; the activity also names the requester. */
export function getApprover(
  { metadata: { db } }: Pick<FlagWriteDeps, "metadata">,
  request: ChangeRequest,
  userId: number,
) {
  const proposer = findUser(db, request.createdById);
  return {
    userId,
    job_type: "change_request",
    job_id: String(request.id),
    payload: {},
    proposed_by:
      proposer === undefined
        ? null
        : { first_name: proposer.firstName, last_name: proposer.lastName, email: proposer.email },
  };
}

/** The flag at the time of the request: hidden payloads cannot be part of the change, so the current ones are used. */
function withPayloadsOf(original: JsonObject, present: JsonObject): JsonObject {
  const { filters } = original;
  if (!isJsonObject(filters) || !isJsonObject(filters.payloads) || !isJsonObject(present.payloads))
    return original;
  if (!Object.values(filters.payloads).includes(redactedPayload)) return original;
  return { ...original, filters: { ...filters, payloads: present.payloads } };
}

/** Rejects a change request, or withdraws the user's own. @throws {InvalidFieldError} it is already decided. */
export function rejectRequest(
  deps: FlagWriteDeps,
  request: ChangeRequest,
  { userId, now }: Deciding,
): ChangeRequest {
  const state = request.createdById === userId ? "withdrawn" : "rejected";
  return decideRequest(deps, request, state, userId, now);
}

/** Whether `runScheduledChanges` has due changes. */
export function hasDueChanges(
  { metadata: { db } }: Pick<FlagWriteDeps, "metadata">,
  now = new Date(),
): boolean {
  return dueChanges(db, now).length > 0;
}

/** Applies the scheduled changes that are due. Returns the number of attempts. */
export function runScheduledChanges(deps: FlagWriteDeps, now = new Date()): number {
  const due = dueChanges(deps.metadata.db, now);
  for (const change of due) {
    const { projectId, flagId: id, payload, createdById } = change;
    const by = {
      job_type: "scheduled_change",
      job_id: String(change.id),
      payload: { created_by_id: createdById },
    };
    try {
      deps.metadata.change((t) => {
        const before = flagToEdit(t, { projectId, id });
        const sent = sentBy(payload, before);
        assertStillAllowed(deps, before, createdById);
        assertNoApprovalNeeded(deps, before, getEdit(sent, before).fields);
        // In the transaction of the change: it is applied once, even if the process crashes.
        recordExecuted(deps, change.id, now, null);
        assertPayloadsKnown(sent);
        writeFlag(deps, t, before, getEdit(sent, before), { by, now });
      });
    } catch (error) {
      recordExecuted(deps, change.id, now, (error as Error).message.slice(0, 1_000));
    }
  }
  return due.length;
}

/** @throws {PermissionDeniedError} @throws {HttpError} */
function assertStillAllowed(deps: FlagWriteDeps, flag: Flag, userId: number): void {
  const project = deps.metadata.projects.find(flag.projectId);
  if (flag.deleted || project?.archivedAt !== null)
    throw new PermissionDeniedError("The flag or its project was deleted.");
  assertEditor(deps, flag, userId, "The author no longer has permission to edit the flag.");
}

/** @throws {PermissionDeniedError} with this message. */
export function assertEditor(deps: FlagWriteDeps, flag: Flag, userId: number, sentence: string): void {
  const { organization, db } = assertMember(deps, flag.projectId, userId, sentence);
  if (!canEdit(readFlagPermissions(db, organization, userId), flag))
    throw new PermissionDeniedError(sentence);
}

/** Requires an active member of the project's organization. @throws {PermissionDeniedError} with this message. */
export function assertMember(
  { metadata }: FlagWriteDeps,
  projectId: number,
  userId: number,
  sentence: string,
) {
  const { db, projects } = metadata;
  const project = projects.find(projectId);
  const organization = project && findOrganization(db, project.organizationId);
  const isMember = organization !== undefined && getLevel(db, organization.id, userId) > 0;
  if (!isMember || !findUser(db, userId)?.isActive) throw new PermissionDeniedError(sentence);
  return { db, organization };
}

/** Checks that the change is currently valid. @throws {InvalidFieldError} @throws {InvalidFlagError} */
export function assertPossible(deps: FlagWriteDeps, flag: Flag, sent: JsonObject, field: string): void {
  assertNoSecretPayload(flag, sent, field);
  const { fields } = getEdit(sent, flag);
  const { db } = deps.metadata;
  const filters = filtersToStore(deps, db, flag.projectId, flag, { ...fields, key: fields.key ?? flag.key });
  checkCohortsOfRevived(db, flag, fields, filters);
}

/** The PATCH for a scheduled change. @throws {InvalidFieldError} */
function sentBy({ operation, value }: JsonObject, flag: Flag): JsonObject {
  if (operation === "update_status" && typeof value === "boolean") return { active: value };
  if (operation === "update" && isJsonObject(value)) return value;
  if (operation === "add_release_condition" && isJsonObject(value)) {
    const groups = [...getGroups(flag.filters), ...getGroups(value)] as Json[];
    return { filters: { groups } };
  }
  if (operation === rolloutOperation && isJsonObject(value)) return rolloutStep(flag, value);
  throw new InvalidFieldError("payload", "invalid_input", "Unknown `operation`, or `value` is missing.");
}

/** One step of a gradual rollout: the percentage of one condition set. @throws {InvalidFieldError} */
function rolloutStep(
  { filters }: Flag,
  { condition_index: index, rollout_percentage: percentage }: JsonObject,
): JsonObject {
  const fail = (message: string) => new InvalidFieldError("payload", "invalid_input", message);
  if (typeof percentage !== "number" || !(percentage >= 0 && percentage <= 100))
    throw fail("`rollout_percentage` must be a number from 0 to 100.");
  const groups = getGroups(filters);
  const group = typeof index === "number" ? groups[index] : undefined;
  if (group === undefined)
    throw fail(`The flag has no condition set with the index ${JSON.stringify(index)}.`);
  const changed = { ...group, rollout_percentage: percentage };
  return { filters: { groups: groups.map((other) => (other === group ? changed : other)) as Json[] } };
}
