/**
 * Removes events by age alone: everything of a project before a moment, whatever it is and whose it is.
 *
 * Events lie in the file in the order in which they were loaded, so what is old fills whole row groups, whose space the
 * next checkpoint gives back; the moments are beginnings of days, so that a row group is looked at few times.
 */

import type { DuckDBConnection } from "@duckdb/node-api";

export interface RetentionCutoff {
  projectId: number;
  /** Events that happened before go; epoch microseconds. */
  beforeMicros: number;
}

/** @returns how many events went. */
export async function removeOldEvents(
  connection: DuckDBConnection,
  cutoffs: readonly RetentionCutoff[],
): Promise<number> {
  let removed = 0;
  for (const { projectId, beforeMicros } of cutoffs) {
    // Fillers of the project go with its events and are none.
    await connection.run(
      "DELETE FROM events WHERE project_id = -$1 AND timestamp < make_timestamp($2::BIGINT)",
      [projectId, BigInt(beforeMicros)],
    );
    const result = await connection.run(
      "DELETE FROM events WHERE project_id = $1 AND timestamp < make_timestamp($2::BIGINT)",
      [projectId, BigInt(beforeMicros)],
    );
    removed += result.rowsChanged;
  }
  return removed;
}
