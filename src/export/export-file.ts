/** Writes events, persons or groups of a project into a file, as a stream: nothing is held in memory as a whole. */

import { open, rm } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { type Static, Type } from "@sinclair/typebox";
import { quoted } from "../events/sql-text.ts";
import { distinctIdsOf, personsPage } from "../people/reader.ts";
import { createGroups, databaseName, eventsSql, type ViewSources } from "../query/views.ts";
import { Count, exactly } from "../shapes.ts";

export const exportSubjects = ["events", "persons", "groups"] as const;
export type ExportSubject = (typeof exportSubjects)[number];
export const exportFormats = ["parquet", "ndjson", "csv"] as const;
export type ExportFormat = (typeof exportFormats)[number];

export interface ExportRequest {
  projectId: number;
  subject: ExportSubject;
  format: ExportFormat;
  /** Epoch microseconds; events from this time on, persons and groups that were created then. */
  fromMicros?: number;
  /** Epoch microseconds; before this time. */
  toMicros?: number;
}

export interface ExportedFile {
  /** In the work folder; belongs to whoever asked, who removes it. */
  path: string;
  rows: number;
}

/** What `export … --json` prints. */
export const ExportSummary = exactly({
  rows: Count,
  file: Type.String({ description: "Absolute path." }),
});
export type ExportSummary = Static<typeof ExportSummary>;

const personsAtOnce = 2_000;

export const copyOptions: Record<ExportFormat, string> = {
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
  return `SELECT uuid, event, distinct_id, ${instant("timestamp", request)}, ${instant("received_at", request)},
      ${json("properties", request)}, elements_chain, historical, seq, person_id
    FROM (${eventsSql(await databaseName(connection), request.projectId)})
    WHERE ${between("timestamp", request)} ORDER BY historical, seq`;
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
  return `SELECT id, ${instant("created_at", request)}, ${json("properties", request)}, ${listColumn("distinct_ids", request.format)}
    FROM (SELECT id, make_timestamp(created) AS created_at, properties, distinct_ids
      FROM read_ndjson(${quoted(source)}, maximum_object_size = 67108864,
        columns = {id: 'UUID', created: 'BIGINT', properties: 'JSON', distinct_ids: 'VARCHAR[]'}))
    WHERE ${between("created_at", request)} ORDER BY created_at, id`;
}

async function groupRows(
  connection: DuckDBConnection,
  sources: ViewSources,
  request: ExportRequest,
): Promise<string> {
  await createGroups(connection, sources, request.projectId);
  return `SELECT type, type_index, key, ${instant("created_at", request)}, ${json("properties", request)}
    FROM temp.main.groups WHERE ${between("created_at", request)} ORDER BY type_index, key`;
}

function between(column: string, { fromMicros, toMicros }: ExportRequest): string {
  const conditions = ["true"];
  if (fromMicros !== undefined) conditions.push(`${column} >= make_timestamp(${fromMicros})`);
  if (toMicros !== undefined) conditions.push(`${column} < make_timestamp(${toMicros})`);
  return conditions.join(" AND ");
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

/** CSV has no lists; there they are JSON. */
export function listColumn(column: string, format: ExportFormat): string {
  return format === "csv" ? `to_json(${column})::VARCHAR AS ${column}` : column;
}
