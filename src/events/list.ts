/** Lists stored events in pages: newest first, or ordered by time or arrival. */

import type { DuckDBValue } from "@duckdb/node-api";
import { AdaptiveBatchSize } from "../lib/concurrency.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { eventColumns, listedColumns, type StoredEvent } from "./columns.ts";
import { eventFilterSql, isAboutPerson } from "./event-filters.ts";
import { type EventSql, publicColumns, type SqlDialect } from "./sql-dialect.ts";

export const eventOrders = ["-timestamp", "timestamp", "-seq", "seq"] as const;
export type EventOrder = (typeof eventOrders)[number];

export interface EventFilter {
  projectId: number;
  event?: string;
  distinctIds?: readonly string[];
  /** Events of all distinct IDs of this person; the engine resolves it to `distinctIds`. */
  personUuid?: string;
  uuid?: string;
  /** Epoch microseconds, exclusive lower bound. */
  afterMicros?: number;
  /** Epoch microseconds, exclusive upper bound. */
  beforeMicros?: number;
  historical?: boolean;
  /** Filters `{key, value, operator, type}`, joined by AND; `type` is `event` or `person`. */
  properties?: readonly JsonObject[];
  order: EventOrder;
  /** 1 to 10,000. */
  limit: number;
  /** End of the previous page. */
  from?: EventPosition;
  /** Number of events to skip; they are read nevertheless. */
  offset?: number;
}

/** Position of an event in an order; unique within a project. */
export interface EventPosition {
  timestampMicros: number;
  historical: boolean;
  seq: number;
}

/** A page ends early when its strings exceed this length; it has at least one event. */
const pageLengthMax = 32 * 1024 * 1024;
/** Maximum events per read; fewer if some are long. */
const rowsAtOnce = 500;

/**
 * Reads one page: as many events as requested, or fewer if they are long.
 * @returns the events, and the start of the next page if there is one
 * @throws {UnknownQueryError} an unsupported property filter
 */
export async function listEvents(
  store: EventSql,
  filter: EventFilter,
): Promise<{ events: StoredEvent[]; next: EventPosition | undefined }> {
  const { projectId, limit } = filter;
  const { from, values } = pageSql(store, filter);
  // One more event than requested shows whether there is a next page.
  if (limit <= rowsAtOnce && !(await store.hasLongEvents(projectId))) {
    const found = await store.rows(`SELECT ${publicColumns(store.dialect, listedColumns)} ${from}`, values);
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
  const portion = new AdaptiveBatchSize(pageLengthMax / 4, rowsAtOnce);
  for (let length = 0; events.length < keys.length && length < pageLengthMax; ) {
    const wanted = keys.slice(events.length, events.length + portion.rows);
    const position = new Map(wanted.map(([historical, seq], index) => [`${historical}:${seq}`, index]));
    const lanes = [false, true].map((lane) => {
      const seqs = wanted.filter(([historical]) => historical === lane).map(([, seq]) => seq);
      return seqs.length === 0 ? "false" : `(e.historical = ${lane} AND e.seq IN (${seqs.join(", ")}))`;
    });
    const found = await store.rows(
      `SELECT ${publicColumns(store.dialect, listedColumns)} FROM events e WHERE e.project_id = ${projectId} AND (${lanes.join(" OR ")})`,
    );
    const read: StoredEvent[] = new Array(wanted.length);
    for (const event of found.map(storedEvent)) {
      read[position.get(`${event.historical}:${event.seq}`)!] = event;
    }
    const weight = read.reduce((sum, event) => sum + getLength(event), 0);
    portion.follow(weight, read.length);
    length += weight;
    events.push(...read);
  }
  return events;
}

function cutTo(limit: number, events: StoredEvent[]) {
  let length = 0;
  let count = 0;
  // The rest is on the next page.
  while (count < Math.min(limit, events.length) && (count === 0 || length < pageLengthMax)) {
    length += getLength(events[count]!);
    count += 1;
  }
  const page = events.slice(0, count);
  const last = page.at(-1);
  return {
    events: page,
    next: count === events.length || last === undefined ? undefined : getPosition(last),
  };
}

export function getPosition({ timestamp, historical, seq }: StoredEvent): EventPosition {
  return { timestampMicros: timestamp, historical, seq };
}

const textColumns = listedColumns.filter((name) => ["text", "json"].includes(eventColumns[name].kind));

function getLength(event: StoredEvent): number {
  let length = 0;
  for (const name of textColumns) length += (event[name] as string | null)?.length ?? 0;
  return length;
}

function storedEvent(row: readonly unknown[]): StoredEvent {
  const event: Record<string, unknown> = {};
  for (let index = 0; index < row.length; index++) event[listedColumns[index]!] = plain(row[index]);
  return event as StoredEvent;
}

/** Some engines return integers as bigint. */
const plain = (value: unknown) => (typeof value === "bigint" ? Number(value) : value);

/** The page's statement after its columns. */
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
    conditions.push(`${dialect.time("e")} > ${dialect.timestamp(bind(filter.afterMicros))}`);
  }
  if (filter.beforeMicros !== undefined) {
    conditions.push(`${dialect.time("e")} < ${dialect.timestamp(bind(filter.beforeMicros))}`);
  }
  if (filter.historical !== undefined) conditions.push(`e.historical = ${filter.historical}`);
  const filters = filter.properties ?? [];
  conditions.push(...filters.map((filter) => eventFilterSql(store, filter)));
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
  dialect: SqlDialect,
  from: EventPosition,
  order: { byTime: boolean; descending: boolean; bind: (value: number) => string },
): string {
  const { byTime, descending, bind } = order;
  const sign = descending ? "<" : ">";
  const historical = String(from.historical);
  const seq = bind(from.seq);
  const laneAndSeq = `(e.historical ${sign} ${historical} OR (e.historical = ${historical} AND e.seq ${sign} ${seq}))`;
  if (!byTime) return laneAndSeq;
  const time = dialect.timestamp(bind(from.timestampMicros));
  const own = dialect.time("e");
  // The first comparison alone lets the store skip row groups.
  return `${own} ${sign}= ${time} AND (${own} ${sign} ${time} OR ${laneAndSeq})`;
}
