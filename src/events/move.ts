/** Reads stored events as they were loaded, of all projects, to put them into another event store; and compares the two. */

import type { StorableEvent } from "../journal/entry.ts";
import { type Lane, lanes } from "../journal/segment.ts";
import { Portion } from "../lib/portion.ts";
import { eventColumns, movedColumns } from "./columns.ts";
import type { EventSql } from "./dialect.ts";

export interface MoveRequest {
  lane: Lane;
  /** Events behind this number. */
  after: number;
  /** Up to this number. */
  until: number;
  /** Numbers to read at once; what the page before said, 1 at first. */
  seqs: number;
}

/** A stored event with everything that belongs to it, in the order of `movedColumns`. */
export type MovedEvent = readonly (string | number | boolean | null)[];

export interface MovePage {
  events: MovedEvent[];
  /** The number that this page goes up to. */
  last: number;
  /** Numbers to read at once next. */
  seqs: number;
}

const propertiesPlace = movedColumns.indexOf("properties");
const pageLength = 16 * 1024 * 1024;
const seqsMax = 20_000;

/** Reads the events of some numbers of a lane, in order. */
export async function movePage(store: EventSql, request: MoveRequest): Promise<MovePage> {
  const { lane, after, until, seqs } = request;
  const { dialect } = store;
  const last = Math.min(until, after + Math.min(seqs, seqsMax));
  const rows = await store.rows(
    `SELECT ${movedColumns.map((name) => dialect.exact("e", name)).join(", ")}
     FROM events e WHERE e.project_id > 0 AND e.historical = ${lane === "historical"} AND e.seq > ${after} AND e.seq <= ${last}
     ORDER BY e.seq`,
  );
  const portion = new Portion(pageLength, seqsMax, seqs);
  portion.follow(
    rows.reduce((sum, row) => sum + String(row[propertiesPlace]).length, 0),
    last - after,
  );
  const events = rows.map((row) => row.map((value) => (typeof value === "bigint" ? Number(value) : value)));
  return { events: events as MovedEvent[], last, seqs: portion.rows };
}

/** The event as it was loaded. */
export function storableOf(row: MovedEvent, lane: Lane): StorableEvent {
  const event: Record<string, unknown> = {
    historical: lane === "historical",
    // Nobody looks for copies of it.
    hasMadeUuid: true,
  };
  for (const [index, name] of movedColumns.entries()) {
    const { kind, member } = eventColumns[name];
    event[member!] = kind === "json" ? Buffer.from(row[index] as string) : row[index];
  }
  return event as unknown as StorableEvent;
}

/** Of the events of a project and lane: how many there are, and a number that depends on every byte of them. */
export interface EventSum {
  projectId: number;
  lane: Lane;
  count: number;
  /** Decimal. */
  sum: string;
}

/** Adds up everything that is stored up to some numbers. */
export async function eventSums(store: EventSql, until: Record<Lane, number>): Promise<EventSum[]> {
  const { dialect } = store;
  const text = movedColumns
    .map((name) => dialect.exact("e", name))
    // A text in both engines; null is an empty one in the first, and null in the second.
    .map((value) => `coalesce(concat(${value}, ''), '')`)
    .join(" || '|' || ");
  const sums: EventSum[] = [];
  for (const lane of lanes) {
    const rows = await store.rows(
      `SELECT e.project_id, count(*), ${dialect.sumOfBytes(text)} FROM events e
       WHERE e.project_id > 0 AND e.historical = ${lane === "historical"} AND e.seq <= ${until[lane]}
       GROUP BY e.project_id ORDER BY e.project_id`,
    );
    for (const [projectId, count, sum] of rows) {
      sums.push({ projectId: Number(projectId), lane, count: Number(count), sum: String(sum) });
    }
  }
  return sums;
}
