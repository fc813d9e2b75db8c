/** Keys by which flags go on hashing a person who was anonymous when the flag was first answered. */

import type { PeopleDb } from "./open.ts";

/**
 * Stores a hash key for flags of every person found for the distinct ids; what is stored already stays.
 *
 * @returns how many were stored. Source: contract, flag-evaluation 10.
 */
export function addHashKeyOverrides(
  db: PeopleDb,
  projectId: number,
  {
    distinctIds,
    flagKeys,
    hashKey,
  }: { distinctIds: readonly string[]; flagKeys: readonly string[]; hashKey: string },
): number {
  return db.$client
    .query(`
      INSERT OR IGNORE INTO hash_key_override (person_id, flag_key, hash_key)
      SELECT d.person_id, flag.value, ?4 FROM json_each(?2) AS wanted
      CROSS JOIN distinct_id AS d ON d.project_id = ?1 AND d.distinct_id = wanted.value
      CROSS JOIN json_each(?3) AS flag`)
    .run(projectId, JSON.stringify(distinctIds), JSON.stringify(flagKeys), hashKey).changes;
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
