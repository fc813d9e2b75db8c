/** What the event store copies of persons. */

import { storableJson } from "../lib/unicode.ts";
import type { PeopleChange } from "./changes.ts";
import type { PeopleDb } from "./open.ts";
import { isListed, propertiesJson } from "./property-lists.ts";

/** Persons that are in memory at once; each may have half a megabyte of properties. */
const personsAtOnce = 250;
const ownersAtOnce = 20_000;

export interface PersonName {
  projectId: number;
  uuid: string;
}

export interface PersonCopy extends PersonName {
  id: number;
  createdMicros: number;
  mainDistinctId: string;
  /** JSON. */
  properties: string;
}

/** Whose a distinct id is. */
export interface OwnerCopy {
  projectId: number;
  distinctId: string;
  personUuid: string;
  /** Order of joining. */
  joined: number;
}

export type OwnerName = Pick<OwnerCopy, "projectId" | "distinctId">;

/** Whom changes are about: persons, and ids that may have another owner now. Each once. */
export function changedNames(changes: readonly PeopleChange[]): {
  persons: PersonName[];
  owners: OwnerName[];
} {
  const persons = new Map<string, PersonName>();
  const owners = new Map<string, OwnerName>();
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

/** Persons that are gone are left out. */
export function* personCopies(db: PeopleDb, persons: readonly PersonName[]): Generator<PersonCopy> {
  for (let start = 0; start < persons.length; start += personsAtOnce)
    yield* someCopies(db, persons.slice(start, start + personsAtOnce));
}

function someCopies(db: PeopleDb, persons: readonly PersonName[]): PersonCopy[] {
  const query = db.$client.query(`
    SELECT ${personColumns} FROM json_each(?2) AS wanted
    CROSS JOIN person AS p ON p.project_id = ?1 AND p.uuid = wanted.value`);
  // SQLite would parse an object once for each of its members.
  return byProject(persons).flatMap(([projectId, named]) => {
    const uuids = JSON.stringify(named.map(({ uuid }) => uuid));
    return (query.all(projectId, uuids) as PersonCopy[]).map((row) => copyOf(db, row));
  });
}

const byProject = <Named extends { projectId: number }>(names: readonly Named[]) => [
  ...Map.groupBy(names, ({ projectId }) => projectId),
];

/** Ids that nobody has are left out. */
export function ownerCopies(db: PeopleDb, ids: readonly OwnerName[]): OwnerCopy[] {
  const query = db.$client.query(`
    SELECT ${ownerColumns} FROM json_each(?2) AS wanted
    CROSS JOIN distinct_id AS d ON d.project_id = ?1 AND d.distinct_id = wanted.value
    CROSS JOIN person AS p ON p.id = d.person_id`);
  return byProject(ids).flatMap(
    ([projectId, named]) =>
      query.all(projectId, JSON.stringify(named.map(({ distinctId }) => distinctId))) as OwnerCopy[],
  );
}

/** Persons of all projects, by number. */
export function* allPersonCopies(db: PeopleDb): Generator<PersonCopy[]> {
  const query = db.$client.query(
    `SELECT ${personColumns} FROM person AS p WHERE p.id > ? ORDER BY p.id LIMIT ?`,
  );
  for (let afterId = 0; ; ) {
    const page = (query.all(afterId, personsAtOnce) as PersonCopy[]).map((row) => copyOf(db, row));
    if (page.length === 0) return;
    yield page;
    afterId = page.at(-1)!.id;
  }
}

/** Distinct ids of all projects that somebody has, by project and id. */
export function* allOwnerCopies(db: PeopleDb): Generator<OwnerCopy[]> {
  const query = db.$client.query(
    `SELECT ${ownerColumns}
     FROM distinct_id d CROSS JOIN person p ON p.id = d.person_id
     WHERE (d.project_id, d.distinct_id) > (?, ?) ORDER BY d.project_id, d.distinct_id LIMIT ?`,
  );
  for (let after: OwnerName = { projectId: Number.MIN_SAFE_INTEGER, distinctId: "" }; ; ) {
    const page = query.all(after.projectId, after.distinctId, ownersAtOnce) as OwnerCopy[];
    if (page.length === 0) return;
    yield page;
    after = page.at(-1)!;
  }
}

/** Of a table called `p`. */
const personColumns = `p.id, p.project_id AS projectId, p.uuid, p.created_at AS createdMicros,
  p.main_distinct_id AS mainDistinctId, p.properties`;

/** Of tables called `d` and `p`. */
const ownerColumns = "d.project_id AS projectId, d.distinct_id AS distinctId, p.uuid AS personUuid, d.joined";

/** Properties as stored become JSON; stores of versions before 0.2 may hold what DuckDB does not read as such. */
function copyOf(db: PeopleDb, person: PersonCopy): PersonCopy {
  const { properties } = person;
  const json = isListed(properties) ? propertiesJson(db.$client, properties) : storableJson(properties);
  return { ...person, properties: json };
}
