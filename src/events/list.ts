/** Lists stored events in pages: newest first, or in order of time or arrival. */

import type { DuckDBValue } from "@duckdb/node-api";
import type { JsonObject } from "../lib/json.ts";
import { Portion } from "../lib/portion.ts";
import { eventColumns, listedColumns, type StoredEvent } from "./columns.ts";
import { type Dialect, type EventSql, shownColumns } from "./dialect.ts";
import { eventFilterSql, isAboutPerson } from "./event-filters.ts";

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

/** A page ends early when its texts are longer than this together; it has one event at least. */
const pageLengthMax = 32 * 1024 * 1024;
/** Events that are read at once; where some are long, fewer. */
const rowsAtOnce = 500;

/**
 * Reads one page: as many events as asked for, or fewer when they are long.
 *
 * @returns the events, and where the next page starts when there is one.
 * @throws {UnknownQuery} a property filter that cannot be used.
 */
export async function listEvents(
  store: EventSql,
  filter: EventFilter,
): Promise<{ events: StoredEvent[]; next: EventPosition | undefined }> {
  const { projectId, limit } = filter;
  const { from, values } = pageSql(store, filter);
  // One event more than asked for tells that there is a next page.
  if (limit <= rowsAtOnce && !(await store.hasLongEvents(projectId))) {
    const found = await store.rows(`SELECT ${shownColumns(store.dialect, listedColumns)} ${from}`, values);
    return cutTo(limit, found.map(storedEvent));
  }
  return await store.atOneTime(async () => {
    const keys = await store.rows(`SELECT e.historical, e.seq ${from}`, values);
    return cutTo(limit, await readInPortions(store, projectId, keys as [boolean, bigint | number][]));
  });
}

async function readInPortions(
  store: EventSql,
  projectId: number,
  keys: readonly [historical: boolean, seq: bigint | number][],
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
    const found = await store.rows(
      `SELECT ${shownColumns(store.dialect, listedColumns)} FROM events e WHERE e.project_id = ${projectId} AND (${lanes.join(" OR ")})`,
    );
    const read: StoredEvent[] = new Array(wanted.length);
    for (const event of found.map(storedEvent)) {
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

export function positionOf({ timestamp, historical, seq }: StoredEvent): EventPosition {
  return { timestampMicros: timestamp, historical, seq };
}

const textColumns = listedColumns.filter((name) => ["text", "json"].includes(eventColumns[name].kind));

function lengthOf(event: StoredEvent): number {
  let length = 0;
  for (const name of textColumns) length += (event[name] as string | null)?.length ?? 0;
  return length;
}

function storedEvent(row: readonly unknown[]): StoredEvent {
  const event: Record<string, unknown> = {};
  for (let index = 0; index < row.length; index++) event[listedColumns[index]!] = plain(row[index]);
  return event as StoredEvent;
}

/** Whole numbers come as bigint from some engines. */
const plain = (value: unknown) => (typeof value === "bigint" ? Number(value) : value);

/** Everything of the page's statement behind its columns. */
function pageSql(store: EventSql, filter: EventFilter): { from: string; values: DuckDBValue[] } {
  const { dialect } = store;
  const conditions: string[] = [];
  const values: DuckDBValue[] = [];
  const bind = (value: string | number) => dialect.bind(values, value);
  conditions.push(`e.project_id = ${bind(filter.projectId)}`);
  if (filter.event !== undefined) conditions.push(`e.event = ${bind(filter.event)}`);
  if (filter.distinctIds !== undefined) {
    conditions.push(`e.distinct_id IN (${filter.distinctIds.map(bind).join(", ") || "NULL"})`);
  }
  if (filter.uuid !== undefined) conditions.push(`e.uuid = ${dialect.uuid(bind(filter.uuid))}`);
  if (filter.afterMicros !== undefined) {
    conditions.push(`${dialect.time("e")} > ${dialect.moment(bind(filter.afterMicros))}`);
  }
  if (filter.beforeMicros !== undefined) {
    conditions.push(`${dialect.time("e")} < ${dialect.moment(bind(filter.beforeMicros))}`);
  }
  if (filter.historical !== undefined) conditions.push(`e.historical = ${filter.historical}`);
  const filters = filter.properties ?? [];
  conditions.push(...filters.map((one) => eventFilterSql(store, one)));
  const byTime = filter.order.endsWith("timestamp");
  const descending = filter.order.startsWith("-");
  if (filter.from !== undefined) conditions.push(behind(dialect, filter.from, { byTime, descending, bind }));
  const direction = descending ? "DESC" : "ASC";
  const keys = byTime ? [dialect.time("e"), "e.historical", "e.seq"] : ["e.historical", "e.seq"];
  // Only the keys of the page are sorted; the wide columns are fetched for its rows.
  const from = `FROM events e ${filters.some(isAboutPerson) ? dialect.personOfEvent(filter.projectId) : ""} WHERE ${conditions.join(" AND ")}
     ORDER BY ${keys.map((key) => `${key} ${direction}`).join(", ")}
     LIMIT ${filter.limit + 1} OFFSET ${filter.offset ?? 0}`;
  return { from, values };
}

function behind(
  dialect: Dialect,
  from: EventPosition,
  order: { byTime: boolean; descending: boolean; bind: (value: number) => string },
): string {
  const { byTime, descending, bind } = order;
  const sign = descending ? "<" : ">";
  const historical = String(from.historical);
  const seq = bind(from.seq);
  const laneAndSeq = `(e.historical ${sign} ${historical} OR (e.historical = ${historical} AND e.seq ${sign} ${seq}))`;
  if (!byTime) return laneAndSeq;
  const time = dialect.moment(bind(from.timestampMicros));
  const own = dialect.time("e");
  // The first comparison alone lets the store skip row groups.
  return `${own} ${sign}= ${time} AND (${own} ${sign} ${time} OR ${laneAndSeq})`;
}
