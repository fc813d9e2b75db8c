/**
 * The deletion of a person: the record, its properties, its distinct ids, its cohort memberships and flag keys.
 *
 * It is an entry of the journal, in its place among the events: applying the journal again deletes again. The events stay
 * (there is no selective deletion of events); one that comes later makes a new, empty person of its distinct id.
 */

import type { Database } from "bun:sqlite";
import { type Static, Type } from "@sinclair/typebox";
import type { Author } from "../accounts/activity.ts";
import { EntryWriter, type JournalNote } from "../journal/entry.ts";
import { exactly, orNull } from "../lib/schema.ts";
import { pruneAnonymousIds } from "./anonymous-ids.ts";
import { forgetPendingOverrides } from "./hash-key-overrides.ts";

/** What is told about a deletion. */
export const Deletion = exactly({
  uuid: Type.String(),
  /** `deleted`, or `accepted`: it is on disk and is applied as soon as the events before it are. */
  state: Type.String(),
  detail: Type.String(),
  events: Type.String(),
  backups: exactly({
    /** The newest that is known to be good; older ones may be there as well. */
    last: orNull(exactly({ file: Type.String(), created_at: Type.String() })),
    detail: Type.String(),
  }),
});
export type Deletion = Static<typeof Deletion>;

/** Deletes persons through the journal; given by whoever has it open. */
export interface PersonEraser {
  /**
   * Resolves when the deletion is on disk, and as a rule applied.
   *
   * @throws {JournalUnavailableError} nothing was deleted.
   */
  erase(projectId: number, person: DeletedPerson, by: Author): Promise<Deletion>;
}

export interface DeletedPerson {
  uuid: string;
  /** The main one: whoever has it when the person was merged into another meanwhile. */
  distinctId: string;
}

/** The journal's line for a deletion. */
export function deletionLine(
  projectId: number,
  { uuid, distinctId }: DeletedPerson,
  nowMicros: number,
): string {
  const details = { uuid, distinct_id: distinctId };
  return new EntryWriter(projectId, nowMicros, false).note("person_deleted", {
    type: "person_deleted",
    details,
  });
}

/** Deletes whom a journal entry names, inside the transaction of its batch; somebody who is not there is no fault. */
export function applyDeletion(client: Database, { projectId, details }: JournalNote): void {
  const row = client
    .query<{ id: number; uuid: string }, [number, string, string]>(
      `SELECT id, uuid FROM person WHERE project_id = ?1 AND uuid = ?2
       UNION ALL
       SELECT p.id, p.uuid FROM distinct_id AS d JOIN person AS p ON p.id = d.person_id
       WHERE d.project_id = ?1 AND d.distinct_id = ?3
       LIMIT 1`,
    )
    .get(projectId, String(details.uuid), String(details.distinct_id));
  if (row === null) return;
  const ids = client
    .query<{ distinctId: string }, [number]>(
      "SELECT distinct_id AS distinctId FROM distinct_id WHERE person_id = ?",
    )
    .all(row.id)
    .map(({ distinctId }) => distinctId);
  for (const table of ["cohort_member", "hash_key_override", "distinct_id"]) {
    client.query(`DELETE FROM ${table} WHERE person_id = ?`).run(row.id);
  }
  pruneAnonymousIds(client, projectId, ids);
  forgetPendingOverrides(client, projectId, ids);
  client.query("DELETE FROM person WHERE id = ?").run(row.id);
  const change = client.query(
    "INSERT INTO change (project_id, person_uuid, distinct_id, is_deleted) VALUES (?, ?, ?, 1)",
  );
  for (const distinctId of [...ids, null]) change.run(projectId, row.uuid, distinctId);
}
