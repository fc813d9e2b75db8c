/** Removes events by age alone, in ClickHouse. */

import type { RetentionCutoff } from "../duckdb/old-events.ts";
import { eventRows } from "./schema.ts";
import type { ClickHouseStore } from "./store.ts";

/** @returns how many events went. */
export async function removeOldOutsideEvents(
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
    // A mutation writes parts anew, or only looks at them: not for nothing.
    if (count === 0) continue;
    await connection.command(`ALTER TABLE ${table}${onCluster} DELETE WHERE ${old}`, { mutations_sync: "2" });
    removed += count;
  }
  return removed;
}
