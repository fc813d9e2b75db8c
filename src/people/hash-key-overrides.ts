/**
 * Keys by which flags go on hashing a person who was anonymous when the flag was first answered.
 *
 * A distinct ID that has no person yet holds its override itself; a person that gets the ID by an event received within
 * five minutes gets the override. Source: contract, flag-evaluation 10.
 */

import type { Database } from "bun:sqlite";
import type { JoinedId } from "./identity/people-state.ts";
import type { PeopleDb } from "./open.ts";

/** A further request extends an override when the last one is older, in microseconds: not each one is written. */
const extendAfterMicros = 30_000_000;
/** How long the override of an ID without a person is valid: at least five minutes after the last request. */
const pendingOverrideMicros = 300_000_000 + extendAfterMicros;
/** Rows are deleted later than they expire: events that were received in time may still be on their way. */
const pendingRetentionMicros = 2 * pendingOverrideMicros;
/** IDs without a person that have an override at once; beyond that, the oldest are evicted. */
const pendingOverridesMax = 50_000;
/** Longer distinct IDs never get a person. */
const pendingIdLengthMax = 1_000;

export interface NewOverrides {
  /** The identified ID first. */
  distinctIds: readonly string[];
  flagKeys: readonly string[];
  hashKey: string;
  requestedMicros: number;
}

/**
 * Stores a hash key for flags of every person found for the distinct IDs, and of the IDs that have none; what is stored
 * already stays. Call it in the process that writes the store.
 *
 * @param pendingMax IDs without a person that are retained; another number in tests.
 * @returns how many were stored for persons. Source: contract, flag-evaluation 10.
 */
export function addHashKeyOverrides(
  { $client: client }: PeopleDb,
  projectId: number,
  { distinctIds, flagKeys, hashKey, requestedMicros }: NewOverrides,
  pendingMax = pendingOverridesMax,
): number {
  const ids = JSON.stringify(distinctIds);
  const flags = JSON.stringify(flagKeys);
  return client
    .transaction(() => {
      // The first request decides, also where its ID got a person meanwhile.
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
 * Flag key to hash key of the persons that have the distinct ids.
 *
 * @param distinctIds the most important first: where two persons have different keys for a flag, its person's wins.
 */
export function hashKeyOverrides(
  db: PeopleDb,
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

/** The override of a distinct ID itself. */
export interface PendingOverrides {
  /** Flag key to hash key; empty when there is none, or it has expired. */
  overrides: Map<string, string>;
  /** Whether a request should extend it. */
  isOld: boolean;
}

/** What a distinct ID has itself, as long as it has no person. */
export function pendingHashKeyOverrides(
  { $client: client }: PeopleDb,
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
  if (row === null) return { overrides: new Map(), isOld: true };
  return {
    overrides: new Map((JSON.parse(row.flagKeys) as string[]).map((flagKey) => [flagKey, row.hashKey])),
    isOld: row.requestedMicros < nowMicros - extendAfterMicros,
  };
}

/** Whether any override was ever stored, for a person or an ID without one. */
export function hasHashKeyOverrides({ $client: client }: PeopleDb): boolean {
  const query = client.query(
    "SELECT 1 FROM hash_key_override UNION ALL SELECT 1 FROM pending_override LIMIT 1",
  );
  return query.get() !== null;
}

/**
 * Gives a person the override of an ID that it got; call it inside the transaction that writes the ID.
 *
 * @returns undefined when no ID has an override.
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
 * Gives persons the overrides of their IDs that another server of the cluster stored while they got the IDs, and deletes
 * expired ones. Call it while all events that were received are applied.
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

/** Removes the overrides of IDs without a person; inside a transaction. */
export function forgetPendingOverrides(
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

/** @param which a condition about `p`, a row of an ID without a person, which may have got one. */
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
