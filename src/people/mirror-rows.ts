/** What the event store copies of persons, as lines of NDJSON. */

import type { PeopleDb } from "./open.ts";

export interface PersonName {
  projectId: number;
  uuid: string;
}

/** One line per person; persons that are gone are left out. */
export function mirrorLines(db: PeopleDb, persons: readonly PersonName[]): string[] {
  const query = db.$client.query(`
    SELECT ${personColumns} FROM json_each(?) AS wanted
    CROSS JOIN person AS p ON p.project_id = wanted.value ->> 'projectId' AND p.uuid = wanted.value ->> 'uuid'`);
  return (query.values(JSON.stringify(persons)) as PersonRow[]).map(personLine);
}

/** One line per distinct id, with whose it is now; ids that nobody has are left out. */
export function ownerLines(
  db: PeopleDb,
  ids: readonly { projectId: number; distinctId: string }[],
): string[] {
  const query = db.$client.query(`
    SELECT ${ownerColumns} FROM json_each(?) AS wanted
    CROSS JOIN distinct_id AS d
      ON d.project_id = wanted.value ->> 'projectId' AND d.distinct_id = wanted.value ->> 'distinctId'
    CROSS JOIN person AS p ON p.id = d.person_id`);
  return (query.values(JSON.stringify(ids)) as OwnerRow[]).map(ownerLine);
}

/** One line per person of all projects, in pages by number: go on behind the last page's `lastId`. */
export function allPersonLines(
  db: PeopleDb,
  afterId: number,
  limit: number,
): { lines: string[]; lastId: number | undefined } {
  const rows = db.$client
    .query(`SELECT ${personColumns} FROM person AS p WHERE p.id > ? ORDER BY p.id LIMIT ?`)
    .values(afterId, limit) as PersonRow[];
  return { lines: rows.map(personLine), lastId: rows.at(-1)?.[0] };
}

/** One line per distinct id of all projects, in pages: go on behind the last page's `lastKey`. */
export function allOwnerLines(
  db: PeopleDb,
  after: readonly [projectId: number, distinctId: string],
  limit: number,
): { lines: string[]; lastKey: readonly [number, string] | undefined } {
  const rows = db.$client
    .query(
      `SELECT ${ownerColumns}
       FROM (SELECT * FROM distinct_id WHERE (project_id, distinct_id) > (?, ?) ORDER BY project_id, distinct_id LIMIT ?) d
       CROSS JOIN person p ON p.id = d.person_id`,
    )
    .values(...after, limit) as OwnerRow[];
  const last = rows.at(-1);
  return { lines: rows.map(ownerLine), lastKey: last === undefined ? undefined : [last[0], last[1]] };
}

type PersonRow = [
  id: number,
  projectId: number,
  uuid: string,
  created: number,
  main: string,
  properties: string,
];

/** Of a table called `p`. */
const personColumns = "p.id, p.project_id, p.uuid, p.created_at, p.main_distinct_id, p.properties";

function personLine([, projectId, uuid, created, main, properties]: PersonRow): string {
  return (
    `{"project_id":${projectId},"uuid":"${uuid}","created":${created},` +
    `"main_distinct_id":${JSON.stringify(main)},"properties":${properties}}`
  );
}

type OwnerRow = [projectId: number, distinctId: string, personUuid: string, joined: number];

/** Of tables called `d` and `p`. */
const ownerColumns = "d.project_id, d.distinct_id, p.uuid, d.joined";

function ownerLine([projectId, distinctId, personUuid, joined]: OwnerRow): string {
  return JSON.stringify({ project_id: projectId, distinct_id: distinctId, person_uuid: personUuid, joined });
}
