/** Future changes of flags: scheduled, or waiting for approval. */

import { and, asc, desc, eq, inArray, isNull, lte, type SQL, sql } from "drizzle-orm";
import type { MetadataTx, Reading } from "../../accounts/db.ts";
import { changeRequest, cohort, flag, scheduledChange } from "../../accounts/schema.ts";
import { queueWebhooks } from "../../accounts/webhook-outbox.ts";
import { InvalidFieldError, NotFoundError } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json/value.ts";
import { type Flag, storedFields } from "../fields.ts";
import { redactedPayload, withHiddenPayloads } from "../rules/types.ts";
import type { FlagWriteDeps } from "./flag-writes.ts";

export type ScheduledChange = typeof scheduledChange.$inferSelect;
export type ChangeRequest = typeof changeRequest.$inferSelect;
export type RequestState = ChangeRequest["state"];

/** Pending changes per project. */
const pendingMax = 1_000;

/**
 * A change is stored in plain text until it is applied: it must not contain a payload that is, or becomes, secret.
 *
 * @throws {InvalidFieldError}
 */
export function assertNoSecretPayload(flag: Flag, changes: JsonObject, field: string): void {
  const sent = changes.has_encrypted_payloads;
  const isSecret = sent === undefined ? flag.hasEncryptedPayloads : sent;
  if (isSecret !== true || !hasPayloads(changes, (payload) => payload !== redactedPayload)) return;
  throw new InvalidFieldError(
    field,
    "not_permitted",
    "A pending change cannot contain an encrypted payload: change the payload with PATCH.",
  );
}

/** A payload that was removed when encryption was turned on is no longer known. @throws {InvalidFieldError} */
export function assertPayloadsKnown(changes: JsonObject): void {
  if (!hasPayloads(changes, (payload) => payload === redactedPayload)) return;
  throw new InvalidFieldError(
    "payload",
    "invalid_input",
    "The payload of this change was removed when the payloads of the flag were encrypted. Create the change again.",
  );
}

function hasPayloads({ filters }: JsonObject, is: (payload: Json) => boolean): boolean {
  if (!isJsonObject(filters) || !isJsonObject(filters.payloads)) return false;
  return Object.values(filters.payloads).some(is);
}

/** @throws {InvalidFieldError} too many changes are pending. */
export function scheduleChange(
  { metadata }: FlagWriteDeps,
  input: Pick<
    ScheduledChange,
    "projectId" | "flagId" | "payload" | "scheduledAt" | "createdById" | "createdAt"
  >,
): ScheduledChange {
  return metadata.change((t) => {
    const waiting = and(eq(scheduledChange.projectId, input.projectId), isNull(scheduledChange.executedAt));
    assertCapacity(getCount(t, scheduledChange, waiting));
    return t.insert(scheduledChange).values(input).returning().get();
  });
}

interface Page {
  limit: number;
  offset: number;
}

const firstPage: Page = { limit: pendingMax, offset: 0 };

/** Latest first, pending changes before applied ones; of one flag if it is given. */
export function listScheduled(
  db: Reading,
  projectId: number,
  flagId?: number,
  { limit, offset }: Page = firstPage,
): { changes: ScheduledChange[]; count: number } {
  const chosen = and(
    eq(scheduledChange.projectId, projectId),
    flagId === undefined ? undefined : eq(scheduledChange.flagId, flagId),
  );
  const changes = db
    .select()
    .from(scheduledChange)
    .where(chosen)
    .orderBy(
      desc(isNull(scheduledChange.executedAt)),
      desc(scheduledChange.scheduledAt),
      desc(scheduledChange.id),
    )
    .limit(limit)
    .offset(offset)
    .all();
  return { changes, count: getCount(db, scheduledChange, chosen) };
}

/** The flags of these changes, without duplicates. */
export function getFlagIds(changes: readonly { flagId: number | null }[]): number[] {
  return [...new Set(changes.flatMap(({ flagId }) => flagId ?? []))];
}

/** @throws {NotFoundError} */
export function findScheduled(db: Reading, projectId: number, id: number): ScheduledChange {
  const found = db
    .select()
    .from(scheduledChange)
    .where(and(eq(scheduledChange.projectId, projectId), eq(scheduledChange.id, id)))
    .get();
  if (found === undefined) throw new NotFoundError(undefined, `scheduled change ${id}`);
  return found;
}

/** @throws {NotFoundError} the change does not exist, or was already applied. */
export function reschedule(
  { metadata }: FlagWriteDeps,
  stored: ScheduledChange,
  change: Partial<Pick<ScheduledChange, "payload" | "scheduledAt" | "createdById">>,
): ScheduledChange {
  const changed = metadata.db
    .update(scheduledChange)
    .set(change)
    .where(and(eq(scheduledChange.id, stored.id), isNull(scheduledChange.executedAt)))
    .returning()
    .get();
  if (changed === undefined) throw new NotFoundError("The change is already applied.");
  return changed;
}

/** @throws {NotFoundError} the change does not exist, or was already applied. */
export function unschedule({ metadata }: FlagWriteDeps, projectId: number, id: number): void {
  const deleted = metadata.change((t) =>
    t
      .delete(scheduledChange)
      .where(
        and(
          eq(scheduledChange.projectId, projectId),
          eq(scheduledChange.id, id),
          isNull(scheduledChange.executedAt),
        ),
      )
      .returning()
      .all(),
  );
  if (deleted.length === 0) throw new NotFoundError(undefined, `pending scheduled change ${id}`);
}

