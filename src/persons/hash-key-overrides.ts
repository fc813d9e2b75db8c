/**
 * Hash keys that keep flags stable for a person who was anonymous when a flag was first evaluated. A distinct ID
 * without a person holds a pending override, which passes to the person that gets the ID by an event received within
 * five minutes. Source: contract, flag-evaluation 10.
 */

import type { Database } from "bun:sqlite";
import type { JoinedId } from "./identity/persons-state.ts";
import type { PersonsDb } from "./open.ts";

/** A request extends a pending override only if the last one is older, in microseconds: saves writes. */
const extendAfterMicros = 30_000_000;
/** Lifetime of a pending override: at least five minutes after the last request. */
export const pendingOverrideMicros = 300_000_000 + extendAfterMicros;
/** Rows outlive their expiry: events received in time may not be applied yet. */
export const pendingRetentionMicros = 2 * pendingOverrideMicros;
/** Maximum number of pending overrides; the oldest are evicted. */
export const pendingOverridesMax = 50_000;
/** Longer distinct IDs never get a person. */
export const pendingIdLengthMax = 1_000;

export interface NewOverrides {
  /** The identified ID first. */
  distinctIds: readonly string[];
  flagKeys: readonly string[];
  hashKey: string;
  requestedMicros: number;
}

/**
 * Stores a hash key for every person found by the distinct IDs, and for IDs without a person. Existing overrides win.
 * Call it in the process that writes the store. @param pendingMax for tests
 * @returns the number of overrides stored for persons. Source: contract, flag-evaluation 10.
 */
export function addHashKeyOverrides(
  { $client: client }: PersonsDb,
  projectId: number,
  { distinctIds, flagKeys, hashKey, requestedMicros }: NewOverrides,
  pendingMax = pendingOverridesMax,
): number {
  const ids = JSON.stringify(distinctIds);
  const flags = JSON.stringify(flagKeys);
  return client
    .transaction(() => {
      // The first request wins, even if its ID got a person meanwhile.
      assignPending(client, "p.project_id = ?1 AND p.distinct_id IN (SELECT value FROM json_each(?2))", [
        projectId,
        ids,
      ]);
      const { changes } = client
        .query(`
          INSERT OR IGNORE INTO hash_key_override (person_id, flag_key, hash_key)
          SELECT d.person_id, flag.value, ?4 FROM json_each(?2) AS wanted
          CROSS JOIN distinct_id AS d ON d.project_id = ?1 AND d.distinct_id = wanted.value
          CROSS JOIN json_each(?3) AS flag`)
        .run(projectId, ids, flags, hashKey);
      const { changes: pending } = client
        .query(`
          INSERT INTO pending_override AS p (project_id, distinct_id, hash_key, flag_keys, requested_at)
          SELECT ?1, wanted.value, ?4, ?3, ?5 FROM json_each(?2) AS wanted
          -- An ID is hashed as itself anyway.
          WHERE wanted.value <> ?4 AND length(wanted.value) BETWEEN 1 AND ${pendingIdLengthMax} AND NOT EXISTS (
            SELECT 1 FROM distinct_id AS d WHERE d.project_id = ?1 AND d.distinct_id = wanted.value)
          ON CONFLICT (project_id, distinct_id) DO UPDATE SET
            hash_key = iif(p.requested_at < ?6, excluded.hash_key, p.hash_key),
            flag_keys = iif(p.requested_at < ?6, excluded.flag_keys, (
              SELECT json_group_array(value) FROM (
                SELECT value FROM json_each(p.flag_keys) UNION SELECT value FROM json_each(excluded.flag_keys)))),
            requested_at = max(p.requested_at, excluded.requested_at)`)
        .run(projectId, ids, flags, hashKey, requestedMicros, requestedMicros - pendingOverrideMicros);
      if (pending > 0) {
        client
          .query("DELETE FROM pending_override WHERE id <= (SELECT max(id) FROM pending_override) - ?")
          .run(pendingMax);
      }
      return changes;
    })
    .immediate();
}

/**
 * Flag key to hash key for the persons with the distinct IDs.
 * @param distinctIds by precedence: if two persons have different keys for a flag, the first ID's person wins
 */
export function hashKeyOverrides(
  db: PersonsDb,
  projectId: number,
  distinctIds: readonly string[],
): Map<string, string> {
  const query = db.$client.query<[string, string], [number, string]>(`
    SELECT o.flag_key, o.hash_key FROM json_each(?2) AS wanted
    CROSS JOIN distinct_id AS d ON d.project_id = ?1 AND d.distinct_id = wanted.value
    CROSS JOIN hash_key_override AS o ON o.person_id = d.person_id
    ORDER BY wanted.key DESC`);
  return new Map(query.values(projectId, JSON.stringify(distinctIds)) as [string, string][]);
}

