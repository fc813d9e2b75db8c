/** Rows of persons that the event store replicates. */

import { sanitizeJson } from "../lib/json/canonical.ts";
import type { PersonChange } from "./changes.ts";
import type { PersonsDb } from "./open.ts";
import { isCompact, propertiesJson } from "./property-key-sets.ts";

/** Persons per batch; each can have 0.5 MB of properties. */
export const personsAtOnce = 250;
export const ownersAtOnce = 20_000;

export interface PersonKey {
  projectId: number;
  uuid: string;
}

export interface PersonRow extends PersonKey {
  id: number;
  createdMicros: number;
  mainDistinctId: string;
  /** JSON. */
  properties: string;
}

/** The person of a distinct ID. */
export interface DistinctIdRow {
  projectId: number;
  distinctId: string;
  personUuid: string;
  /** Order of joining. */
  joined: number;
}

export type DistinctIdKey = Pick<DistinctIdRow, "projectId" | "distinctId">;

/** The unique persons, and distinct IDs with a possibly different person, that changes refer to. */
export function changedIds(changes: readonly PersonChange[]): {
  persons: PersonKey[];
  owners: DistinctIdKey[];
} {
  const persons = new Map<string, PersonKey>();
  const owners = new Map<string, DistinctIdKey>();
  for (const change of changes) {
    const { projectId, personUuid } = change;
    persons.set(`${projectId}:${personUuid}`, { projectId, uuid: personUuid });
    if (change.kind === "distinct_id") {
      const { distinctId } = change;
      owners.set(`${projectId}:${distinctId}`, { projectId, distinctId });
    }
  }
  return { persons: [...persons.values()], owners: [...owners.values()] };
}

/** Omits persons that no longer exist. */
export function* changedPersonRows(db: PersonsDb, persons: readonly PersonKey[]): Generator<PersonRow> {
  for (let start = 0; start < persons.length; start += personsAtOnce)
    yield* someCopies(db, persons.slice(start, start + personsAtOnce));
}

function someCopies(db: PersonsDb, persons: readonly PersonKey[]): PersonRow[] {
  const query = db.$client.query(`
    SELECT ${personColumns} FROM json_each(?2) AS wanted
    CROSS JOIN person AS p ON p.project_id = ?1 AND p.uuid = wanted.value`);
  // UUIDs as an array per project: SQLite parses JSON objects again for every member.
  return byProject(persons).flatMap(([projectId, named]) => {
    const uuids = JSON.stringify(named.map(({ uuid }) => uuid));
    return (query.all(projectId, uuids) as PersonRow[]).map((row) => toCopy(db, row));
  });
}

const byProject = <Named extends { projectId: number }>(names: readonly Named[]) => [
  ...Map.groupBy(names, ({ projectId }) => projectId),
];

/** Omits IDs without a person. */
export function changedDistinctIdRows(db: PersonsDb, ids: readonly DistinctIdKey[]): DistinctIdRow[] {
  const query = db.$client.query(`
    SELECT ${ownerColumns} FROM json_each(?2) AS wanted
    CROSS JOIN distinct_id AS d ON d.project_id = ?1 AND d.distinct_id = wanted.value
    CROSS JOIN person AS p ON p.id = d.person_id`);
  return byProject(ids).flatMap(
    ([projectId, named]) =>
      query.all(projectId, JSON.stringify(named.map(({ distinctId }) => distinctId))) as DistinctIdRow[],
  );
}

/** Persons of all projects, ordered by ID. */
export function* allPersonRows(db: PersonsDb): Generator<PersonRow[]> {
  const query = db.$client.query(
    `SELECT ${personColumns} FROM person AS p WHERE p.id > ? ORDER BY p.id LIMIT ?`,
  );
  for (let afterId = 0; ; ) {
    const page = (query.all(afterId, personsAtOnce) as PersonRow[]).map((row) => toCopy(db, row));
    if (page.length === 0) return;
    yield page;
    afterId = page.at(-1)!.id;
  }
}

/** Distinct IDs of all projects that have a person, ordered by project and ID. */
export function* allDistinctIdRows(db: PersonsDb): Generator<DistinctIdRow[]> {
  const query = db.$client.query(
    `SELECT ${ownerColumns}
     FROM distinct_id d CROSS JOIN person p ON p.id = d.person_id
     WHERE (d.project_id, d.distinct_id) > (?, ?) ORDER BY d.project_id, d.distinct_id LIMIT ?`,
  );
  for (let after: DistinctIdKey = { projectId: Number.MIN_SAFE_INTEGER, distinctId: "" }; ; ) {
    const page = query.all(after.projectId, after.distinctId, ownersAtOnce) as DistinctIdRow[];
    if (page.length === 0) return;
    yield page;
    after = page.at(-1)!;
  }
}

/** Columns of table alias `p`. */
const personColumns = `p.id, p.project_id AS projectId, p.uuid, p.created_at AS createdMicros,
  p.main_distinct_id AS mainDistinctId, p.properties`;

/** Columns of table aliases `d` and `p`. */
const ownerColumns = "d.project_id AS projectId, d.distinct_id AS distinctId, p.uuid AS personUuid, d.joined";

/** Serializes stored properties; versions before 0.2 may have stored JSON that DuckDB cannot read. */
function toCopy(db: PersonsDb, person: PersonRow): PersonRow {
  const { properties } = person;
  const json = isCompact(properties) ? propertiesJson(db.$client, properties) : sanitizeJson(properties);
  return { ...person, properties: json };
}
