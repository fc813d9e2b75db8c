/** The documented views, as SQL over the event store and restricted to one project. */

import type { DuckDBConnection } from "@duckdb/node-api";
import { storableJson } from "../../lib/unicode.ts";
import type { PeopleDb } from "../../people/open.ts";
import { exportedColumns } from "../columns.ts";
import { shownColumn } from "../dialect.ts";
import { type AppendTable, appendRows } from "../duckdb/append.ts";
import { tableOf, type ViewName } from "./statement.ts";

/** Where the rows of the views come from. */
export interface ViewSources {
  people: PeopleDb;
}

const columns = exportedColumns.map((name) => `${shownColumn(name, `e.${name}`)} AS ${name}`).join(", ");

/** Events of a project, with the person that each distinct id belongs to now. */
function eventsSql(database: string, projectId: number): string {
  return `SELECT ${columns}, d.person_uuid AS person_id
    FROM "${database}".main.events e
    LEFT JOIN (SELECT * FROM "${database}".main.person_distinct_id WHERE project_id = ${projectId}) d
      ON d.distinct_id = e.distinct_id
    WHERE e.project_id = ${projectId}`;
}

/** The same without the persons, for statements that do not read them: no join is to be paid for. */
function eventsAloneSql(database: string, projectId: number): string {
  return `SELECT ${columns} FROM "${database}".main.events e WHERE e.project_id = ${projectId}`;
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

/** Makes the views that a statement reads, under the names of `tableOf`; they are the connection's own and go with it. */
export async function createViews(
  connection: DuckDBConnection,
  sources: ViewSources,
  { projectId, views, readsPersonId }: ViewRequest,
): Promise<void> {
  const database = await databaseName(connection);
  if (views.has("events")) {
    const sql = readsPersonId ? eventsSql : eventsAloneSql;
    await connection.run(`CREATE TEMP VIEW ${tableOf("events").table} AS ${sql(database, projectId)}`);
  }
  if (views.has("persons")) {
    await connection.run(
      `CREATE TEMP VIEW ${tableOf("persons").table} AS ${personsSql(database, projectId)}`,
    );
  }
  if (views.has("groups")) await createGroups(connection, sources, projectId);
}

/** The catalog of the event store; named after its file. */
async function databaseName(connection: DuckDBConnection): Promise<string> {
  const rows = await connection.runAndReadAll("SELECT current_database()");
  return rows.getRows()[0]![0] as string;
}

interface GroupCopy {
  type: string;
  typeIndex: number;
  key: string;
  createdMicros: number;
  properties: string;
}

const groupTable: AppendTable<GroupCopy> = {
  name: "group_copy",
  catalog: "temp",
  columns: [
    { kind: "text", of: (group) => group.type },
    { kind: "integer", of: (group) => group.typeIndex },
    { kind: "text", of: (group) => group.key },
    { kind: "bigint", of: (group) => group.createdMicros },
    { kind: "text", of: (group) => storableJson(group.properties) },
  ],
  filler: (group) => ({ ...group, typeIndex: -1, key: "", properties: "{}" }),
};

/** Groups that are in memory at once; each may have half a megabyte of properties. */
const groupsAtOnce = 250;

/** Groups live in the people store; a copy is made for the connection. */
async function createGroups(
  connection: DuckDBConnection,
  { people }: ViewSources,
  projectId: number,
): Promise<void> {
  await connection.run(
    "CREATE TEMP TABLE group_copy (type VARCHAR, type_index INTEGER, key VARCHAR, created_at TIMESTAMP, properties JSON)",
  );
  const page = people.$client.query(
    `SELECT g.id, t.name AS type, g.type_index AS typeIndex, g.group_key AS key, g.created_at AS createdMicros, g.properties
     FROM project_group g JOIN group_type t ON t.project_id = g.project_id AND t.type_index = g.type_index
     WHERE g.project_id = ? AND g.id > ? ORDER BY g.id LIMIT ${groupsAtOnce}`,
  );
  for (let afterId = 0; ; ) {
    const groups = page.all(projectId, afterId) as (GroupCopy & { id: number })[];
    await appendRows(connection, groupTable, groups);
    if (groups.length < groupsAtOnce) break;
    afterId = groups.at(-1)!.id;
  }
  await connection.run(
    `CREATE TEMP VIEW ${tableOf("groups").table} AS SELECT * FROM temp.main.group_copy WHERE type_index >= 0`,
  );
}
