/** Writes persons as rows in PostgreSQL, many at once. */

import { formatList, type Transaction } from "../../cluster/connection.ts";

/** A person as it should be, with the version that was read. */
export interface ChangedPerson {
  projectId: number;
  uuid: string;
  version: number;
  mainDistinctId: string;
  isMainAlias: boolean;
  isIdentified: boolean;
  joinedCount: number;
  createdMicros: number;
  createdNumber: number;
  /** See `stamps-codec.ts`. */
  json: string;
  stamps: Uint8Array;
  searchText: string | null;
}

/** Names and types of the columns of a statement, in order. */
const columns = [
  ["project_id", "integer"],
  ["uuid", "uuid"],
  ["version", "integer"],
  ["main_distinct_id", "text"],
  ["is_main_alias", "boolean"],
  ["is_identified", "boolean"],
  ["joined_count", "integer"],
  ["created_at", "bigint"],
  ["created_number", "bigint"],
  ["properties", "text"],
  ["stamps", "bytea"],
  ["search_text", "text"],
] as const;

const written = columns.slice(3).map(([name]) => name);
const lists = columns.map(([, type], index) => `$${index + 1}::text::${type}[]`).join(", ");
const named = columns.map(([name]) => name).join(", ");

/**
 * Rows are locked in the order of their uuids, so that two writers never deadlock; a row with another version
 * is left out. No written column but `created_at` is part of an index: updates stay in their page.
 */
const updateSql = `
  WITH changed AS MATERIALIZED (SELECT * FROM unnest(${lists}) AS x(${named})),
  locked AS MATERIALIZED (
    SELECT p.project_id, p.uuid FROM flagkeep.person p
    JOIN changed c ON p.project_id = c.project_id AND p.uuid = c.uuid AND p.version = c.version
    ORDER BY p.project_id, p.uuid FOR NO KEY UPDATE OF p),
  written AS (
    UPDATE flagkeep.person p SET version = p.version + 1, ${written.map((name) => `${name} = c.${name}`).join(", ")}
    FROM changed c JOIN locked USING (project_id, uuid)
    WHERE p.project_id = c.project_id AND p.uuid = c.uuid AND p.version = c.version RETURNING p.project_id, p.uuid)
  SELECT project_id AS "projectId", uuid FROM written`;

/**
 * Writes persons that still have the version that was read, and increments it.
 * @returns the others: read and apply again
 */
export async function updatePersons(
  t: Transaction,
  persons: readonly ChangedPerson[],
): Promise<ChangedPerson[]> {
  if (persons.length === 0) return [];
  const values = persons.map((person) => [
    person.projectId,
    person.uuid,
    person.version,
    person.mainDistinctId,
    person.isMainAlias,
    person.isIdentified,
    person.joinedCount,
    person.createdMicros,
    person.createdNumber,
    person.json,
    `\\x${Buffer.from(person.stamps).toString("hex")}`,
    person.searchText,
  ]);
  const rows = await t.unsafe<{ projectId: number; uuid: string }[]>(
    updateSql,
    columns.map((_, index) =>
      formatList(values.map((row) => (row[index] === null ? null : String(row[index])))),
    ),
  );
  const done = new Set(rows.map(({ projectId, uuid }) => `${projectId} ${uuid}`));
  return persons.filter(({ projectId, uuid }) => !done.has(`${projectId} ${uuid}`));
}
