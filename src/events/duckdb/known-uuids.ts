/** Counts which uuids are stored. */

import { uuidTime } from "../columns.ts";
import type { EventSql } from "../dialect.ts";

/** How many of these uuids a project's events have. Most carry their time: only row groups of that time are read. */
export async function countKnown(
  store: EventSql,
  projectId: number,
  uuids: readonly string[],
): Promise<number> {
  const timed: string[] = [];
  const others: string[] = [];
  let [first, last] = [Number.POSITIVE_INFINITY, 0];
  for (const uuid of uuids) {
    const time = uuidTime(uuid);
    (time === null ? others : timed).push(uuid);
    if (time === null) continue;
    first = Math.min(first, time);
    last = Math.max(last, time);
  }
  const span = `uuid_time BETWEEN ${first} AND ${last}`;
  const known = await count(store, projectId, timed, span);
  return known + (await count(store, projectId, others, "uuid_time IS NULL"));
}

async function count(
  store: EventSql,
  projectId: number,
  uuids: readonly string[],
  condition: string,
): Promise<number> {
  if (uuids.length === 0) return 0;
  const [row] = await store.rows(
    `SELECT count(DISTINCT uuid) FROM events
     WHERE project_id = ${projectId} AND ${condition} AND uuid IN ${store.dialect.uuids(uuids)}`,
  );
  return Number(row![0]);
}
