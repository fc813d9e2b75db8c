/** Writes events, persons or groups of a project into a file, as a stream: nothing is held in memory as a whole. */

import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { quoted } from "../events/sql-text.ts";
import { distinctIdsOf, personsPage } from "../people/reader.ts";
import { createGroups, databaseName, eventsSql, type ViewSources } from "../query/views.ts";

export const exportSubjects = ["events", "persons", "groups"] as const;
export type ExportSubject = (typeof exportSubjects)[number];
export const exportFormats = ["parquet", "ndjson", "csv"] as const;
export type ExportFormat = (typeof exportFormats)[number];

export interface ExportRequest {
  projectId: number;
  subject: ExportSubject;
  format: ExportFormat;
  /** Epoch microseconds; events from this time on. */
  fromMicros?: number;
  /** Epoch microseconds; events before this time. */
  toMicros?: number;
}

export interface ExportedFile {
  /** In the work folder; belongs to whoever asked, who removes it. */
  path: string;
  rows: number;
}

const personsAtOnce = 2_000;

const copyOptions: Record<ExportFormat, string> = {
  parquet: "FORMAT parquet, COMPRESSION zstd",
  ndjson: "FORMAT json",
  csv: "FORMAT csv, HEADER",
};

/** Writes the file into the work folder. Events are in the order of arrival: historical after realtime. */
export async function exportFile(
  connection: DuckDBConnection,
  sources: ViewSources,
  request: ExportRequest,
): Promise<ExportedFile> {
  const path = join(sources.workFolder, `export-${crypto.randomUUID()}.${request.format}`);
  const select = { events: eventRows, persons: personRows, groups: groupRows }[request.subject];
  try {
    const sql = await select(connection, sources, request, path);
    const written = await connection.run(`COPY (${sql}) TO ${quoted(path)} (${copyOptions[request.format]})`);
    return { path, rows: written.rowsChanged };
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await rm(`${path}.source`, { force: true });
  }
}

async function eventRows(
  connection: DuckDBConnection,
  _: ViewSources,
  request: ExportRequest,
): Promise<string> {
  const { projectId, fromMicros, toMicros } = request;
  const conditions = ["true"];
  if (fromMicros !== undefined) conditions.push(`timestamp >= make_timestamp(${fromMicros})`);
  if (toMicros !== undefined) conditions.push(`timestamp < make_timestamp(${toMicros})`);
  return `SELECT uuid, event, distinct_id, ${instant("timestamp", request)}, ${instant("received_at", request)},
      ${json("properties", request)}, elements_chain, historical, seq, person_id
    FROM (${eventsSql(await databaseName(connection), projectId)})
    WHERE ${conditions.join(" AND ")} ORDER BY historical, seq`;
}

/** From the people store, which knows the order of a person's ids: the main one first. */
async function personRows(
  _: DuckDBConnection,
  { people }: ViewSources,
  request: ExportRequest,
  path: string,
): Promise<string> {
  const source = `${path}.source`;
  const file = await open(source, "w", 0o600);
  try {
    for (let afterId = 0; ; ) {
      const page = personsPage(people, request.projectId, { afterId, limit: personsAtOnce });
      const ids = distinctIdsOf(people, page);
      const lines = page.map((person) =>
        JSON.stringify({
          id: person.uuid,
          created: person.createdMicros,
          properties: person.properties,
          distinct_ids: ids.get(person.id) ?? [],
        }),
      );
      if (lines.length > 0) await file.write(`${lines.join("\n")}\n`);
      if (page.length < personsAtOnce) break;
      afterId = page.at(-1)!.id;
    }
  } finally {
    await file.close();
  }
  return `SELECT id, ${instant("created_at", request)}, ${json("properties", request)}, ${list("distinct_ids", request)}
    FROM (SELECT id, make_timestamp(created) AS created_at, properties, distinct_ids
      FROM read_ndjson(${quoted(source)}, maximum_object_size = 67108864,
        columns = {id: 'UUID', created: 'BIGINT', properties: 'JSON', distinct_ids: 'VARCHAR[]'}))
    ORDER BY created_at, id`;
}

async function groupRows(
  connection: DuckDBConnection,
  sources: ViewSources,
  request: ExportRequest,
): Promise<string> {
  await createGroups(connection, sources, request.projectId);
  return `SELECT type, type_index, key, ${instant("created_at", request)}, ${json("properties", request)}
    FROM temp.main.groups ORDER BY type_index, key`;
}

/** Parquet has instants of its own; elsewhere they are ISO 8601 in UTC. */
function instant(column: string, { format }: ExportRequest): string {
  return format === "parquet"
    ? `${column}::TIMESTAMPTZ AS ${column}`
    : `strftime(${column}, '%Y-%m-%dT%H:%M:%S.%fZ') AS ${column}`;
}

function json(column: string, { format }: ExportRequest): string {
  return format === "ndjson" ? `${column}::JSON AS ${column}` : `${column}::VARCHAR AS ${column}`;
}

function list(column: string, { format }: ExportRequest): string {
  return format === "csv" ? `to_json(${column})::VARCHAR AS ${column}` : column;
}
