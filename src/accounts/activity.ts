/**
 * The activity log: who changed what. An entry is written in the transaction of the change it tells about.
 *
 * Source: contract, management-api 5.10.
 */

import { and, desc, eq, gte, isNull, lt, sql } from "drizzle-orm";
import type { Json, JsonObject } from "../lib/json.ts";
import type { MetadataTx, Reading } from "./db.ts";
import { activity, user } from "./schema.ts";

/** One changed field. `before` is null when it was empty, `after` when it became empty. */
export interface Change {
  type: string;
  action: "created" | "changed" | "deleted";
  field: string;
  before: Json;
  after: Json;
}

/** What caused a change that no person made by hand. */
interface Trigger {
  job_type: string;
  job_id: string;
  payload: JsonObject;
}

export interface ActivityEntry {
  id: string;
  /** Absent when the server itself acted, or the user is gone. */
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
    /** Why, in the words of whoever did it. */
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
  /** What people call the item, e.g. the key of a flag. */
  name: string;
  changes: Change[];
  /** Why, in the words of whoever acts; empty: not told. */
  note?: string | undefined;
  now: Date;
}

/** An operating system user who runs a command. */
interface Operator extends Trigger {
  /** The user to whom the objects that the command creates belong. */
  creatorId: number;
}

/** Who makes a change: a user by id, the server itself (null), or what acts in place of a user. */
export type Author = number | Trigger | Operator | null;

/** The user who acts, if it is one. */
export function userIdOf(by: Author): number | null {
  return typeof by === "number" ? by : null;
}

/** The user to whom what is created belongs: who acts, or the one for whom a command acts. */
export function creatorIdOf(by: Author): number | null {
  return typeof by === "object" && by !== null && "creatorId" in by ? by.creatorId : userIdOf(by);
}

/** What the entry keeps of an author who is no user. */
function triggerOf(by: Author): Trigger | null {
  if (typeof by === "number" || by === null) return null;
  const { job_type, job_id, payload } = by;
  return { job_type, job_id, payload };
}

/** Writes one entry. Ids sort by time, so entries of the same millisecond keep their order. */
export function recordActivity(t: MetadataTx, entry: NewActivity): void {
  const userId = userIdOf(entry.by);
  t.insert(activity)
    .values({
      id: Bun.randomUUIDv7(),
      organizationId: entry.organizationId ?? null,
      projectId: entry.projectId ?? null,
      userId,
      isSystem: userId === null,
      activity: entry.activity,
      scope: entry.scope,
      itemId: String(entry.itemId),
      detail: {
        changes: entry.changes as unknown as Json[],
        trigger: triggerOf(entry.by) as unknown as Json,
        type: null,
        name: entry.name,
        short_id: null,
        ...(entry.note ? { note: entry.note } : {}),
      },
      createdAt: entry.now,
    })
    .run();
}

/** Whose entries are meant: a project's, or those of an organisation that belong to no project but the projects themselves. */
export type ActivityOwner = { projectId: number } | { organizationId: string };

/** What narrows a list of entries. */
export interface ActivityFilter {
  scope?: string;
  itemId?: string | number;
  /** Id of the user who acted; null: nobody, the server or the command line. */
  userId?: number | null;
  activity?: string;
  after?: Date;
  before?: Date;
}

function chosenBy(of: ActivityOwner & ActivityFilter) {
  return and(
    "projectId" in of ? eq(activity.projectId, of.projectId) : eq(activity.organizationId, of.organizationId),
    of.scope === undefined ? undefined : eq(activity.scope, of.scope),
    of.itemId === undefined ? undefined : eq(activity.itemId, String(of.itemId)),
    of.userId === undefined
      ? undefined
      : of.userId === null
        ? isNull(activity.userId)
        : eq(activity.userId, of.userId),
    of.activity === undefined ? undefined : eq(activity.activity, of.activity),
    of.after === undefined ? undefined : gte(activity.createdAt, of.after),
    of.before === undefined ? undefined : lt(activity.createdAt, of.before),
  );
}

/**
 * The entries down to one of them, newest first; undefined when it is not among the first `max`.
 */
export function activitiesSince(
  db: Reading,
  of: ActivityOwner & ActivityFilter,
  id: string,
  max: number,
): ActivityEntry[] | undefined {
  const { entries } = listActivity(db, of, { limit: max, offset: 0 });
  const last = entries.findIndex((entry) => entry.id === id);
  return last < 0 ? undefined : entries.slice(0, last + 1);
}

/** How long the details of a page of entries are, which need not be read for that; in bytes. */
export function activityBytes(
  db: Reading,
  of: ActivityOwner & ActivityFilter,
  page: { limit: number; offset: number },
): number {
  const entries = db
    .select({ bytes: sql<number>`octet_length(${activity.detail})`.as("bytes") })
    .from(activity)
    .where(chosenBy(of))
    .orderBy(desc(activity.createdAt), desc(activity.id))
    .limit(page.limit)
    .offset(page.offset)
    .as("entries");
  return db
    .select({ sum: sql<number>`coalesce(sum(${entries.bytes}), 0)` })
    .from(entries)
    .get()!.sum;
}

/** Entries of an owner, or of those about one scope or item, newest first, and how many there are in all. */
export function listActivity(
  db: Reading,
  of: ActivityOwner & ActivityFilter,
  page: { limit: number; offset: number },
): { entries: ActivityEntry[]; total: number } {
  const chosen = chosenBy(of);
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
    .map((row) => ({
      id: row.activity.id,
      user: row.user ? { firstName: row.user.firstName, email: row.user.email } : undefined,
      isSystem: row.activity.isSystem,
      activity: row.activity.activity,
      scope: row.activity.scope,
      itemId: row.activity.itemId,
      detail: row.activity.detail as unknown as ActivityEntry["detail"],
      createdAt: row.activity.createdAt,
    }));
  return { entries, total };
}

/**
 * The fields that differ, in the order of `fields`; values are compared as JSON.
 *
 * An empty value (null, `""`, `{}`, `[]`) counts as none: filling it is `created`, emptying it `deleted`.
 */
export function changesBetween(
  type: string,
  before: JsonObject,
  after: JsonObject,
  fields: readonly string[],
): Change[] {
  const changes: Change[] = [];
  for (const field of fields) {
    const [old, present] = [before[field] ?? null, after[field] ?? null];
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
