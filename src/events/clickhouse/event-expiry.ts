/** Deletes events by age in ClickHouse. */

import type { RetentionCutoff } from "../duckdb/event-expiry.ts";
import { eventRows } from "./schema.ts";
import type { ClickHouseStore } from "./store.ts";

/** @returns the number of deleted events */
export async function deleteExpiredExternalEvents(
  { connection, address: { database, cluster } }: ClickHouseStore,
  cutoffs: readonly RetentionCutoff[],
): Promise<number> {
  let removed = 0;
  const table = eventRows({ database, cluster });
  const onCluster = cluster === null ? "" : ` ON CLUSTER \`${cluster}\``;
  for (const { projectId, beforeMicros } of cutoffs) {
    const old = `project_id = ${projectId} AND time < ${beforeMicros}`;
    const [row] = await connection.rows(`SELECT count() FROM events WHERE ${old}`);
    const count = Number(row![0]);
    // Skip the mutation: it would read all parts, even without a match.
    if (count === 0) continue;
    await connection.command(`ALTER TABLE ${table}${onCluster} DELETE WHERE ${old}`, { mutations_sync: "2" });
    removed += count;
  }
  return removed;
}
