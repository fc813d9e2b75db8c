/**
 * The activity log. An entry is written in the transaction of the change it describes.
 *
 * Source: contract, management-api 5.10.
 */

import { and, desc, eq, gte, isNull, lt, sql } from "drizzle-orm";
import { orderedUuid } from "../lib/ids.ts";
import type { Json, JsonObject } from "../lib/json/value.ts";
import type { MetadataTx, Reading } from "./db.ts";
import { activity, user } from "./schema.ts";
import { queueWebhooks } from "./webhook-outbox.ts";

/** One changed field. `before` is null if it was empty, `after` if it became empty. */
export interface Change {
  type: string;
  action: "created" | "changed" | "deleted";
  field: string;
  before: Json;
  after: Json;
}

/** Cause of a change that no user made manually. */
interface Trigger {
  job_type: string;
  job_id: string;
  payload: JsonObject;
}

export interface ActivityEntry {
  id: string;
  /** Absent if the server acted or the user was deleted. */
  user: { firstName: string; email: string } | undefined;
  isSystem: boolean;
  /** `created`, `updated`, `deleted`, `restored`. */
  activity: string;
  scope: string;
  itemId: string;
  detail: {
    changes: Change[];
    trigger: Trigger | null;
    type: null;
    name: string;
    short_id: null;
    /** Reason given by the author. */
    note?: string;
  };
  createdAt: Date;
}

export interface NewActivity {
  by: Author;
  organizationId?: string;
  projectId?: number;
  activity: string;
  scope: string;
  itemId: string | number;
  /** Display name of the item, for example the key of a flag. */
  name: string;
  changes: Change[];
  /** Reason given by the author; empty: none. */
  note?: string | undefined;
  now: Date;
}

/** An operating system user who runs a command. */
interface Operator extends Trigger {
  /** Owner of the objects that the command creates. */
  creatorId: number;
}

/** A user who approves another user's change request. */
interface Approver extends Trigger {
  userId: number;
  /** Name and e-mail of the user who requested it. */
  proposed_by: JsonObject | null;
}

/** Author of a change: a user by id, the server itself (null), or an actor in place of a user. */
export type Author = number | Trigger | Operator | Approver | null;

export function getUserId(by: Author): number | null {
  if (typeof by === "object" && by !== null && "userId" in by) return by.userId;
  return typeof by === "number" ? by : null;
}

/** Owner of created objects: the author, or the user on whose behalf a command acts. */
export function getCreatorId(by: Author): number | null {
  return typeof by === "object" && by !== null && "creatorId" in by ? by.creatorId : getUserId(by);
}

/** What the entry stores of an author in addition to the user. */
function getTrigger(by: Author): (Trigger & Partial<Pick<Approver, "proposed_by">>) | null {
  if (typeof by === "number" || by === null) return null;
  const { job_type, job_id, payload } = by;
  return { job_type, job_id, payload, ...("proposed_by" in by ? { proposed_by: by.proposed_by } : {}) };
}

/** Writes one entry. Ids sort like times, and those of the same millisecond in their order. Webhooks report those of flags. */
export function recordActivity(t: MetadataTx, entry: NewActivity): void {
  const userId = getUserId(entry.by);
  const id = orderedUuid(entry.now);
  t.insert(activity)
    .values({
      id,
      organizationId: entry.organizationId ?? null,
      projectId: entry.projectId ?? null,
      userId,
      isSystem: userId === null,
      activity: entry.activity,
      scope: entry.scope,
      itemId: String(entry.itemId),
      detail: {
        changes: entry.changes as unknown as Json[],
        trigger: getTrigger(entry.by) as unknown as Json,
        type: null,
        name: entry.name,
        short_id: null,
        ...(entry.note ? { note: entry.note } : {}),
      },
      createdAt: entry.now,
    })
    .run();
  if (entry.scope === "FeatureFlag" && entry.projectId !== undefined) {
    const { projectId, name: item, now } = entry;
    queueWebhooks(t, { projectId, event: "flag_changed", item, subject: { activity_id: id }, now });
  }
}

/**
 * Writes one entry with the fields that differ. An update that changes none writes nothing.
 *
 * @param entry.after the recorded fields. @param entry.before undefined: created, without changes.
 */
export function recordChange(
  t: MetadataTx,
  {
    before,
    after,
    ...entry
  }: Omit<NewActivity, "changes"> & { before: JsonObject | undefined; after: JsonObject },
): void {
  const changes = before === undefined ? [] : changesBetween(entry.scope, before, after, Object.keys(after));
  if (entry.activity === "updated" && changes.length === 0) return;
  recordActivity(t, { ...entry, changes });
}

/** Records the changes of one kind of object. @param getFields the recorded fields */
export function changeRecorder<Item extends { id: string | number; projectId: number; name: string }>(
  scope: string,
  getFields: (item: Item) => JsonObject,
) {
  return (
    t: MetadataTx,
    activity: "created" | "updated" | "deleted",
    before: Item | undefined,
    after: Item,
    { by, now }: Pick<NewActivity, "by" | "now">,
  ): void => {
    const { id: itemId, projectId, name } = after;
    const fields = { before: before && getFields(before), after: getFields(after) };
    recordChange(t, { by, now, projectId, activity, scope, itemId, name, ...fields });
  };
}

