/** Looks up stored events by UUID, and lanes by distinct ID. */

import type { DuckDBValue } from "@duckdb/node-api";
import { uuidTime } from "../columns.ts";
import type { EventSql } from "../sql-dialect.ts";

/** The stored UUIDs of a project. Most UUIDs contain their time: only row groups of that time are read. */
export async function knownUuids(
  store: EventSql,
  projectId: number,
  uuids: readonly string[],
): Promise<string[]> {
  const rows = await getRows(store, projectId, uuids, "DISTINCT uuid::VARCHAR");
  return rows.map(([uuid]) => String(uuid));
}

/** The fields of a stored event that imports need. */
export interface StoredEvent {
  uuid: string;
  event: string;
  distinctId: string;
}

/** The events of a project with one of these UUIDs. */
export async function storedEvents(
  store: EventSql,
  projectId: number,
  uuids: readonly string[],
): Promise<StoredEvent[]> {
  const rows = await getRows(store, projectId, uuids, "uuid::VARCHAR, event, distinct_id");
  return rows.map(([uuid, event, distinctId]) => ({
    uuid: String(uuid),
    event: String(event),
    distinctId: String(distinctId),
  }));
}

/** Whether a project has historical events, such as imported ones. */
export async function hasHistory(store: EventSql, projectId: number): Promise<boolean> {
  const rows = await store.rows(
    `SELECT 1 FROM events WHERE project_id = ${projectId} AND historical LIMIT 1`,
  );
  return rows.length > 0;
}

/** The lanes of a person's events. */
export interface Lanes {
  hasHistory: boolean;
  hasRealtime: boolean;
}
export type PersonLanes = Lanes & { uuid: string };

/** The lanes of the events of distinct IDs; IDs without events are omitted. */
export async function lanesOfIds(
  store: EventSql,
  projectId: number,
  distinctIds: readonly string[],
): Promise<Map<string, Lanes>> {
  const lanes = new Map<string, Lanes>();
  if (distinctIds.length === 0) return lanes;
  const { dialect } = store;
  const values: DuckDBValue[] = [];
  const ids = distinctIds.map((id) => dialect.bind(values, id)).join(", ");
  const rows = await store.rows(
    `SELECT DISTINCT distinct_id, historical FROM events
     WHERE project_id = ${projectId} AND distinct_id IN (${ids})`,
    values,
  );
  for (const [id, isHistory] of rows) {
    const found = lanes.get(String(id)) ?? { hasHistory: false, hasRealtime: false };
    found[isHistory === true || isHistory === 1 ? "hasHistory" : "hasRealtime"] = true;
    lanes.set(String(id), found);
  }
  return lanes;
}

async function getRows(
  store: EventSql,
  projectId: number,
  uuids: readonly string[],
  columns: string,
): Promise<unknown[][]> {
  const timed: string[] = [];
  const others: string[] = [];
  let first = Number.POSITIVE_INFINITY;
  let last = 0;
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
