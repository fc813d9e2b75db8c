/** Changes of persons as rows in PostgreSQL that are no events: cohort memberships and hash keys. */

import { formatList, type Transaction } from "../../cluster/connection.ts";
import { canonicalUuid } from "../../lib/ids.ts";
import type { PersonNames } from "../cohort-members.ts";
import {
  type NewOverrides,
  pendingIdLengthMax,
  pendingOverrideMicros,
  pendingOverridesMax,
  pendingRetentionMicros,
} from "../hash-key-overrides.ts";
import type { PersonWriter } from "../person-writer.ts";
import { hashList } from "./hashes.ts";

/** Runs a change while no other node changes persons. */
type Change = <Result>(run: (t: Transaction) => Promise<Result>) => Promise<Result>;

export function postgresPersonWriter(change: Change): PersonWriter {
  return {
    addCohortMembers: (projectId, cohortId, names) =>
      change((t) => addMembers(t, projectId, cohortId, names)),
    addHashKeyOverrides: (projectId, overrides) => change((t) => addOverrides(t, projectId, overrides)),
  };
}

async function addMembers(
  t: Transaction,
  projectId: number,
  cohortId: number,
  names: PersonNames,
): Promise<void> {
  const named =
    "distinctIds" in names
      ? t`SELECT person_id FROM flagkeep.distinct_id
          WHERE project_id = ${projectId} AND id_hash = ANY(${hashList(names.distinctIds)}::text::uuid[])`
      : t`SELECT id AS person_id FROM flagkeep.person
          WHERE project_id = ${projectId} AND uuid = ANY(${uuidList(names.uuids)}::text::uuid[])`;
  await t`
    WITH added AS (
      INSERT INTO flagkeep.cohort_member (cohort_id, person_id) SELECT ${cohortId}::int, person_id FROM (${named}) AS named
      ON CONFLICT DO NOTHING RETURNING person_id)
    INSERT INTO flagkeep.person_change (project_id, person_uuid, is_cached_only)
    SELECT p.project_id, p.uuid, true FROM added JOIN flagkeep.person p ON p.id = added.person_id`;
}

/** An array literal; without invalid ones, which no person has. */
const uuidList = (uuids: readonly string[]) => formatList(uuids.flatMap((uuid) => canonicalUuid(uuid) ?? []));

async function addOverrides(
  t: Transaction,
  projectId: number,
  { distinctIds, flagKeys, hashKey, requestedMicros }: NewOverrides,
): Promise<number> {
  const ids = formatList(distinctIds);
  const hashes = hashList(distinctIds);
  const flags = JSON.stringify(flagKeys);
  // The first request wins, even if its ID got a person meanwhile.
  await assignPending(t, t`p.project_id = ${projectId} AND p.id_hash = ANY(${hashes}::text::uuid[])`);
  const { count } = await t`
    INSERT INTO flagkeep.hash_key_override (person_id, flag_key, hash_key)
    SELECT DISTINCT d.person_id, flag.value, ${hashKey}::text FROM flagkeep.distinct_id d
    CROSS JOIN json_array_elements_text(${flags}::text::json) AS flag(value)
    WHERE d.project_id = ${projectId} AND d.id_hash = ANY(${hashes}::text::uuid[]) ON CONFLICT DO NOTHING`;
  const expired = requestedMicros - pendingOverrideMicros;
  await t`
    INSERT INTO flagkeep.pending_override AS p (project_id, id_hash, distinct_id, hash_key, flag_keys, requested_at)
    SELECT ${projectId}::int, w.hash, w.id, ${hashKey}::text, ${flags}::text, ${requestedMicros}::bigint
    FROM unnest(${ids}::text::text[], ${hashes}::text::uuid[]) AS w(id, hash)
    -- An ID is hashed as itself anyway.
    WHERE w.id <> ${hashKey} AND length(w.id) BETWEEN 1 AND ${pendingIdLengthMax} AND NOT EXISTS (
      SELECT 1 FROM flagkeep.distinct_id d WHERE d.project_id = ${projectId} AND d.id_hash = w.hash)
    ON CONFLICT (project_id, id_hash) DO UPDATE SET
      hash_key = CASE WHEN p.requested_at < ${expired} THEN excluded.hash_key ELSE p.hash_key END,
      flag_keys = CASE WHEN p.requested_at < ${expired} THEN excluded.flag_keys ELSE (
        SELECT json_agg(value)::text FROM (
          SELECT value FROM json_array_elements_text(p.flag_keys::json) AS old(value)
          UNION SELECT value FROM json_array_elements_text(excluded.flag_keys::json) AS new(value)) AS keys) END,
      requested_at = greatest(p.requested_at, excluded.requested_at)`;
  await t`DELETE FROM flagkeep.pending_override
    WHERE id <= (SELECT max(id) FROM flagkeep.pending_override) - ${pendingOverridesMax}`;
  await t`
    INSERT INTO flagkeep.person_change (project_id, person_uuid, distinct_id, is_cached_only)
    SELECT ${projectId}::int, p.uuid, w.id, true
    FROM unnest(${ids}::text::text[], ${hashes}::text::uuid[]) AS w(id, hash)
    LEFT JOIN flagkeep.distinct_id d ON d.project_id = ${projectId} AND d.id_hash = w.hash
    LEFT JOIN flagkeep.person p ON p.id = d.person_id`;
  return count;
}

/** @param which a condition on `p`, a pending override whose ID may have got a person */
async function assignPending(t: Transaction, which: ReturnType<Transaction>): Promise<void> {
  await t`
    WITH joined AS (
      DELETE FROM flagkeep.pending_override p USING flagkeep.distinct_id d
      WHERE d.project_id = p.project_id AND d.id_hash = p.id_hash AND ${which}
      RETURNING d.person_id, p.hash_key, p.flag_keys)
    INSERT INTO flagkeep.hash_key_override (person_id, flag_key, hash_key)
    SELECT joined.person_id, flag.value, joined.hash_key
    FROM joined, json_array_elements_text(joined.flag_keys::json) AS flag(value) ON CONFLICT DO NOTHING`;
}

/**
 * Moves pending overrides that were stored while the persons got the IDs, and deletes expired ones. Call it when all
 * received events are applied.
 */
export async function sweepPendingRows(t: Transaction, nowMicros: number): Promise<void> {
  await assignPending(t, t`TRUE`);
  await t`DELETE FROM flagkeep.pending_override WHERE requested_at < ${nowMicros - pendingRetentionMicros}`;
}
