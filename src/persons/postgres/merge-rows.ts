/** Cohort memberships and hash keys of persons in PostgreSQL: what moves with merges, and what deletions remove. */

import { formatList, type Transaction } from "../../cluster/connection.ts";
import type { JournalNote } from "../../journal/entry.ts";
import { canonicalUuid } from "../../lib/ids.ts";
import { anonymousIdHash } from "../anonymous-ids.ts";
import { pendingOverrideMicros } from "../hash-key-overrides.ts";
import type { JoinedId, Person } from "../identity/persons-state.ts";
import { hashList, numberList, toHash } from "./hashes.ts";

/** Tables with rows of persons, and the columns that identify a row of a person. */
const ownedTables = [
  ["cohort_member", "cohort_id"],
  ["hash_key_override", "flag_key, hash_key"],
] as const;

interface Move {
  (from: Person, into: Person): Promise<void>;
  /** Persons that may have such rows. */
  readonly owners: Set<number>;
}

/** @returns a function that gives one person's rows to another, whose own rows win */
export async function moveOwnedRows(t: Transaction, folds: readonly { from: Person }[]): Promise<Move> {
  const owners = new Set<number>();
  if (folds.length > 0) {
    const ids = numberList(folds.map(({ from }) => from.rowId));
    const rows = await t<{ id: number }[]>`
      SELECT person_id::float8 AS id FROM flagkeep.cohort_member WHERE person_id = ANY(${ids}::text::bigint[])
      UNION SELECT person_id::float8 FROM flagkeep.hash_key_override WHERE person_id = ANY(${ids}::text::bigint[])`;
    for (const { id } of rows) owners.add(id);
  }
  const move = async ({ rowId: from }: Person, { rowId: into }: Person) => {
    if (!owners.has(from)) return;
    for (const [table, columns] of ownedTables) {
      await t.unsafe(
        `INSERT INTO flagkeep.${table} (person_id, ${columns})
         SELECT $2::bigint, ${columns} FROM flagkeep.${table} WHERE person_id = $1::bigint ON CONFLICT DO NOTHING`,
        [from, into],
      );
      await t.unsafe(`DELETE FROM flagkeep.${table} WHERE person_id = $1::bigint`, [from]);
    }
    owners.add(into);
  };
  return Object.assign(move, { owners });
}

/** @returns a function that moves the pending override of a joined ID to its person, and returns whether it had one */
export async function assignJoined(
  t: Transaction,
  joins: readonly JoinedId[],
): Promise<(joined: JoinedId) => Promise<boolean>> {
  const pending = new Set<string>();
  if (joins.length > 0 && (await hasPending(t))) {
    const rows = await t<{ projectId: number; hash: string }[]>`
      SELECT p.project_id AS "projectId", p.id_hash AS hash
      FROM unnest(${numberList(joins.map(({ projectId }) => projectId))}::text::int[],
        ${hashList(joins.map(({ distinctId }) => distinctId))}::text::uuid[]) AS w(project_id, hash)
      JOIN flagkeep.pending_override p ON p.project_id = w.project_id AND p.id_hash = w.hash`;
    for (const { projectId, hash } of rows) pending.add(`${projectId} ${hash.replaceAll("-", "")}`);
  }
  return async ({ projectId, distinctId, personId, receivedMicros }) => {
    if (!pending.has(`${projectId} ${toHash(distinctId)}`)) return false;
    await t`
      WITH joined AS (
        DELETE FROM flagkeep.pending_override WHERE project_id = ${projectId} AND id_hash = ${toHash(distinctId)}
        RETURNING hash_key, flag_keys, requested_at)
      INSERT INTO flagkeep.hash_key_override (person_id, flag_key, hash_key)
      SELECT ${personId}::bigint, flag.value, joined.hash_key
      FROM joined, json_array_elements_text(joined.flag_keys::json) AS flag(value)
      WHERE joined.requested_at >= ${receivedMicros - pendingOverrideMicros} ON CONFLICT DO NOTHING`;
    return true;
  };
}

async function hasPending(t: Transaction): Promise<boolean> {
  return (await t`SELECT 1 FROM flagkeep.pending_override LIMIT 1`).length > 0;
}

/** Applies a deletion in the transaction of its step; ignores unknown persons. */
export async function deletePerson(t: Transaction, { projectId, details }: JournalNote): Promise<void> {
  const [row] = await t<{ id: number; uuid: string }[]>`
    SELECT id::float8 AS id, uuid FROM (
      SELECT id, uuid, 1 AS priority FROM flagkeep.person
      WHERE project_id = ${projectId} AND uuid = ${canonicalUuid(String(details.uuid)) ?? null}::uuid
      UNION ALL
      SELECT p.id, p.uuid, 2 FROM flagkeep.distinct_id d JOIN flagkeep.person p ON p.id = d.person_id
      WHERE d.project_id = ${projectId} AND d.id_hash = ${toHash(String(details.distinct_id))}
    ) AS found ORDER BY priority LIMIT 1`;
  if (row === undefined) return;
  const ids = await t<{ distinctId: string }[]>`
    DELETE FROM flagkeep.distinct_id WHERE person_id = ${row.id}::bigint RETURNING distinct_id AS "distinctId"`;
  for (const [table] of ownedTables)
    await t.unsafe(`DELETE FROM flagkeep.${table} WHERE person_id = $1::bigint`, [row.id]);
  const hashes = hashList(ids.map(({ distinctId }) => distinctId));
  const anonymous = `{${ids.map(({ distinctId }) => anonymousIdHash(distinctId)).join(",")}}`;
  await t`DELETE FROM flagkeep.personless_id
    WHERE project_id = ${projectId} AND id_hash = ANY(${anonymous}::text::bigint[])`;
  await t`DELETE FROM flagkeep.pending_override WHERE project_id = ${projectId} AND id_hash = ANY(${hashes}::text::uuid[])`;
  await t`DELETE FROM flagkeep.person WHERE id = ${row.id}::bigint`;
  await t`
    INSERT INTO flagkeep.person_change (project_id, person_uuid, distinct_id, is_deleted)
    SELECT ${projectId}, ${row.uuid}::uuid, id, true
    FROM unnest(${formatList([...ids.map(({ distinctId }) => distinctId), null])}::text::text[]) AS id`;
}
