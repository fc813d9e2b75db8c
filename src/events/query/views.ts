/** The documented views as SQL over the event store, restricted to one project. */

import type { DuckDBConnection } from "@duckdb/node-api";
import { sanitizeJson } from "../../lib/json/canonical.ts";
import { findPropertyType } from "../../persons/event-definitions.ts";
import type { PersonsDb } from "../../persons/open.ts";
import { eventColumns, exportedColumns } from "../columns.ts";
import { type AppendTable, appendRows } from "../duckdb/append.ts";
import { publicColumn, type SentPropertiesLocation } from "../sql-dialect.ts";
import { quoted } from "../sql-text.ts";
import { personColumns } from "./hogql-tree.ts";
import type { HogqlOptions, TypedHogqlOptions } from "./parse.ts";
import { getTable, type ViewName } from "./statement.ts";
import type { FindColumn, ViewColumns } from "./statement-columns.ts";

/** Adds the types of a project's properties to the options of a HogQL statement. */
export function withTypes(
  hogql: HogqlOptions | undefined,
  { people }: ViewSources,
  projectId: number,
): TypedHogqlOptions | undefined {
  if (hogql === undefined) return undefined;
  const propertyType: TypedHogqlOptions["propertyType"] = (owner, name) => {
    const type = findPropertyType(people, { projectId, owner, name });
    return type === "Numeric" ? "DOUBLE" : type === "Boolean" ? "BOOLEAN" : undefined;
  };
  return { ...hogql, propertyType };
}

/** Sources of the views' rows. */
export interface ViewSources {
  people: PersonsDb;
  /** Materialized properties of events `e`; absent: none. */
  eventProperties?: SentPropertiesLocation;
}

/** The columns that a statement of a project may read instead of JSON. */
export function findColumns({ people, eventProperties }: ViewSources, projectId: number): FindColumn {
  return (name, form) => {
    // In the form of `->>` a number such as 12.0 differs from its column.
    const isEqual =
      form === "member" || findPropertyType(people, { projectId, owner: "event", name }) === "String";
    const column = eventProperties?.findColumn(name);
    return isEqual ? column : undefined;
  };
}

const publicColumns = (hasInstants: boolean): string =>
  exportedColumns
    .map((name) => {
      const value = publicColumn(name, `e.${name}`);
      return `${eventColumns[name].kind === "instant" ? timeSql(value, hasInstants) : value} AS ${name}`;
    })
    .join(", ");

/** A stored time, which is in UTC, as an instant for statements in HogQL. */
const timeSql = (value: string, isInstant: boolean): string =>
  isInstant ? `timezone('UTC', ${value})` : value;

/** Events of a project, with the ID and other columns of the current person of each distinct ID. */
function eventsWithPersonSql(database: string, projectId: number, columns: string): string {
  const createdAt = timeSql("p.created_at", true);
  return `SELECT e.*, p.properties AS ${personColumns.properties}, ${createdAt} AS ${personColumns.created_at}
    FROM (${eventsSql(database, projectId, columns)}) e
    LEFT JOIN (SELECT * FROM "${database}".main.person WHERE project_id = ${projectId}) p ON p.uuid = e.person_id`;
}

/** Events of a project, with the ID of the current person of each distinct ID. */
function eventsSql(database: string, projectId: number, columns: string): string {
  return `SELECT ${columns}, d.person_uuid AS person_id
    FROM "${database}".main.events e
    LEFT JOIN (SELECT * FROM "${database}".main.person_distinct_id WHERE project_id = ${projectId}) d
      ON d.distinct_id = e.distinct_id
    WHERE e.project_id = ${projectId}`;
}

/** Events without persons, for statements that do not need the join. */
function eventsAloneSql(database: string, projectId: number, columns: string): string {
  return `SELECT ${columns} FROM "${database}".main.events e WHERE e.project_id = ${projectId}`;
}

function personsSql(database: string, projectId: number, hasInstants: boolean): string {
  // Main ID first, then by order of joining.
  return `SELECT p.uuid AS id, ${timeSql("p.created_at", hasInstants)} AS created_at, p.properties,
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
  /** If false, `events` has no column `person_id`. */
  readsPersonId: boolean;
  /** If true, it also has the columns of `personColumns`. */
  readsPerson?: boolean;
  /** Further columns of `events`. */
  propertyColumns?: ViewColumns;
  /** The zone of a HogQL statement, whose times are instants. */
  timezone?: string | undefined;
}

/** Creates the views that a statement reads, under the names of `getTable`; they are temporary to the connection. */
export async function createViews(
  connection: DuckDBConnection,
  sources: ViewSources,
  { projectId, views, readsPersonId, readsPerson, propertyColumns = new Map(), timezone }: ViewRequest,
): Promise<void> {
  const hasInstants = timezone !== undefined;
  if (hasInstants) await connection.run(`SET TimeZone = ${quoted(timezone)}`);
  const database = await databaseName(connection);
  if (views.has("events")) {
    const sql = readsPerson ? eventsWithPersonSql : readsPersonId ? eventsSql : eventsAloneSql;
    const further = [...propertyColumns].map(([name, column]) => `, ${column} AS ${name}`).join("");
    const columns = `${publicColumns(hasInstants)}${further}`;
    await connection.run(
      `CREATE TEMP VIEW ${getTable("events").table} AS ${sql(database, projectId, columns)}`,
    );
  }
  if (views.has("persons")) {
    await connection.run(
      `CREATE TEMP VIEW ${getTable("persons").table} AS ${personsSql(database, projectId, hasInstants)}`,
    );
  }
  if (views.has("groups")) await createGroups(connection, sources, { projectId, hasInstants });
}

/** The catalog of the event store, named after its file. */
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
    { kind: "text", getValue: (group) => group.type },
    { kind: "integer", getValue: (group) => group.typeIndex },
    { kind: "text", getValue: (group) => group.key },
    { kind: "bigint", getValue: (group) => group.createdMicros },
    { kind: "text", getValue: (group) => sanitizeJson(group.properties) },
  ],
  filler: (group) => ({ ...group, typeIndex: -1, key: "", properties: "{}" }),
};

/** Groups per batch; each can have 0.5 MB of properties. */
const groupsAtOnce = 250;

/** Copies groups from the person store to a temporary table of the connection. */
async function createGroups(
  connection: DuckDBConnection,
  { people }: ViewSources,
  { projectId, hasInstants }: { projectId: number; hasInstants: boolean },
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
    `CREATE TEMP VIEW ${getTable("groups").table} AS
     SELECT * REPLACE (${timeSql("created_at", hasInstants)} AS created_at) FROM temp.main.group_copy WHERE type_index >= 0`,
  );
}
