/**
 * Reads events, persons or groups of a project in pages: whoever exports asks for one after the other. So no export holds
 * a connection, a file or much memory of the engine, and an engine that is started again in between does no harm.
 */

import { type Lane, lanes } from "../../journal/segment.ts";
import { Portion } from "../../lib/portion.ts";
import { isoFromMicros } from "../../lib/time.ts";
import type { PeopleDb } from "../../people/open.ts";
import { distinctIdsOf, personsPage } from "../../people/reader.ts";
import { exportedColumns } from "../columns.ts";
import { type Dialect, type EventSql, shownColumns } from "../dialect.ts";
import { type ExportRow, type ExportSubject, exportColumns } from "./columns.ts";

export interface ExportRequest {
  projectId: number;
  subject: ExportSubject;
  /** Epoch microseconds; events from this time on, persons and groups that were created then. */
  fromMicros?: number;
  /** Epoch microseconds; before this time. */
  toMicros?: number;
  /** Where the page before ended; left out for the first. */
  after?: ExportPosition;
}

export interface ExportPosition {
  /** Of events: lane and number, rows to read at once, and up to which numbers the export goes. */
  events?: { lane: Lane; seq: number; rows: number; until: Record<Lane, number> };
  personId?: number;
  group?: { typeIndex: number; key: string };
}

export interface ExportPage {
  rows: ExportRow[];
  /** Undefined behind the last page. */
  next: ExportPosition | undefined;
}

export interface ExportSources {
  store: EventSql;
  people: PeopleDb;
  /** Up to which number each lane can be read. */
  loadedSeqs: Record<Lane, number>;
}

/** What a page should weigh, in characters; how many events that are is seen from the page before. */
const pageLength = 8 * 1024 * 1024;
const eventRowsMax = 8_192;
const isInstant = exportColumns.events.map(({ kind }) => kind === "instant");
const propertiesPlace = exportedColumns.indexOf("properties");
/** Numbers looked through at once for events of the project. */
const windowSeqs = 4_000_000;
const peopleRowsMax = 250;

/** A page of an export. Events are in the order of arrival: historical after realtime. */
export async function exportPage(sources: ExportSources, request: ExportRequest): Promise<ExportPage> {
  switch (request.subject) {
    case "events":
      return await eventPage(sources, request);
    case "persons":
      return personPage(sources.people, request);
    case "groups":
      return groupPage(sources.people, request);
  }
}

async function eventPage({ store, loadedSeqs }: ExportSources, request: ExportRequest): Promise<ExportPage> {
  const position = request.after?.events ?? {
    ...{ lane: "realtime" as const, seq: 0, rows: 1 },
    until: loadedSeqs,
  };
  const { lane, seq, until } = position;
  const end = Math.min(seq + windowSeqs, until[lane]);
  const last = await lastOfPage(store, request, { lane, after: seq, end, rows: position.rows });
  const rows = last > seq ? await eventRows(store, request, { lane, after: seq, last }) : [];
  const next = last < until[lane] ? { lane, seq: last } : startOf(lanes[lanes.indexOf(lane) + 1]);
  return {
    rows,
    next: next && { events: { ...next, until, rows: rowsFor(rows, position.rows) } },
  };
}

function startOf(lane: Lane | undefined): { lane: Lane; seq: number } | undefined {
  return lane && { lane, seq: 0 };
}

interface Range {
  lane: Lane;
  after: number;
}

/** The number of the page's last event, found by the narrow columns alone; the end when there are fewer. */
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
    `SELECT ${shownColumns(dialect, exportedColumns)}, o.person_uuid::VARCHAR
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

function between(dialect: Dialect, { fromMicros, toMicros }: ExportRequest): string {
  const conditions = ["true"];
  if (fromMicros !== undefined) conditions.push(`${dialect.time("e")} >= ${dialect.moment(fromMicros)}`);
  if (toMicros !== undefined) conditions.push(`${dialect.time("e")} < ${dialect.moment(toMicros)}`);
  return conditions.join(" AND ");
}

/** How many events the next page should have, when its events are like those of this one. */
function rowsFor(rows: readonly ExportRow[], asked: number): number {
  const portion = new Portion(pageLength, eventRowsMax, asked);
  portion.follow(
    rows.reduce((sum, row) => sum + (row[propertiesPlace] as string).length, 0),
    rows.length,
  );
  return portion.rows;
}

/** From the people store, which knows the order of a person's ids: the main one first. */
function personPage(people: PeopleDb, request: ExportRequest): ExportPage {
  const { projectId, after } = request;
  const persons = personsPage(people, projectId, { afterId: after?.personId ?? 0, limit: peopleRowsMax });
  const ids = distinctIdsOf(people, persons);
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

function groupPage(people: PeopleDb, request: ExportRequest): ExportPage {
  const { typeIndex, key } = request.after?.group ?? { typeIndex: -1, key: "" };
  const groups = people.$client
    .query<[string, number, string, number, string], [number, number, string]>(
      `SELECT t.name, g.type_index, g.group_key, g.created_at, g.properties
       FROM project_group g JOIN group_type t ON t.project_id = g.project_id AND t.type_index = g.type_index
       WHERE g.project_id = ? AND (g.type_index, g.group_key) > (?, ?)
       ORDER BY g.type_index, g.group_key LIMIT ${peopleRowsMax}`,
    )
    .values(request.projectId, typeIndex, key) as [string, number, string, number, string][];
  const rows = groups
    .filter(([, , , createdMicros]) => isWithin(createdMicros, request))
    .map(([type, index, groupKey, createdMicros, properties]) => [
      ...[type, index, groupKey, isoFromMicros(createdMicros), properties],
    ]);
  const last = groups.at(-1);
  const isLast = last === undefined || groups.length < peopleRowsMax;
  return { rows, next: isLast ? undefined : { group: { typeIndex: last[1], key: last[2] } } };
}

function isWithin(micros: number, { fromMicros = -Infinity, toMicros = Infinity }: ExportRequest): boolean {
  return micros >= fromMicros && micros < toMicros;
}
