/** Visitors of the last five minutes. */

import type { JsonObject } from "../../lib/json.ts";
import type { EventSql } from "../sql-dialect.ts";
import { withOwners } from "./visits.ts";
import { readWebQuery, type WebRequest } from "./web-query.ts";

const onlineMs = 5 * 60_000;

/** The number of visitors with an event in the last five minutes. */
export async function computeWebOnline(
  store: EventSql,
  request: WebRequest,
  query: JsonObject,
): Promise<JsonObject> {
  const { dialect } = store;
  const { projectId, now } = request;
  const web = await readWebQuery(store, request, query);
  const [from, to] = [now - onlineMs, now].map((ms) => dialect.timestamp(ms * 1_000));
  const events = `SELECT DISTINCT ${projectId} AS project_id, e.distinct_id AS distinct_id FROM events e
    WHERE e.project_id = ${projectId} AND ${dialect.time("e")} >= ${from} AND ${dialect.time("e")} <= ${to}`;
  const [row] = await store.rows(
    `SELECT count(DISTINCT e.who) FROM (${withOwners(store, web, events)}) AS e`,
  );
  return { results: [{ key: "online", kind: "unit", value: Number(row![0]) }] };
}
