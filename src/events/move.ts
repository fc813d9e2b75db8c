/** Reads stored events as they were loaded, of all projects, to put them into another event store; and compares the two. */

import { type Lane, lanes } from "../journal/segment.ts";
import { Portion } from "../lib/portion.ts";
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

/** A stored event with everything that belongs to it. */
export type MovedEvent = [
  projectId: number,
  seq: number,
  uuid: string,
  event: string,
  distinctId: string,
  timeMicros: number,
  receivedMicros: number,
  mode: string,
  elementsChain: string | null,
  properties: string,
];

export interface MovePage {
  events: MovedEvent[];
  /** The number that this page goes up to. */
  last: number;
  /** Numbers to read at once next. */
  seqs: number;
}

const pageLength = 16 * 1024 * 1024;
const seqsMax = 20_000;

/** Reads the events of some numbers of a lane, in order. */
export async function movePage(store: EventSql, request: MoveRequest): Promise<MovePage> {
  const { lane, after, until, seqs } = request;
  const { dialect } = store;
  const last = Math.min(until, after + Math.min(seqs, seqsMax));
  const rows = await store.rows(
    `SELECT e.project_id, e.seq, e.uuid::VARCHAR, e.event, e.distinct_id, ${dialect.micros(dialect.time("e"))},
       ${dialect.receivedMicros("e")}, e.mode, e.elements_chain, ${dialect.exactProperties("e")}
     FROM events e WHERE e.project_id > 0 AND e.historical = ${lane === "historical"} AND e.seq > ${after} AND e.seq <= ${last}
     ORDER BY e.seq`,
  );
  const portion = new Portion(pageLength, seqsMax, seqs);
  portion.follow(
    rows.reduce((sum, row) => sum + String(row[9]).length, 0),
    last - after,
  );
  const events = rows.map((row) => row.map((value) => (typeof value === "bigint" ? Number(value) : value)));
  return { events: events as MovedEvent[], last, seqs: portion.rows };
}

/** Of the events of a project and lane: how many there are, and a number that depends on every byte of them. */
export interface EventSum {
  projectId: number;
  lane: Lane;
  count: number;
  /** Decimal. */
  sum: string;
}

/** What each event gives to the sum. */
const fields = ["uuid", "event", "distinct_id", "mode"];

/** Adds up everything that is stored up to some numbers. */
export async function eventSums(store: EventSql, until: Record<Lane, number>): Promise<EventSum[]> {
  const { dialect } = store;
  const text = [
    ...fields.map((name) => `e.${name}::VARCHAR`),
    ...["e.seq", dialect.micros(dialect.time("e")), dialect.receivedMicros("e")].map((n) => `${n}::VARCHAR`),
    "coalesce(e.elements_chain, '')",
    dialect.exactProperties("e"),
  ].join(" || '|' || ");
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
