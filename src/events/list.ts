/** Lists stored events in pages: newest first, or in order of time or arrival. */

import type { DuckDBConnection, DuckDBValue } from "@duckdb/node-api";
import type { JsonObject } from "../lib/json.ts";
import { Portion } from "../lib/portion.ts";
import { inTransaction } from "./database.ts";
import { eventFilterSql, isAboutPerson, personOfEvent } from "./event-filters.ts";
import type { PropertyPlace } from "./property-sql.ts";

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

/** A page ends early when its texts are longer than this together; it has one event at least. */
export const pageLengthMax = 32 * 1024 * 1024;
/** Events that are read at once; where some are long, fewer. */
const rowsAtOnce = 500;

/**
 * Reads one page: as many events as asked for, or fewer when they are long.
 *
 * @returns the events, and where the next page starts when there is one.
 * @throws {UnknownQuery} a property filter that cannot be used.
 */
export async function listEvents(
  connection: DuckDBConnection,
  filter: EventFilter,
  properties?: PropertyPlace,
): Promise<{ events: StoredEvent[]; next: EventPosition | undefined }> {
  const { projectId, limit } = filter;
  // One event more than asked for tells that there is a next page.
  if (limit <= rowsAtOnce && !(await hasLongEvents(connection, projectId))) {
    const { from, values } = pageSql(filter, properties);
    const found = await connection.runAndReadAll(`SELECT ${columns} ${from}`, values);
    return cutTo(limit, found.getRows().map(storedEvent));
  }
  const { from, values } = pageSql(filter, properties);
  // In one transaction: events may go by age between the statements.
  return await inTransaction(connection, async () => {
    const keys = await connection.runAndReadAll(`SELECT e.historical, e.seq ${from}`, values);
    return cutTo(limit, await readInPortions(connection, projectId, keys.getRows() as [boolean, bigint][]));
  });
}

/** Long events are followed by fillers, which is seen without reading any. */
async function hasLongEvents(connection: DuckDBConnection, projectId: number): Promise<boolean> {
  const found = await connection.runAndReadAll(
    `SELECT 1 FROM events WHERE project_id = ${-projectId} LIMIT 1`,
  );
  return found.currentRowCount > 0;
}

async function readInPortions(
  connection: DuckDBConnection,
  projectId: number,
  keys: readonly [historical: boolean, seq: bigint][],
): Promise<StoredEvent[]> {
  const events: StoredEvent[] = [];
  const portion = new Portion(pageLengthMax / 4, rowsAtOnce);
  for (let length = 0; events.length < keys.length && length < pageLengthMax; ) {
    const wanted = keys.slice(events.length, events.length + portion.rows);
    const place = new Map(wanted.map(([historical, seq], index) => [`${historical}:${seq}`, index]));
    const lanes = [false, true].map((lane) => {
      const seqs = wanted.filter(([historical]) => historical === lane).map(([, seq]) => seq);
      return seqs.length === 0 ? "false" : `(e.historical = ${lane} AND e.seq IN (${seqs.join(", ")}))`;
    });
    const found = await connection.runAndReadAll(
      `SELECT ${columns} FROM events e WHERE e.project_id = ${projectId} AND (${lanes.join(" OR ")})`,
    );
    const read: StoredEvent[] = new Array(wanted.length);
    for (const event of found.getRows().map(storedEvent)) {
      read[place.get(`${event.historical}:${event.seq}`)!] = event;
    }
    const weight = read.reduce((sum, event) => sum + lengthOf(event), 0);
    portion.follow(weight, read.length);
    length += weight;
    events.push(...read);
  }
  return events;
}

function cutTo(limit: number, events: StoredEvent[]) {
  let length = 0;
  let count = 0;
  // Whatever is left out is on the next page.
  while (count < Math.min(limit, events.length) && (count === 0 || length < pageLengthMax)) {
    length += lengthOf(events[count]!);
    count += 1;
  }
  const page = events.slice(0, count);
  const last = page.at(-1);
  return { events: page, next: count === events.length || last === undefined ? undefined : positionOf(last) };
}

export function positionOf({ timestampMicros, historical, seq }: StoredEvent): EventPosition {
  return { timestampMicros, historical, seq };
}

function lengthOf({ event, distinctId, properties, elementsChain }: StoredEvent): number {
  return event.length + distinctId.length + properties.length + elementsChain.length;
}

const columns = `e.uuid::VARCHAR, e.event, e.distinct_id, epoch_us(e.timestamp), e.properties::VARCHAR, e.elements_chain,
  e.seq, e.historical`;

function storedEvent(row: readonly unknown[]): StoredEvent {
  return {
    uuid: row[0] as string,
    event: row[1] as string,
    distinctId: row[2] as string,
    timestampMicros: Number(row[3]),
    properties: row[4] as string,
    elementsChain: (row[5] as string | null) ?? "",
    seq: Number(row[6]),
    historical: row[7] as boolean,
  };
}

/** Everything of the page's statement behind its columns. */
function pageSql(filter: EventFilter, properties?: PropertyPlace): { from: string; values: DuckDBValue[] } {
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
  conditions.push(...filters.map((each) => eventFilterSql(each, properties)));
  const byTime = filter.order.endsWith("timestamp");
  const descending = filter.order.startsWith("-");
  if (filter.from !== undefined) conditions.push(behind(filter.from, byTime, descending, bind));
  const direction = descending ? "DESC" : "ASC";
  const keys = byTime ? ["e.timestamp", "e.historical", "e.seq"] : ["e.historical", "e.seq"];
  // Only the keys of the page are sorted; the wide columns are fetched for its rows.
  const from = `FROM events e ${filters.some(isAboutPerson) ? personOfEvent : ""} WHERE ${conditions.join(" AND ")}
     ORDER BY ${keys.map((key) => `${key} ${direction}`).join(", ")}
     LIMIT ${filter.limit + 1} OFFSET ${filter.offset ?? 0}`;
  return { from, values };
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
