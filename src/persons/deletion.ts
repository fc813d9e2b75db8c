/**
 * Deletion of a person: record, properties, distinct IDs, cohort memberships and flag keys. It is a journal entry in
 * order with the events, so replaying the journal deletes again. Events are not deleted; a later event creates a new,
 * empty person for its distinct ID.
 */

import type { Database } from "bun:sqlite";
import { type Static, Type } from "@sinclair/typebox";
import type { Author } from "../accounts/activity.ts";
import { EntryWriter, type JournalNote } from "../journal/entry.ts";
import { nullable, strictObject } from "../lib/schema.ts";
import { pruneAnonymousIds } from "./anonymous-ids.ts";
import { clearPendingOverrides } from "./hash-key-overrides.ts";

/** Response about a deletion. */
export const Deletion = strictObject({
  uuid: Type.String(),
  /** `deleted`, or `accepted`: durable, and applied after the events before it. */
  state: Type.String(),
  detail: Type.String(),
  events: Type.String(),
  backups: strictObject({
    /** The newest verified backup; older ones may exist. */
    last: nullable(strictObject({ file: Type.String(), created_at: Type.String() })),
    detail: Type.String(),
  }),
});
export type Deletion = Static<typeof Deletion>;

/** Deletes persons through the journal; implemented by the process that has it open. */
export interface PersonDeleter {
  /**
   * Resolves when the deletion is durable, and usually applied. @throws {JournalUnavailableError} nothing was deleted
   */
  erase(projectId: number, person: DeletedPerson, by: Author): Promise<Deletion>;
}

export interface DeletedPerson {
  uuid: string;
  /** The main distinct ID: finds the surviving person if this one was merged meanwhile. */
  distinctId: string;
}

export function deletionEntry(
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

/** Applies a deletion in the transaction of its batch; ignores unknown persons. */
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
  clearPendingOverrides(client, projectId, ids);
  client.query("DELETE FROM person WHERE id = ?").run(row.id);
  const change = client.query(
    "INSERT INTO change (project_id, person_uuid, distinct_id, is_deleted) VALUES (?, ?, ?, 1)",
  );
  for (const distinctId of [...ids, null]) change.run(projectId, row.uuid, distinctId);
}
