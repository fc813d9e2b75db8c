/** Ids of rows that several engines insert into replicas of one table: each project has ids of its own. */

import type { PersonsDb } from "./open.ts";

/** Above all ids of a table with an AUTOINCREMENT counter, and equal to the project's modulo `idStep`. */
export function newSharedId(
  { $client: client }: PersonsDb,
  table: "ingestion_warning" | "spike",
  { projectId, idStep }: { projectId: number; idStep: number },
): number {
  const { last } = client
    .query<{ last: number }, []>(
      `SELECT max(coalesce((SELECT max(id) FROM ${table}), 0),
        coalesce((SELECT seq FROM sqlite_sequence WHERE name = '${table}'), 0)) AS last`,
    )
    .get()!;
  return (Math.floor(last / idStep) + 1) * idStep + (projectId % idStep);
}
