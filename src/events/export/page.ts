/**
 * Reads events, persons or groups of a project in pages requested one by one. An export therefore holds no connection,
 * file or much memory of the engine, and survives the engine's restart.
 */

import { type Lane, lanes } from "../../journal/segment.ts";
import { AdaptiveBatchSize } from "../../lib/concurrency.ts";
import { isoFromMicros } from "../../lib/time.ts";
import type { PersonReader } from "../../persons/person-reader.ts";
import { exportedColumns } from "../columns.ts";
import { type EventSql, publicColumns, type SqlDialect } from "../sql-dialect.ts";
import { type ExportRow, type ExportSubject, exportColumns } from "./columns.ts";

export interface ExportRequest {
  projectId: number;
  subject: ExportSubject;
  /** Epoch microseconds, inclusive: time of events, creation of persons and groups. */
  fromMicros?: number;
  /** Epoch microseconds, exclusive. */
  toMicros?: number;
  /** End of the previous page; omitted for the first. */
  after?: ExportPosition;
}

export interface ExportPosition {
  /** For events: lane and sequence number, rows per read, and the last sequence numbers of the export. */
  events?: { lane: Lane; seq: number; rows: number; until: Record<Lane, number> };
  personId?: number;
  group?: { typeIndex: number; key: string };
}

export interface ExportPage {
  rows: ExportRow[];
  /** Undefined after the last page. */
  next: ExportPosition | undefined;
}

export interface ExportSources {
  store: EventSql;
  persons: PersonReader;
  /** Last visible sequence number per lane. */
  loadedSeqs: Record<Lane, number>;
}

/** Target length of a page in characters; the number of events is derived from the previous page. */
const pageLength = 8 * 1024 * 1024;
const eventRowsMax = 8_192;
const isInstant = exportColumns.events.map(({ kind }) => kind === "instant");
const propertiesLocation = exportedColumns.indexOf("properties");
/** Sequence numbers scanned at a time for events of the project. */
const windowSeqs = 4_000_000;
const personRowsMax = 250;

/** A page of an export. Events are ordered by arrival, realtime before historical ones. */
export async function exportPage(sources: ExportSources, request: ExportRequest): Promise<ExportPage> {
  switch (request.subject) {
    case "events":
      return await eventPage(sources, request);
    case "persons":
      return await personPage(sources.persons, request);
    case "groups":
      return await groupPage(sources.persons, request);
  }
}

async function eventPage({ store, loadedSeqs }: ExportSources, request: ExportRequest): Promise<ExportPage> {
  const position = request.after?.events ?? {
    lane: "realtime" as const,
    seq: 0,
    rows: 1,
    until: loadedSeqs,
  };
  const { lane, seq, until } = position;
  const end = Math.min(seq + windowSeqs, until[lane]);
  const last = await lastOfPage(store, request, { lane, after: seq, end, rows: position.rows });
  const rows = last > seq ? await eventRows(store, request, { lane, after: seq, last }) : [];
  const next = last < until[lane] ? { lane, seq: last } : getStart(lanes[lanes.indexOf(lane) + 1]);
  return {
    rows,
    next: next && { events: { ...next, until, rows: rowsFor(rows, position.rows) } },
  };
}

function getStart(lane: Lane | undefined): { lane: Lane; seq: number } | undefined {
  return lane && { lane, seq: 0 };
}

interface Range {
  lane: Lane;
  after: number;
}

/** Sequence number of the page's last event, read from narrow columns only; the end if there are fewer events. */
async function lastOfPage(
  store: EventSql,
  request: ExportRequest,
  { lane, after, end, rows }: Range & { end: number; rows: number },
): Promise<number> {
  if (after >= end) return end;
  const found = await store.rows(
    `SELECT count(*), max(seq) FROM (
       SELECT e.seq AS seq FROM events e
       WHERE e.project_id = ${request.projectId} AND e.historical = ${lane === "historical"}
         AND e.seq > ${after} AND e.seq <= ${end} AND ${between(store.dialect, request)}
       ORDER BY e.seq LIMIT ${rows}) AS found`,
  );
  const [count, last] = found[0]!;
  return Number(count) < rows ? end : Number(last);
}

async function eventRows(
  store: EventSql,
  request: ExportRequest,
  { lane, after, last }: Range & { last: number },
): Promise<ExportRow[]> {
  const { dialect } = store;
  const rows = await store.rows(
    `SELECT ${publicColumns(dialect, exportedColumns)}, o.person_uuid::VARCHAR
     FROM events e LEFT JOIN ${dialect.owners(request.projectId)} o ON o.distinct_id = e.distinct_id
     WHERE e.project_id = ${request.projectId} AND e.historical = ${lane === "historical"}
       AND e.seq > ${after} AND e.seq <= ${last} AND ${between(dialect, request)}
     ORDER BY e.seq`,
  );
  return rows.map((row) =>
    row.map((value, index) => {
      if (isInstant[index]) return value === null ? null : isoFromMicros(Number(value));
      return typeof value === "bigint" ? Number(value) : value;
    }),
  ) as ExportRow[];
}

function between(dialect: SqlDialect, { fromMicros, toMicros }: ExportRequest): string {
  const conditions = ["true"];
  if (fromMicros !== undefined) conditions.push(`${dialect.time("e")} >= ${dialect.timestamp(fromMicros)}`);
  if (toMicros !== undefined) conditions.push(`${dialect.time("e")} < ${dialect.timestamp(toMicros)}`);
  return conditions.join(" AND ");
}

/** Number of events of the next page, assuming a similar size. */
function rowsFor(rows: readonly ExportRow[], asked: number): number {
  const portion = new AdaptiveBatchSize(pageLength, eventRowsMax, asked);
  portion.follow(
    rows.reduce((sum, row) => sum + (row[propertiesLocation] as string).length, 0),
    rows.length,
  );
  return portion.rows;
}

/** From the person store, which orders a person's IDs: main ID first. */
async function personPage(reader: PersonReader, request: ExportRequest): Promise<ExportPage> {
  const { projectId, after } = request;
  const persons = await reader.personPage(projectId, { afterId: after?.personId ?? 0, limit: personRowsMax });
  const ids = await reader.distinctIds(persons);
  const rows = persons
    .filter(({ createdMicros }) => isWithin(createdMicros, request))
    .map((person) => [
      person.uuid,
      isoFromMicros(person.createdMicros),
      JSON.stringify(person.properties),
      JSON.stringify(ids.get(person.id) ?? []),
    ]);
  const last = persons.at(-1);
  return { rows, next: last && { personId: last.id } };
}

async function groupPage(reader: PersonReader, request: ExportRequest): Promise<ExportPage> {
  const groups = await reader.groupPage(request.projectId, request.after?.group, personRowsMax);
  const rows = groups
    .filter(({ createdMicros }) => isWithin(createdMicros, request))
    .map(({ type, typeIndex, key, createdMicros, propertiesJson }) => [
      type,
      typeIndex,
      key,
      isoFromMicros(createdMicros),
      propertiesJson,
    ]);
  const last = groups.at(-1);
  const isLast = last === undefined || groups.length < personRowsMax;
  return { rows, next: isLast ? undefined : { group: { typeIndex: last.typeIndex, key: last.key } } };
}

function isWithin(micros: number, { fromMicros = -Infinity, toMicros = Infinity }: ExportRequest): boolean {
  return micros >= fromMicros && micros < toMicros;
}
