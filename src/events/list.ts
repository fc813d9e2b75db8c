/** Lists stored events in pages: newest first, or in order of time or arrival. */

import type { DuckDBConnection, DuckDBValue } from "@duckdb/node-api";
import type { JsonObject } from "../flags/json.ts";
import { eventFilterSql, isAboutPerson, personOfEvent } from "./event-filters.ts";

export const eventOrders = ["-timestamp", "timestamp", "-seq", "seq"] as const;
export type EventOrder = (typeof eventOrders)[number];

export interface EventFilter {
  projectId: number;
  event?: string;
  distinctIds?: readonly string[];
  /** Events of all distinct ids of this person; the engine turns it into `distinctIds`. */
  personUuid?: string;
  uuid?: string;
  /** Epoch microseconds; events later than this. */
  afterMicros?: number;
  /** Epoch microseconds; events earlier than this. */
  beforeMicros?: number;
  historical?: boolean;
  /** Filters `{key, value, operator, type}`, joined by AND; `type` is `event` or `person`. */
  properties?: readonly JsonObject[];
  order: EventOrder;
  /** 1 to 10,000. */
  limit: number;
  /** Where the page before this one ended. */
  from?: EventPosition;
  /** Events to leave out at the beginning; they are looked at all the same. */
  offset?: number;
}

/** The place of an event in an order; unique within a project. */
export interface EventPosition {
  timestampMicros: number;
  historical: boolean;
  seq: number;
}

export interface StoredEvent {
  uuid: string;
  event: string;
  distinctId: string;
  timestampMicros: number;
  /** JSON text of an object, as it was sent. */
  properties: string;
  elementsChain: string;
  seq: number;
  historical: boolean;
}

/**
 * Reads one page; one event more than asked for tells that there is a next page.
 *
 * @throws {UnknownQuery} a property filter that can not be used.
 */
export async function listEvents(
  connection: DuckDBConnection,
  filter: EventFilter,
): Promise<{ events: StoredEvent[]; next: EventPosition | undefined }> {
  const conditions: string[] = [];
  const values: DuckDBValue[] = [];
  const bind = (value: DuckDBValue) => `$${values.push(value)}`;
  conditions.push(`e.project_id = ${bind(filter.projectId)}`);
  if (filter.event !== undefined) conditions.push(`e.event = ${bind(filter.event)}`);
  if (filter.distinctIds !== undefined) {
    conditions.push(`e.distinct_id IN (${filter.distinctIds.map(bind).join(", ") || "NULL"})`);
  }
  if (filter.uuid !== undefined) conditions.push(`e.uuid = ${bind(filter.uuid)}::UUID`);
  if (filter.afterMicros !== undefined) {
    conditions.push(`e.timestamp > make_timestamp(${bind(BigInt(filter.afterMicros))}::BIGINT)`);
  }
  if (filter.beforeMicros !== undefined) {
    conditions.push(`e.timestamp < make_timestamp(${bind(BigInt(filter.beforeMicros))}::BIGINT)`);
  }
  if (filter.historical !== undefined) conditions.push(`e.historical = ${filter.historical}`);
  const filters = filter.properties ?? [];
  conditions.push(...filters.map(eventFilterSql));
  const byTime = filter.order.endsWith("timestamp");
  const descending = filter.order.startsWith("-");
  if (filter.from !== undefined) conditions.push(behind(filter.from, byTime, descending, bind));
  const direction = descending ? "DESC" : "ASC";
  const keys = byTime ? ["e.timestamp", "e.historical", "e.seq"] : ["e.historical", "e.seq"];
  // Only the keys of the page are sorted; the wide columns are fetched for its rows.
  const result = await connection.runAndReadAll(
    `SELECT e.uuid::VARCHAR, e.event, e.distinct_id, epoch_us(e.timestamp), e.properties::VARCHAR, e.elements_chain,
       e.seq, e.historical
     FROM events e ${filters.some(isAboutPerson) ? personOfEvent : ""} WHERE ${conditions.join(" AND ")}
     ORDER BY ${keys.map((key) => `${key} ${direction}`).join(", ")}
     LIMIT ${filter.limit + 1} OFFSET ${filter.offset ?? 0}`,
    values,
  );
  const events = result.getRows().map(
    (row): StoredEvent => ({
      uuid: row[0] as string,
      event: row[1] as string,
      distinctId: row[2] as string,
      timestampMicros: Number(row[3]),
      properties: row[4] as string,
      elementsChain: (row[5] as string | null) ?? "",
      seq: Number(row[6]),
      historical: row[7] as boolean,
    }),
  );
  const hasNext = events.length > filter.limit;
  if (hasNext) events.pop();
  const last = events.at(-1);
  if (!hasNext || last === undefined) return { events, next: undefined };
  const { timestampMicros, historical, seq } = last;
  return { events, next: { timestampMicros, historical, seq } };
}

function behind(
  from: EventPosition,
  byTime: boolean,
  descending: boolean,
  bind: (value: DuckDBValue) => string,
): string {
  const sign = descending ? "<" : ">";
  const historical = String(from.historical);
  const seq = bind(BigInt(from.seq));
  const laneAndSeq = `(e.historical ${sign} ${historical} OR (e.historical = ${historical} AND e.seq ${sign} ${seq}))`;
  if (!byTime) return laneAndSeq;
  const time = `make_timestamp(${bind(BigInt(from.timestampMicros))}::BIGINT)`;
  // The first comparison alone lets the store skip row groups.
  return `e.timestamp ${sign}= ${time} AND (e.timestamp ${sign} ${time} OR ${laneAndSeq})`;
}
