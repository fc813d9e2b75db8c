/** The documented views, as SQL over the event store and restricted to one project. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { DuckDBConnection } from "@duckdb/node-api";
import { quoted } from "../events/sql-text.ts";
import type { PeopleDb } from "../people/open.ts";
import type { ViewName } from "./statement.ts";

/** Where the rows of the views come from. */
export interface ViewSources {
  people: PeopleDb;
  /** For files that are read back at once. */
  workFolder: string;
}

const eventColumns = `e.uuid, e.event, e.distinct_id, e.timestamp, e.received_at, e.properties,
  coalesce(e.elements_chain, '') AS elements_chain, e.historical, e.seq`;

/** Events of a project, with the person that each distinct id belongs to now. */
export function eventsSql(database: string, projectId: number): string {
  return `SELECT ${eventColumns}, d.person_uuid AS person_id
    FROM "${database}".main.events e
    LEFT JOIN (SELECT * FROM "${database}".main.person_distinct_id WHERE project_id = ${projectId}) d
      ON d.distinct_id = e.distinct_id
    WHERE e.project_id = ${projectId}`;
}

/** The same without the persons, for statements that do not read them: no join is to be paid for. */
function eventsAloneSql(database: string, projectId: number): string {
  return `SELECT ${eventColumns} FROM "${database}".main.events e WHERE e.project_id = ${projectId}`;
}

function personsSql(database: string, projectId: number): string {
  // The main id first, then by time of joining.
  return `SELECT p.uuid AS id, p.created_at, p.properties,
      list_prepend(p.main_distinct_id, list_filter(coalesce(d.ids, []), lambda i : i <> p.main_distinct_id)) AS distinct_ids
    FROM "${database}".main.person p
    LEFT JOIN (SELECT person_uuid, list(distinct_id ORDER BY joined) AS ids
      FROM "${database}".main.person_distinct_id WHERE project_id = ${projectId} GROUP BY person_uuid) d
      ON d.person_uuid = p.uuid
    WHERE p.project_id = ${projectId}`;
}

export interface ViewRequest {
  projectId: number;
  views: ReadonlySet<ViewName>;
  /** Without it `events` has no column `person_id`. */
  readsPersonId: boolean;
}

/** Makes the views that a statement reads; they are the connection's own and go with it. */
export async function createViews(
  connection: DuckDBConnection,
  sources: ViewSources,
  { projectId, views, readsPersonId }: ViewRequest,
): Promise<void> {
  const database = await databaseName(connection);
  if (views.has("events")) {
    const sql = readsPersonId ? eventsSql : eventsAloneSql;
    await connection.run(`CREATE TEMP VIEW events AS ${sql(database, projectId)}`);
  }
  if (views.has("persons")) {
    await connection.run(`CREATE TEMP VIEW persons AS ${personsSql(database, projectId)}`);
  }
  if (views.has("groups")) await createGroups(connection, sources, projectId);
}

/** The catalog of the event store; named after its file. */
export async function databaseName(connection: DuckDBConnection): Promise<string> {
  const rows = await connection.runAndReadAll("SELECT current_database()");
  return rows.getRows()[0]![0] as string;
}

/** Groups live in the people store; a copy is made for the connection. */
export async function createGroups(
  connection: DuckDBConnection,
  { people, workFolder }: ViewSources,
  projectId: number,
): Promise<void> {
  const rows = people.$client
    .query(
      `SELECT t.name AS type, g.type_index, g.group_key AS key, g.created_at AS created, g.properties
       FROM project_group g JOIN group_type t ON t.project_id = g.project_id AND t.type_index = g.type_index
       WHERE g.project_id = ? ORDER BY g.id`,
    )
    .all(projectId) as Record<string, unknown>[];
  const path = join(workFolder, `groups-${crypto.randomUUID()}.ndjson`);
  await writeFile(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""), { mode: 0o600 });
  try {
    await connection.run(
      `CREATE TEMP TABLE groups AS
       SELECT type, type_index, key, make_timestamp(created) AS created_at, properties::JSON AS properties
       FROM read_ndjson(${quoted(path)}, maximum_object_size = 67108864, columns =
         {type: 'VARCHAR', type_index: 'INTEGER', key: 'VARCHAR', created: 'BIGINT', properties: 'VARCHAR'})`,
    );
  } finally {
    await Bun.file(path).delete();
  }
}
