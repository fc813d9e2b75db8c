/** What the event store copies of persons, as lines of NDJSON. */

import type { PeopleDb } from "./open.ts";

export interface PersonName {
  projectId: number;
  uuid: string;
}

/** One line per person; persons that are gone are left out. */
export function mirrorLines(db: PeopleDb, persons: readonly PersonName[]): string[] {
  const query = db.$client.query<[number, string, number, string], [string]>(`
    SELECT p.project_id, p.uuid, p.created_at, p.properties FROM json_each(?) AS wanted
    CROSS JOIN person AS p ON p.project_id = wanted.value ->> 'projectId' AND p.uuid = wanted.value ->> 'uuid'`);
  const rows = query.values(JSON.stringify(persons)) as [number, string, number, string][];
  return rows.map(
    ([projectId, uuid, created, properties]) =>
      `{"project_id":${projectId},"uuid":"${uuid}","created":${created},"properties":${properties}}`,
  );
}
