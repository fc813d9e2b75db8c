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

/** One line per person of all projects, in pages by number: go on behind the last page's `lastId`. */
export function allPersonLines(
  db: PeopleDb,
  afterId: number,
  limit: number,
): { lines: string[]; lastId: number | undefined } {
  const rows = db.$client
    .query("SELECT id, project_id, uuid, created_at, properties FROM person WHERE id > ? ORDER BY id LIMIT ?")
    .values(afterId, limit) as [number, number, string, number, string][];
  const lines = rows.map(
    ([, projectId, uuid, created, properties]) =>
      `{"project_id":${projectId},"uuid":"${uuid}","created":${created},"properties":${properties}}`,
  );
  return { lines, lastId: rows.at(-1)?.[0] };
}

/** One line per distinct id of all projects, in pages: go on behind the last page's `lastKey`. */
export function allOwnerLines(
  db: PeopleDb,
  after: readonly [projectId: number, distinctId: string],
  limit: number,
): { lines: string[]; lastKey: readonly [number, string] | undefined } {
  const rows = db.$client
    .query(
      `SELECT d.project_id, d.distinct_id, p.uuid
       FROM (SELECT * FROM distinct_id WHERE (project_id, distinct_id) > (?, ?) ORDER BY project_id, distinct_id LIMIT ?) d
       CROSS JOIN person p ON p.id = d.person_id`,
    )
    .values(...after, limit) as [number, string, string][];
  const last = rows.at(-1);
  return {
    lines: rows.map(([projectId, distinctId, personUuid]) =>
      JSON.stringify({ project_id: projectId, distinct_id: distinctId, person_uuid: personUuid }),
    ),
    lastKey: last === undefined ? undefined : [last[0], last[1]],
  };
}
