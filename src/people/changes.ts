/**
 * Which distinct ids and persons changed, for the event store to mirror.
 *
 * Rows are written in the transaction that changes the persons, and are numbered for good: a number is never used
 * again, so a mirror that remembers the last number it has seen misses nothing.
 */

import { lte } from "drizzle-orm";
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

/** So many, because behind a backlog most of them are about the same persons, each of whom is then copied once. */
const changesAtOnce = 100_000;
/** Distinct ids may be of any length: no more rows are read once theirs have so many characters. */
const charactersAtOnce = 16 * 1024 * 1024;
const rowsAtOnce = 10_000;

type ChangeRow = [
  changeId: number,
  projectId: number,
  personUuid: string,
  distinctId: string | null,
  isDeleted: number,
];

/** Changes after `changeId`, oldest first, as many as are taken over at once. A person that is gone by now may still be named. */
export function changesAfter(
  db: PeopleDb,
  changeId: number,
  limit = changesAtOnce,
  charactersMax = charactersAtOnce,
): PeopleChange[] {
  const query = db.$client.query(
    `SELECT change_id, project_id, person_uuid, distinct_id, is_deleted FROM change
     WHERE change_id > ? ORDER BY change_id LIMIT ?`,
  );
  const changes: PeopleChange[] = [];
  for (let characters = 0; changes.length < limit && characters < charactersMax; ) {
    const pageSize = Math.min(rowsAtOnce, limit - changes.length);
    const rows = query.values(changes.at(-1)?.changeId ?? changeId, pageSize) as ChangeRow[];
    for (const [changeId, projectId, personUuid, distinctId, isDeleted] of rows) {
      const change = { changeId, projectId, personUuid };
      if (distinctId !== null) changes.push({ ...change, kind: "distinct_id", distinctId });
      else changes.push({ ...change, kind: isDeleted === 1 ? "person_deleted" : "person" });
      characters += distinctId?.length ?? 0;
    }
    if (rows.length < pageSize) break;
  }
  return changes;
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
