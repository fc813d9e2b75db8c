/** How changes of flags for later are kept and made: at their time, or when somebody else agrees. */

import { findOrganization } from "../../accounts/organizations.ts";
import { findUser, levelOf } from "../../accounts/users.ts";
import { InvalidField, NotPermitted } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import type { Flag } from "../fields.ts";
import { groupsOf, redactedPayload } from "../rules/types.ts";
import { checkCohortsOfRevived } from "../store/flag-dependencies.ts";
import { canEdit, readFlagPermissions } from "../store/flag-permissions.ts";
import { editFlag, type FlagWriting, filtersToStore } from "../store/flag-writes.ts";
import { encryptionWarning } from "../store/payload-history.ts";
import {
  assertNoSecretPayload,
  assertPayloadsKnown,
  type ChangeRequest,
  decideRequest,
  dueChanges,
  findRequest,
  noteExecuted,
  type ScheduledChange,
  scheduleChange,
} from "../store/pending-changes.ts";
import { assertNoApprovalNeeded, protectedDependents } from "../store/protected-flags.ts";
import { editOf } from "./feature-flags.ts";

/** Who does something with a change for later. */
interface Deciding {
  userId: number;
  now: Date;
}

/** @throws {InvalidField} @throws {FlagInvalid} @throws {HttpFailure} the change cannot be made, or not without somebody else. */
export function scheduleFlagChange(
  deps: FlagWriting,
  flag: Flag,
  change: Pick<ScheduledChange, "payload" | "scheduledAt">,
  { userId, now }: Deciding,
): ScheduledChange {
  requireSchedulable(deps, flag, change, now);
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

/** @throws {InvalidField} @throws {FlagInvalid} @throws {HttpFailure} the change cannot be made, or not without somebody else. */
export function requireSchedulable(
  deps: FlagWriting,
  flag: Flag,
  { payload, scheduledAt }: Pick<ScheduledChange, "payload" | "scheduledAt">,
  now: Date,
): void {
  const sent = sentBy(payload, flag);
  assertNoApprovalNeeded(deps, flag, editOf(sent, flag).fields);
  if (scheduledAt <= now) {
    throw new InvalidField("scheduled_at", "invalid_input", "The time must lie in the future.");
  }
  requirePossible(deps, flag, sent, "payload");
}

/** A change request about a flag. */
export type FlagRequest = ChangeRequest & { flagId: number };

/** @throws {NotPermitted} the user requested the change. */
export function assertOtherUser(request: ChangeRequest, userId: number): void {
  if (request.createdById === userId)
    throw new NotPermitted("Another user has to approve this change: it is your own request.");
}

/**
 * Makes a proposed change.
 *
 * @param checkMayEdit throws for whoever may not edit the flag. @throws {NotPermitted} @throws {EditConflict}
 */
export function approveRequest(
  deps: FlagWriting,
  request: FlagRequest,
  { userId, now }: Deciding,
  checkMayEdit: (flag: Flag) => void,
): { decided: ChangeRequest; flag: Flag; warnings: string[] } {
  assertOtherUser(request, userId);
  let isTurnedOn = false;
  const of = { projectId: request.projectId, id: request.flagId, by: userId, now };
  const flag = editFlag(deps, of, (before) => {
    checkMayEdit(before);
    // A change of a flag that others depend on is a change of those.
    for (const dependent of protectedDependents(deps, { projectId: of.projectId, flagIds: [of.id] }))
      checkMayEdit(dependent);
    decideRequest(deps, request, "applied", userId, now);
    const { version, original, note } = request;
    assertPayloadsKnown(request.changes);
    const originalFlag = withPayloadsOf(original, deps.payloads.open(before));
    isTurnedOn = !before.hasEncryptedPayloads;
    return { ...editOf(request.changes, before), version, originalFlag, note };
  });
  isTurnedOn &&= flag.hasEncryptedPayloads === true;
  // Read again: a request that turns encryption on has lost its payloads by now.
  const decided = findRequest(deps.metadata.db, request.projectId, request.id);
  return { decided, flag, warnings: isTurnedOn ? [encryptionWarning] : [] };
}

/** A flag as it was proposed to be changed: hidden payloads cannot be part of the change, and count as they are now. */
function withPayloadsOf(original: JsonObject, present: JsonObject): JsonObject {
  const { filters } = original;
  if (!isJsonObject(filters) || !isJsonObject(filters.payloads) || !isJsonObject(present.payloads))
    return original;
  if (!Object.values(filters.payloads).includes(redactedPayload)) return original;
  return { ...original, filters: { ...filters, payloads: present.payloads } };
}

/** Declines a proposed change; one's own is withdrawn. @throws {InvalidField} it was decided on already. */
export function rejectRequest(
  deps: FlagWriting,
  request: ChangeRequest,
  { userId, now }: Deciding,
): ChangeRequest {
  const state = request.createdById === userId ? "withdrawn" : "rejected";
  return decideRequest(deps, request, state, userId, now);
}

/** Whether there is something to do for `runScheduledChanges`. */
export function hasDueChanges(
  { metadata: { db } }: Pick<FlagWriting, "metadata">,
  now = new Date(),
): boolean {
  return dueChanges(db, now).length > 0;
}

/** Makes the scheduled changes whose time has come. Returns how many were tried. */
export function runScheduledChanges(deps: FlagWriting, now = new Date()): number {
  const due = dueChanges(deps.metadata.db, now);
  for (const change of due) {
    const { projectId, flagId: id, payload, createdById } = change;
    const by = {
      job_type: "scheduled_change",
      job_id: String(change.id),
      payload: { created_by_id: createdById },
    };
    try {
      editFlag(deps, { projectId, id, by, now }, (before) => {
        const sent = sentBy(payload, before);
        requireStillAllowed(deps, before, createdById);
        assertNoApprovalNeeded(deps, before, editOf(sent, before).fields);
        // In the transaction of the change: it is made once, also when the process dies.
        noteExecuted(deps, change.id, now, null);
        assertPayloadsKnown(sent);
        return editOf(sent, before);
      });
    } catch (error) {
      noteExecuted(deps, change.id, now, (error as Error).message.slice(0, 1_000));
    }
  }
  return due.length;
}

/** @throws {NotPermitted} @throws {HttpFailure} */
function requireStillAllowed(deps: FlagWriting, flag: Flag, userId: number): void {
  const project = deps.metadata.projects.find(flag.projectId);
  if (flag.deleted || project?.archivedAt !== null)
    throw new NotPermitted("The flag, or its project, is gone.");
  requireEditor(deps, flag, userId, "Whoever scheduled this may not edit the flag any more.");
}

/** @throws {NotPermitted} with the sentence. */
export function requireEditor({ metadata }: FlagWriting, flag: Flag, userId: number, sentence: string): void {
  const { db, projects } = metadata;
  const project = projects.find(flag.projectId);
  const organization = project && findOrganization(db, project.organizationId);
  const user = findUser(db, userId);
  const isMember = organization !== undefined && levelOf(db, organization.id, userId) > 0;
  if (!isMember || !user?.isActive || !canEdit(readFlagPermissions(db, organization, userId), flag))
    throw new NotPermitted(sentence);
}

/** Whether the change could be made now. @throws {InvalidField} @throws {FlagInvalid} */
export function requirePossible(deps: FlagWriting, flag: Flag, sent: JsonObject, field: string): void {
  assertNoSecretPayload(flag, sent, field);
  const { fields } = editOf(sent, flag);
  const { db } = deps.metadata;
  const filters = filtersToStore(deps, db, flag.projectId, flag, { ...fields, key: fields.key ?? flag.key });
  checkCohortsOfRevived(db, flag, fields, filters);
}

/** What a PATCH would send for a scheduled change. @throws {InvalidField} */
function sentBy({ operation, value }: JsonObject, flag: Flag): JsonObject {
  if (operation === "update_status" && typeof value === "boolean") return { active: value };
  if (operation === "update" && isJsonObject(value)) return value;
  if (operation === "add_release_condition" && isJsonObject(value)) {
    const groups = [...groupsOf(flag.filters), ...groupsOf(value)] as Json[];
    return { filters: { groups } };
  }
  throw new InvalidField("payload", "invalid_input", "Send an `operation` that is known, and its `value`.");
}
