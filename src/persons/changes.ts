/**
 * Changed distinct IDs and persons, for replication to the event store. Rows are written in the transaction of the
 * change and numbered permanently: numbers are never reused, so a replica that stores the last one misses nothing.
 */

import { lte } from "drizzle-orm";
import type { PersonsDb } from "./open.ts";
import { change } from "./schema.ts";

export type PersonChange = { changeId: number; projectId: number; personUuid: string } & (
  | {
      /** Assigned to the person, who may have changed as well. */ kind: "distinct_id";
      distinctId: string;
    }
  | { /** Changed or created. */ kind: "person" }
  | { /** Merged into another person, or deleted. */ kind: "person_deleted" }
);

/** Large, because in a backlog most changes are about the same persons, each of which is then copied once. */
const changesAtOnce = 100_000;
/** Distinct IDs have any length: stop reading rows after this number of their characters. */
const charactersAtOnce = 16 * 1024 * 1024;
const rowsAtOnce = 10_000;

type ChangeRow = [
  changeId: number,
  projectId: number,
  personUuid: string,
  distinctId: string | null,
  isDeleted: number,
];

/** Changes after `changeId`, oldest first, limited to one batch. Includes persons that no longer exist. */
export function changesAfter(
  db: PersonsDb,
  changeId: number,
  limit = changesAtOnce,
  charactersMax = charactersAtOnce,
): PersonChange[] {
  const query = db.$client.query(
    `SELECT change_id, project_id, person_uuid, distinct_id, is_deleted FROM change
     WHERE change_id > ? ORDER BY change_id LIMIT ?`,
  );
  const changes: PersonChange[] = [];
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

/** The oldest existing change (or the next number if none exists), and the last number assigned. */
export function changeRange(db: PersonsDb): { oldest: number; last: number } {
  const row = db.$client
    .query(
      "SELECT (SELECT min(change_id) FROM change) AS oldest, (SELECT seq FROM sqlite_sequence WHERE name = 'change') AS last",
    )
    .get() as { oldest: number | null; last: number | null };
  const last = row.last ?? 0;
  return { oldest: row.oldest ?? last + 1, last };
}

/** Deletes replicated changes, up to and including `changeId`. */
export function pruneChanges(db: PersonsDb, changeId: number): void {
  db.delete(change).where(lte(change.changeId, changeId)).run();
}
