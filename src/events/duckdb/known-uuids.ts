/** Finds out which uuids are stored. */

import { uuidTime } from "../columns.ts";
import type { EventSql } from "../dialect.ts";

/** Those of these uuids that a project's events have. Most carry their time: only row groups of that time are read. */
export async function knownUuids(
  store: EventSql,
  projectId: number,
  uuids: readonly string[],
): Promise<string[]> {
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
  const known = await find(store, projectId, timed, span);
  return known.concat(await find(store, projectId, others, "uuid_time IS NULL"));
}

async function find(
  store: EventSql,
  projectId: number,
  uuids: readonly string[],
  condition: string,
): Promise<string[]> {
  if (uuids.length === 0) return [];
  const rows = await store.rows(
    `SELECT DISTINCT uuid::VARCHAR FROM events
     WHERE project_id = ${projectId} AND ${condition} AND uuid IN ${store.dialect.uuids(uuids)}`,
  );
  return rows.map(([uuid]) => String(uuid));
}
