/**
 * Which distinct ids and persons changed, for the event store to mirror.
 *
 * Rows are written in the transaction that changes the persons, and are numbered for good: a number is never used
 * again, so a mirror that remembers the last number it has seen misses nothing.
 */

import { asc, gt, lte } from "drizzle-orm";
import type { PeopleDb } from "./open.ts";
import { change } from "./schema.ts";

export type PeopleChange = { changeId: number; projectId: number; personUuid: string } & (
  | {
      /** Belongs to the person from now on, who may have changed otherwise too. */ kind: "distinct_id";
      distinctId: string;
    }
  | { /** Changed, or is new. */ kind: "person" }
  | { /** Was folded into another person, to whom its ids went. */ kind: "person_deleted" }
);

const changesAtOnce = 20_000;

/** Changes after `changeId`, oldest first, as many as are taken over at once. A person that is gone by now may still be named. */
export function changesAfter(db: PeopleDb, changeId: number, limit = changesAtOnce): PeopleChange[] {
  return db
    .select()
    .from(change)
    .where(gt(change.changeId, changeId))
    .orderBy(asc(change.changeId))
    .limit(limit)
    .all()
    .map(({ distinctId, isDeleted, ...row }): PeopleChange => {
      if (distinctId !== null) return { ...row, kind: "distinct_id", distinctId };
      return { ...row, kind: isDeleted ? "person_deleted" : "person" };
    });
}

/** The oldest change that is still there (or the next one that will be), and the last that was ever made. */
export function changeRange(db: PeopleDb): { oldest: number; last: number } {
  const row = db.$client
    .query(
      "SELECT (SELECT min(change_id) FROM change) AS oldest, (SELECT seq FROM sqlite_sequence WHERE name = 'change') AS last",
    )
    .get() as { oldest: number | null; last: number | null };
  const last = row.last ?? 0;
  return { oldest: row.oldest ?? last + 1, last };
}

/** Deletes changes that are mirrored, up to and including `changeId`. */
export function forgetChanges(db: PeopleDb, changeId: number): void {
  db.delete(change).where(lte(change.changeId, changeId)).run();
}