/**
 * Owner of entries: a project, or an organization (entries outside of projects, and those about the projects
 * themselves).
 */
export type ActivityOwner = { projectId: number } | { organizationId: string };

export interface ActivityFilter {
  scope?: string;
  itemId?: string | number;
  /** Id of the author; null: the server or the command line. */
  userId?: number | null;
  activity?: string;
  after?: Date;
  before?: Date;
}

function chosenBy(filter: ActivityOwner & ActivityFilter) {
  return and(
    "projectId" in filter
      ? eq(activity.projectId, filter.projectId)
      : eq(activity.organizationId, filter.organizationId),
    filter.scope === undefined ? undefined : eq(activity.scope, filter.scope),
    filter.itemId === undefined ? undefined : eq(activity.itemId, String(filter.itemId)),
    filter.userId === undefined
      ? undefined
      : filter.userId === null
        ? isNull(activity.userId)
        : eq(activity.userId, filter.userId),
    filter.activity === undefined ? undefined : eq(activity.activity, filter.activity),
    filter.after === undefined ? undefined : gte(activity.createdAt, filter.after),
    filter.before === undefined ? undefined : lt(activity.createdAt, filter.before),
  );
}

/** The entries from the newest down to the given one; undefined if it is not among the first `max`. */
export function activitiesSince(
  db: Reading,
  filter: ActivityOwner & ActivityFilter,
  id: string,
  max: number,
): ActivityEntry[] | undefined {
  const { entries } = listActivity(db, filter, { limit: max, offset: 0 });
  const last = entries.findIndex((entry) => entry.id === id);
  return last < 0 ? undefined : entries.slice(0, last + 1);
}

/** Size of the details of a page of entries in bytes, measured without reading them. */
export function activityBytes(
  db: Reading,
  filter: ActivityOwner & ActivityFilter,
  page: { limit: number; offset: number },
): number {
  const entries = db
    .select({ bytes: sql<number>`octet_length(${activity.detail})`.as("bytes") })
    .from(activity)
    .where(chosenBy(filter))
    .orderBy(desc(activity.createdAt), desc(activity.id))
    .limit(page.limit)
    .offset(page.offset)
    .as("entries");
  return db
    .select({ sum: sql<number>`coalesce(sum(${entries.bytes}), 0)` })
    .from(entries)
    .get()!.sum;
}

/** Entries of an owner, or of one scope or item, newest first, and the total count. */
export function listActivity(
  db: Reading,
  filter: ActivityOwner & ActivityFilter,
  page: { limit: number; offset: number },
): { entries: ActivityEntry[]; total: number } {
  const chosen = chosenBy(filter);
  const total = db.select({ count: sql<number>`count(*)` }).from(activity).where(chosen).get()?.count ?? 0;
  const entries = db
    .select()
    .from(activity)
    .leftJoin(user, eq(user.id, activity.userId))
    .where(chosen)
    .orderBy(desc(activity.createdAt), desc(activity.id))
    .limit(page.limit)
    .offset(page.offset)
    .all()
    .map(toEntry);
  return { entries, total };
}

/** One entry; undefined if it does not exist. */
export function findActivity(db: Reading, id: string): ActivityEntry | undefined {
  const row = db
    .select()
    .from(activity)
    .leftJoin(user, eq(user.id, activity.userId))
    .where(eq(activity.id, id))
    .get();
  return row && toEntry(row);
}

function toEntry(row: {
  activity: typeof activity.$inferSelect;
  user: typeof user.$inferSelect | null;
}): ActivityEntry {
  return {
    id: row.activity.id,
    user: row.user ? { firstName: row.user.firstName, email: row.user.email } : undefined,
    isSystem: row.activity.isSystem,
    activity: row.activity.activity,
    scope: row.activity.scope,
    itemId: row.activity.itemId,
    detail: row.activity.detail as unknown as ActivityEntry["detail"],
    createdAt: row.activity.createdAt,
  };
}

/**
 * The fields that differ, in the order of `fields`; values are compared as JSON.
 *
 * An empty value (null, `""`, `{}`, `[]`) counts as absent: filling it is `created`, emptying it `deleted`.
 */
export function changesBetween(
  type: string,
  before: JsonObject,
  after: JsonObject,
  fields: readonly string[],
): Change[] {
  const changes: Change[] = [];
  for (const field of fields) {
    const old = before[field] ?? null;
    const present = after[field] ?? null;
    if (Bun.deepEquals(old, present)) continue;
    const action = isEmpty(old) ? "created" : isEmpty(present) ? "deleted" : "changed";
    changes.push({
      type,
      action,
      field,
      before: isEmpty(old) ? null : old,
      after: isEmpty(present) ? null : present,
    });
  }
  return changes.filter((change) => change.before !== null || change.after !== null);
}

function isEmpty(value: Json): boolean {
  if (value === null || value === "") return true;
  return typeof value === "object" && Object.keys(value).length === 0;
}
