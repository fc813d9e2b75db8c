/** Insight queries as SQL over the views, printed by the server, and the persons they select. */

import { request } from "../lib/api.ts";
import { inProject } from "../lib/session.ts";
import type { Query } from "./insight.ts";

/** A number in a result: its series or step, period and value. */
export interface Figure {
  /** Index of the series or step. */
  series: number;
  /** Start of its period as in the response: `2026-11-21` or `2026-11-21 05:00:00`. */
  day?: string;
  /** One value per property of the breakdown. */
  breakdown?: string[];
  /** Retention: number of periods until the return. */
  later?: number;
  /** Lifecycle: `new`, `returning`, `resurrecting` or `dormant`. */
  status?: string;
  /** Times to convert: bounds in seconds. */
  seconds?: [from: number, to: number];
}

const personsMax = 10_000;

const print = (body: object, signal?: AbortSignal) =>
  request<{ sql: string }>(inProject("insights/sql/"), {
    method: "POST",
    body,
    isRead: true,
    ...(signal ? { signal } : {}),
  }).then(({ sql }) => sql);

const run = <Row>(query: string, limit: number, signal: AbortSignal) =>
  request<{ rows: Row[]; truncated: boolean }>(inProject("query/"), {
    method: "POST",
    body: { query, limit },
    signal,
  });

/** The statement that counts as the query does. */
export const printQuery = (query: Query): Promise<string> => print({ query });

export interface FoundPerson {
  who: string;
  distinct_id: string;
  name: string | null;
  times: number;
}

/** The persons behind a number, and the statement that selects them. */
export async function readPersons(query: Query, figure: Figure, signal: AbortSignal) {
  const sql = await print({ query, select: "persons", figure }, signal);
  return { ...(await run<FoundPerson>(sql, personsMax, signal)), sql };
}

/** Number of distinct persons of a retention. */
export async function readPersonCount(query: Query, signal: AbortSignal): Promise<number> {
  const sql = await print({ query, select: "person_count" }, signal);
  const { rows } = await run<{ people: number }>(sql, 1, signal);
  return rows[0]?.people ?? 0;
}
