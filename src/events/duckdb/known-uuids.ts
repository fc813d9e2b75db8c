/** Finds out which uuids are stored, and of which events. */

import { uuidTime } from "../columns.ts";
import type { EventSql } from "../dialect.ts";

/** Those of these uuids that a project's events have. Most carry their time: only row groups of that time are read. */
export async function knownUuids(
  store: EventSql,
  projectId: number,
  uuids: readonly string[],
): Promise<string[]> {
  const rows = await rowsOf(store, projectId, uuids, "DISTINCT uuid::VARCHAR");
  return rows.map(([uuid]) => String(uuid));
}

/** A stored event, as far as an import has to know it. */
export interface StoredEvent {
  uuid: string;
  event: string;
  distinctId: string;
}

/** The events of a project that have one of these uuids. */
export async function storedEvents(
  store: EventSql,
  projectId: number,
  uuids: readonly string[],
): Promise<StoredEvent[]> {
  const rows = await rowsOf(store, projectId, uuids, "uuid::VARCHAR, event, distinct_id");
  return rows.map(([uuid, event, distinctId]) => ({
    ...{ uuid: String(uuid), event: String(event), distinctId: String(distinctId) },
  }));
}

/** Whether a project has events of history, such as imports bring. */
export async function hasHistory(store: EventSql, projectId: number): Promise<boolean> {
  const rows = await store.rows(
    `SELECT 1 FROM events WHERE project_id = ${projectId} AND historical LIMIT 1`,
  );
  return rows.length > 0;
}

async function rowsOf(
  store: EventSql,
  projectId: number,
  uuids: readonly string[],
  columns: string,
): Promise<unknown[][]> {
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
  const found = await find(store, projectId, timed, span, columns);
  return found.concat(await find(store, projectId, others, "uuid_time IS NULL", columns));
}

async function find(
  store: EventSql,
  projectId: number,
  uuids: readonly string[],
  condition: string,
  columns: string,
): Promise<unknown[][]> {
  if (uuids.length === 0) return [];
  return await store.rows(
    `SELECT ${columns} FROM events
     WHERE project_id = ${projectId} AND ${condition} AND uuid IN ${store.dialect.uuids(uuids)}`,
  );
}