/** Overrides of a distinct ID without a person. */
export interface PendingOverrides {
  /** Flag key to hash key; empty if none or expired. */
  overrides: Map<string, string>;
  /** Whether a request should extend it. */
  isOld: boolean;
}

/** Pending overrides of a distinct ID. */
export function pendingHashKeyOverrides(
  { $client: client }: PersonsDb,
  projectId: number,
  distinctId: string,
  nowMicros: number,
): PendingOverrides {
  const row = client
    .query<{ hashKey: string; flagKeys: string; requestedMicros: number }, [number, string, number]>(
      `SELECT hash_key AS hashKey, flag_keys AS flagKeys, requested_at AS requestedMicros FROM pending_override
       WHERE project_id = ?1 AND distinct_id = ?2 AND requested_at >= ?3`,
    )
    .get(projectId, distinctId, nowMicros - pendingOverrideMicros);
  return toPendingOverrides(row ?? undefined, nowMicros);
}

/** @param row undefined if none is stored or it is expired */
export function toPendingOverrides(
  row: { hashKey: string; flagKeys: string; requestedMicros: number } | undefined,
  nowMicros: number,
): PendingOverrides {
  if (row === undefined) return { overrides: new Map(), isOld: true };
  return {
    overrides: new Map((JSON.parse(row.flagKeys) as string[]).map((flagKey) => [flagKey, row.hashKey])),
    isOld: row.requestedMicros < nowMicros - extendAfterMicros,
  };
}

/** Whether any override was ever stored, for a person or pending. */
export function hasHashKeyOverrides({ $client: client }: PersonsDb): boolean {
  const query = client.query(
    "SELECT 1 FROM hash_key_override UNION ALL SELECT 1 FROM pending_override LIMIT 1",
  );
  return query.get() !== null;
}

/**
 * Moves the pending override of a joined ID to its person; call it in the transaction that writes the ID.
 * @returns undefined if there are no pending overrides
 */
export function pendingOverrideAssigner(client: Database): ((joined: JoinedId) => void) | undefined {
  if (!hasPending(client)) return undefined;
  const assign = client.query(`
    INSERT OR IGNORE INTO hash_key_override (person_id, flag_key, hash_key)
    SELECT ?3, flag.value, p.hash_key FROM pending_override AS p CROSS JOIN json_each(p.flag_keys) AS flag
    WHERE p.project_id = ?1 AND p.distinct_id = ?2 AND p.requested_at >= ?4`);
  const remove = client.query("DELETE FROM pending_override WHERE project_id = ? AND distinct_id = ?");
  return ({ projectId, distinctId, personId, receivedMicros }) => {
    assign.run(projectId, distinctId, personId, receivedMicros - pendingOverrideMicros);
    remove.run(projectId, distinctId);
  };
}

/**
 * Moves pending overrides that another node stored while the persons got the IDs, and deletes expired ones. Call it
 * when all received events are applied.
 */
export function sweepPendingOverrides(client: Database, nowMicros: number): void {
  if (!hasPending(client)) return;
  client
    .transaction(() => {
      assignPending(client, "TRUE", []);
      client
        .query("DELETE FROM pending_override WHERE requested_at < ?")
        .run(nowMicros - pendingRetentionMicros);
    })
    .immediate();
}

/** Deletes the pending overrides of IDs, in a transaction. */
export function clearPendingOverrides(
  client: Database,
  projectId: number,
  distinctIds: readonly string[],
): void {
  client
    .query(
      "DELETE FROM pending_override WHERE project_id = ? AND distinct_id IN (SELECT value FROM json_each(?))",
    )
    .run(projectId, JSON.stringify(distinctIds));
}

function hasPending(client: Database): boolean {
  return client.query("SELECT 1 FROM pending_override LIMIT 1").get() !== null;
}

/** @param which a condition on `p`, a pending override whose ID may have got a person */
function assignPending(client: Database, which: string, values: (number | string)[]): void {
  client
    .query(`
      INSERT OR IGNORE INTO hash_key_override (person_id, flag_key, hash_key)
      SELECT d.person_id, flag.value, p.hash_key FROM pending_override AS p
      CROSS JOIN distinct_id AS d ON d.project_id = p.project_id AND d.distinct_id = p.distinct_id
      CROSS JOIN json_each(p.flag_keys) AS flag WHERE ${which}`)
    .run(...values);
  client
    .query(`
      DELETE FROM pending_override AS p WHERE ${which} AND EXISTS (
        SELECT 1 FROM distinct_id AS d WHERE d.project_id = p.project_id AND d.distinct_id = p.distinct_id)`)
    .run(...values);
}
