/** Reads stored events of all projects for migration to another event store, and compares both stores. */

import type { StorableEvent } from "../journal/entry.ts";
import { type Lane, lanes } from "../journal/segment.ts";
import { AdaptiveBatchSize } from "../lib/concurrency.ts";
import { eventColumns, movedColumns } from "./columns.ts";
import type { EventSql } from "./sql-dialect.ts";

export interface MigrationRequest {
  lane: Lane;
  /** Exclusive lower bound of sequence numbers. */
  after: number;
  /** Inclusive upper bound of sequence numbers. */
  until: number;
  /** Sequence numbers per read, as returned by the previous page; initially 1. */
  seqs: number;
}

/** A stored event with all data to migrate, in the order of `movedColumns`. */
export type MigratedEvent = readonly (string | number | boolean | null)[];

export interface MigrationPage {
  events: MigratedEvent[];
  /** The last sequence number of this page. */
  last: number;
  /** Sequence numbers to read for the next page. */
  seqs: number;
}

const propertiesLocation = movedColumns.indexOf("properties");
const pageLength = 16 * 1024 * 1024;
const seqsMax = 20_000;

/** Reads the events of a range of sequence numbers of a lane, in order. */
export async function readMigrationPage(store: EventSql, request: MigrationRequest): Promise<MigrationPage> {
  const { lane, after, until, seqs } = request;
  const { dialect } = store;
  const last = Math.min(until, after + Math.min(seqs, seqsMax));
  const rows = await store.rows(
    `SELECT ${movedColumns.map((name) => dialect.exact("e", name)).join(", ")}
     FROM events e WHERE e.project_id > 0 AND e.historical = ${lane === "historical"} AND e.seq > ${after} AND e.seq <= ${last}
     ORDER BY e.seq`,
  );
  const portion = new AdaptiveBatchSize(pageLength, seqsMax, seqs);
  portion.follow(
    rows.reduce((sum, row) => sum + String(row[propertiesLocation]).length, 0),
    last - after,
  );
  const events = rows.map((row) => row.map((value) => (typeof value === "bigint" ? Number(value) : value)));
  return { events: events as MigratedEvent[], last, seqs: portion.rows };
}

/** The event as it was loaded. */
export function toStorable(row: MigratedEvent, lane: Lane): StorableEvent {
  const event: Record<string, unknown> = {
    historical: lane === "historical",
    // It is known to have no duplicate.
    hasGeneratedUuid: true,
  };
  for (const [index, name] of movedColumns.entries()) {
    const { kind, member } = eventColumns[name];
    event[member!] = kind === "json" ? Buffer.from(row[index] as string) : row[index];
  }
  return event as unknown as StorableEvent;
}

/** Number of events of a project and lane, and a checksum over all their bytes. */
export interface EventSum {
  projectId: number;
  lane: Lane;
  count: number;
  /** Decimal. */
  sum: string;
}

/** Checksums of all stored events up to the given sequence numbers. */
export async function eventSums(store: EventSql, until: Record<Lane, number>): Promise<EventSum[]> {
  const { dialect } = store;
  const text = movedColumns
    .map((name) => dialect.exact("e", name))
    // Null and empty strings are equal: DuckDB's concat ignores null, ClickHouse's returns null.
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