/** The due changes, oldest first. */
export function dueChanges(db: Reading, now: Date): ScheduledChange[] {
  return db
    .select()
    .from(scheduledChange)
    .where(and(isNull(scheduledChange.executedAt), lte(scheduledChange.scheduledAt, now)))
    .orderBy(asc(scheduledChange.scheduledAt), asc(scheduledChange.id))
    .limit(100)
    .all();
}

/** Records that a change was applied, or why it failed: it is not retried. */
export function recordExecuted(
  { metadata }: FlagWriteDeps,
  id: number,
  now: Date,
  failureReason: string | null,
): void {
  metadata.db
    .update(scheduledChange)
    .set({ executedAt: now, failureReason })
    .where(eq(scheduledChange.id, id))
    .run();
}

/** The `operation` of the steps of a gradual rollout. */
export const rolloutOperation = "update_rollout";

/** Ends the pending steps of a flag's gradual rollout; other scheduled changes stay. */
export function stopRollout(t: MetadataTx, flagId: number, now: Date, failureReason: string): void {
  const pending = t
    .select()
    .from(scheduledChange)
    .where(and(eq(scheduledChange.flagId, flagId), isNull(scheduledChange.executedAt)))
    .all();
  const steps = pending.filter(({ payload }) => payload.operation === rolloutOperation).map(({ id }) => id);
  if (steps.length === 0) return;
  t.update(scheduledChange)
    .set({ executedAt: now, failureReason })
    .where(inArray(scheduledChange.id, steps))
    .run();
}

/** The target of a change request, and its state at the time of the request. */
export type RequestTarget = Pick<ChangeRequest, "projectId" | "flagId" | "cohortId" | "version" | "original">;

/** A flag as the target of a change request; encrypted payloads are hidden. */
export function flagTarget(flag: Flag): RequestTarget {
  const original = { ...storedFields(flag), filters: withHiddenPayloads(flag) };
  return { projectId: flag.projectId, flagId: flag.id, cohortId: null, version: flag.version, original };
}

/** @throws {InvalidFieldError} too many requests are pending. */
export function requestChange(
  { metadata }: Pick<FlagWriteDeps, "metadata">,
  target: RequestTarget,
  input: Pick<ChangeRequest, "changes" | "note" | "createdById" | "createdAt">,
): ChangeRequest {
  return metadata.change((t) => {
    assertCapacity(listRequests(t, target.projectId, { state: "pending" }).count);
    const requested = t
      .insert(changeRequest)
      .values({ ...input, ...target })
      .returning()
      .get();
    queueRequest(t, requested, "change_request_opened", input.createdAt);
    return requested;
  });
}

/** Newest first. */
export function listRequests(
  db: Reading,
  projectId: number,
  filter: { state?: RequestState; flagId?: number; cohortId?: number } = {},
  { limit, offset }: Page = firstPage,
): { requests: ChangeRequest[]; count: number } {
  const chosen = and(
    eq(changeRequest.projectId, projectId),
    filter.state === undefined ? undefined : eq(changeRequest.state, filter.state),
    filter.flagId === undefined ? undefined : eq(changeRequest.flagId, filter.flagId),
    filter.cohortId === undefined ? undefined : eq(changeRequest.cohortId, filter.cohortId),
  );
  const requests = db
    .select()
    .from(changeRequest)
    .where(chosen)
    .orderBy(desc(changeRequest.id))
    .limit(limit)
    .offset(offset)
    .all();
  return { requests, count: getCount(db, changeRequest, chosen) };
}

/** @throws {NotFoundError} */
export function findRequest(db: Reading, projectId: number, id: number): ChangeRequest {
  const found = db
    .select()
    .from(changeRequest)
    .where(and(eq(changeRequest.projectId, projectId), eq(changeRequest.id, id)))
    .get();
  if (found === undefined) throw new NotFoundError(undefined, `change request ${id}`);
  return found;
}

/** Records the decision about a request. @throws {InvalidFieldError} it is already decided. */
export function decideRequest(
  { metadata }: FlagWriteDeps,
  stored: ChangeRequest,
  state: Exclude<RequestState, "pending">,
  by: number,
  now: Date,
): ChangeRequest {
  return metadata.change((t) => {
    const decided = t
      .update(changeRequest)
      .set({ state, decidedById: by, decidedAt: now })
      .where(and(eq(changeRequest.id, stored.id), eq(changeRequest.state, "pending")))
      .returning()
      .get();
    if (decided === undefined)
      throw new InvalidFieldError(null, "already_decided", "This change request is already decided.");
    queueRequest(t, decided, "change_request_decided", now);
    return decided;
  });
}

function queueRequest(
  t: MetadataTx,
  { id, projectId, flagId, cohortId }: ChangeRequest,
  event: "change_request_opened" | "change_request_decided",
  now: Date,
): void {
  const name =
    flagId !== null
      ? t.select({ name: flag.key }).from(flag).where(eq(flag.id, flagId)).get()
      : t.select({ name: cohort.name }).from(cohort).where(eq(cohort.id, cohortId!)).get();
  queueWebhooks(t, { projectId, event, item: name?.name ?? "", subject: { change_request_id: id }, now });
}

function getCount(
  db: Reading,
  table: typeof scheduledChange | typeof changeRequest,
  chosen: SQL | undefined,
): number {
  return db.select({ count: sql<number>`count(*)` }).from(table).where(chosen).get()!.count;
}

function assertCapacity(count: number): void {
  if (count < pendingMax) return;
  throw new InvalidFieldError(
    null,
    "invalid_input",
    `A project can have at most ${pendingMax} pending changes.`,
  );
}
