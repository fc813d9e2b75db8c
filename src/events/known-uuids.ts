/** Counts which uuids are stored. */

import type { DuckDBConnection } from "@duckdb/node-api";
import { uuidTime } from "./columns.ts";
import { quoted } from "./sql-text.ts";

/** How many of these uuids a project's events have. Most carry their time: only row groups of that time are read. */
export async function countKnown(
  connection: DuckDBConnection,
  projectId: number,
  uuids: readonly string[],
): Promise<number> {
  const timed = uuids.filter((uuid) => uuidTime(uuid) !== null);
  const others = uuids.filter((uuid) => uuidTime(uuid) === null);
  const times = timed.map((uuid) => uuidTime(uuid)!).sort((one, other) => one - other);
  const span = `uuid_time BETWEEN ${times[0]} AND ${times.at(-1)}`;
  const known = await count(connection, projectId, timed, span);
  return known + (await count(connection, projectId, others, "uuid_time IS NULL"));
}

async function count(
  connection: DuckDBConnection,
  projectId: number,
  uuids: readonly string[],
  condition: string,
): Promise<number> {
  if (uuids.length === 0) return 0;
  const rows = await connection.runAndReadAll(
    `SELECT count(DISTINCT uuid) FROM events
     WHERE project_id = ${projectId} AND ${condition} AND uuid IN (SELECT unnest([${uuids.map(quoted).join(", ")}]::UUID[]))`,
  );
  return Number(rows.getRows()[0]![0]);
}
