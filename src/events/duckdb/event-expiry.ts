/**
 * Deletes events of a project by age. Rows are in the order of loading, so expired events fill whole row groups, whose
 * space the next checkpoint frees. Cutoffs are starts of days, so that a row group is rewritten rarely.
 */

import type { DuckDBConnection } from "@duckdb/node-api";

export interface RetentionCutoff {
  projectId: number;
  /** Exclusive upper bound of the deleted events' time; epoch microseconds. */
  beforeMicros: number;
}

/** @returns the number of deleted events */
export async function deleteExpiredEvents(
  connection: DuckDBConnection,
  cutoffs: readonly RetentionCutoff[],
): Promise<number> {
  let removed = 0;
  for (const { projectId, beforeMicros } of cutoffs) {
    // Deletes the project's fillers as well, without counting them.
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
