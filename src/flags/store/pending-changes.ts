/** Changes of flags that are not made yet: with a time, or until somebody else agrees. */

import { and, asc, desc, eq, isNull, lte, type SQL, sql } from "drizzle-orm";
import type { Reading } from "../../accounts/db.ts";
import { changeRequest, scheduledChange } from "../../accounts/schema.ts";
import { InvalidField, NotFound } from "../../lib/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../lib/json.ts";
import { type Flag, storedFields } from "../fields.ts";
import { redactedPayload, withHiddenPayloads } from "../rules/types.ts";
import type { FlagWriting } from "./flag-writes.ts";

export type ScheduledChange = typeof scheduledChange.$inferSelect;
export type ChangeRequest = typeof changeRequest.$inferSelect;
export type RequestState = ChangeRequest["state"];

/** Not made yet, of one project. */
const pendingMax = 1_000;

/** A change is stored in plain text until it is made: it must not contain a payload that is, or becomes, secret. @throws {InvalidField} */
export function assertNoSecretPayload(of: Flag, changes: JsonObject, field: string): void {
  const sent = changes.has_encrypted_payloads;
  const isSecret = sent === undefined ? of.hasEncryptedPayloads : sent;
  if (isSecret !== true || !hasPayloads(changes, (payload) => payload !== redactedPayload)) return;
  throw new InvalidField(
    field,
    "not_permitted",
    "A pending change cannot contain an encrypted payload: change the payload with PATCH.",
  );
}

/** A payload that was removed when encryption was turned on is not known any more. @throws {InvalidField} */
export function assertPayloadsKnown(changes: JsonObject): void {
  if (!hasPayloads(changes, (payload) => payload === redactedPayload)) return;
  throw new InvalidField(
    "payload",
    "invalid_input",
    "The payload of this change was removed when the payloads of the flag were encrypted. Create the change again.",
  );
}

function hasPayloads({ filters }: JsonObject, is: (payload: Json) => boolean): boolean {
  if (!isJsonObject(filters) || !isJsonObject(filters.payloads)) return false;
  return Object.values(filters.payloads).some(is);
}

/** @throws {InvalidField} too many wait. */
export function scheduleChange(
  { metadata }: FlagWriting,
  input: Pick<
    ScheduledChange,
    "projectId" | "flagId" | "payload" | "scheduledAt" | "createdById" | "createdAt"
  >,
): ScheduledChange {
  return metadata.change((t) => {
    const waiting = and(eq(scheduledChange.projectId, input.projectId), isNull(scheduledChange.executedAt));
    requireRoom(countOf(t, scheduledChange, waiting));
    return t.insert(scheduledChange).values(input).returning().get();
  });
}

/** Which part of a list is wanted. */
interface Page {
  limit: number;
  offset: number;
}

const firstPage: Page = { limit: pendingMax, offset: 0 };

/** The latest first, those that are still to come before them; of one flag when it is named. */
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
  return { changes, count: countOf(db, scheduledChange, chosen) };
}

/** The flags of such changes, each once. */
export function flagIdsOf(changes: readonly { flagId: number | null }[]): number[] {
  return [...new Set(changes.flatMap(({ flagId }) => flagId ?? []))];
}

/** @throws {NotFound} */
export function findScheduled(db: Reading, projectId: number, id: number): ScheduledChange {
  const found = db
    .select()
    .from(scheduledChange)
    .where(and(eq(scheduledChange.projectId, projectId), eq(scheduledChange.id, id)))
    .get();
  if (found === undefined) throw new NotFound(undefined, `scheduled change ${id}`);
  return found;
}

/** @throws {NotFound} there is none, or it was made already. */
export function reschedule(
  { metadata }: FlagWriting,
  of: ScheduledChange,
  change: Partial<Pick<ScheduledChange, "payload" | "scheduledAt" | "createdById">>,
): ScheduledChange {
  const changed = metadata.db
    .update(scheduledChange)
    .set(change)
    .where(and(eq(scheduledChange.id, of.id), isNull(scheduledChange.executedAt)))
    .returning()
    .get();
  if (changed === undefined) throw new NotFound("The change was made already.");
  return changed;
}

/** @throws {NotFound} there is none, or it was made already. */
export function unschedule({ metadata }: FlagWriting, projectId: number, id: number): void {
  const gone = metadata.change((t) =>
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
  if (gone.length === 0) throw new NotFound(undefined, `scheduled change ${id} that is still to be made`);
}

/** The changes whose time has come, the oldest first. */
export function dueChanges(db: Reading, now: Date): ScheduledChange[] {
  return db
    .select()
    .from(scheduledChange)
    .where(and(isNull(scheduledChange.executedAt), lte(scheduledChange.scheduledAt, now)))
    .orderBy(asc(scheduledChange.scheduledAt), asc(scheduledChange.id))
    .limit(100)
    .all();
}

/** Notes that a change was made, or why it could not be: it is not tried again. */
export function noteExecuted(
  { metadata }: FlagWriting,
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

/** What a change request is about, and how it was when the change was requested. */
export type RequestTarget = Pick<ChangeRequest, "projectId" | "flagId" | "cohortId" | "version" | "original">;

/** A flag as the target of a change request; encrypted payloads are hidden. */
export function flagTarget(of: Flag): RequestTarget {
  const original = { ...storedFields(of), filters: withHiddenPayloads(of) };
  return { projectId: of.projectId, flagId: of.id, cohortId: null, version: of.version, original };
}

/** @throws {InvalidField} too many wait. */
export function requestChange(
  { metadata }: Pick<FlagWriting, "metadata">,
  target: RequestTarget,
  input: Pick<ChangeRequest, "changes" | "note" | "createdById" | "createdAt">,
): ChangeRequest {
  return metadata.change((t) => {
    requireRoom(listRequests(t, target.projectId, { state: "pending" }).count);
    return t
      .insert(changeRequest)
      .values({ ...input, ...target })
      .returning()
      .get();
  });
}

/** The newest first. */
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
  return { requests, count: countOf(db, changeRequest, chosen) };
}

/** @throws {NotFound} */
export function findRequest(db: Reading, projectId: number, id: number): ChangeRequest {
  const found = db
    .select()
    .from(changeRequest)
    .where(and(eq(changeRequest.projectId, projectId), eq(changeRequest.id, id)))
    .get();
  if (found === undefined) throw new NotFound(undefined, `proposal ${id}`);
  return found;
}

/** Notes what became of a proposal. @throws {InvalidField} it was decided already. */
export function decideRequest(
  { metadata }: FlagWriting,
  of: ChangeRequest,
  state: Exclude<RequestState, "pending">,
  by: number,
  now: Date,
): ChangeRequest {
  const decided = metadata.db
    .update(changeRequest)
    .set({ state, decidedById: by, decidedAt: now })
    .where(and(eq(changeRequest.id, of.id), eq(changeRequest.state, "pending")))
    .returning()
    .get();
  if (decided === undefined)
    throw new InvalidField(null, "already_decided", "This change was decided on already.");
  return decided;
}

function countOf(
  db: Reading,
  table: typeof scheduledChange | typeof changeRequest,
  chosen: SQL | undefined,
): number {
  return db.select({ count: sql<number>`count(*)` }).from(table).where(chosen).get()!.count;
}

function requireRoom(count: number): void {
  if (count < pendingMax) return;
  throw new InvalidField(null, "invalid_input", `At most ${pendingMax} changes of a project can wait.`);
}
