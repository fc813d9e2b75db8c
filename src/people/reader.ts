/** Reads persons; every function works on a read-only connection and takes part in no transaction. */

import { and, asc, eq, gt, sql } from "drizzle-orm";
import type { Lane } from "../journal/segment.ts";
import { parseExactJson } from "../lib/exact-json.ts";
import type { PeopleDb } from "./open.ts";
import { fittingCount, type Person, type PersonText } from "./person.ts";
import { propertiesJson } from "./property-lists.ts";
import { laneCursor, person } from "./schema.ts";

/** The columns of a person, in this order in the raw queries; see `readPerson`. */
export const personFields = {
  id: person.id,
  projectId: person.projectId,
  uuid: person.uuid,
  mainDistinctId: person.mainDistinctId,
  isIdentified: person.isIdentified,
  createdMicros: person.createdMicros,
  version: person.version,
  properties: person.properties,
};

/** How long the properties are, which need not be read for that. */
export const personSize = { bytes: sql<number>`octet_length(${person.properties})` };

/** A row of these. */
export type StoredPerson = Omit<Person, "properties"> & { properties: string };

type PersonRow = [number, number, string, string, number, number, number, string];

/** `personFields` of a table called `p`. */
const personColumns =
  "p.id, p.project_id, p.uuid, p.main_distinct_id, p.is_identified, p.created_at, p.version, p.properties";

/** A nested question, because SQLite takes longer for one that joins the two tables. */
const personByDistinctIdSql = `SELECT ${personColumns} FROM person AS p
  WHERE p.id = (SELECT person_id FROM distinct_id WHERE project_id = ? AND distinct_id = ?)`;

/** The last sequence number of each lane whose effects are in the store. */
export function laneCursors(db: PeopleDb): Record<Lane, number> {
  const cursors: Record<Lane, number> = { realtime: 0, historical: 0 };
  for (const { lane, seq } of db.select().from(laneCursor).all()) cursors[lane] = seq;
  return cursors;
}

/** The person who has a distinct id. */
export function personByDistinctId(db: PeopleDb, projectId: number, distinctId: string): Person | undefined {
  const found = personTextByDistinctId(db, projectId, distinctId);
  if (found === undefined) return undefined;
  const { propertiesText, storedProperties: _, ...rest } = found;
  return { ...rest, properties: parseExactJson(propertiesText) as Record<string, unknown> };
}

/** As `personByDistinctId`, the properties still text. */
export function personTextByDistinctId(
  db: PeopleDb,
  projectId: number,
  distinctId: string,
): PersonText | undefined {
  // Raw, because every answer about flags may ask this.
  const query = db.$client.query<PersonRow, [number, string]>(personByDistinctIdSql);
  const [row] = query.values(projectId, distinctId) as PersonRow[];
  return row === undefined ? undefined : personText(db, row);
}

/**
 * The persons of many distinct ids at once; ids that nobody has are left out. Properties stay text: made for joining
 * persons onto up to 10,000 events.
 */
export function personTextsByDistinctIds(
  db: PeopleDb,
  projectId: number,
  distinctIds: Iterable<string>,
): Map<string, PersonText> {
  const query = db.$client.query<[string, number], [number, string]>(`
    SELECT d.distinct_id, d.person_id FROM json_each(?2) AS wanted
    CROSS JOIN distinct_id AS d ON d.project_id = ?1 AND d.distinct_id = wanted.value`);
  const owners = query.values(projectId, JSON.stringify([...new Set(distinctIds)])) as [string, number][];
  const persons = personTextsByIds(db, new Set(owners.map(([, id]) => id)));
  return new Map(
    owners.flatMap(([distinctId, id]) => (persons.has(id) ? [[distinctId, persons.get(id)!]] : [])),
  );
}

/** Who has a distinct id. */
export interface DistinctIdOwner {
  distinctId: string;
  personUuid: string;
  isIdentified: boolean;
}

/** Whose these distinct ids are; ids without a person are left out. */
export function distinctIdOwners(
  db: PeopleDb,
  projectId: number,
  distinctIds: readonly string[],
): DistinctIdOwner[] {
  const query = db.$client.query<[string, string, number], [number, string]>(`
    SELECT d.distinct_id, p.uuid, p.is_identified FROM json_each(?2) AS wanted
    CROSS JOIN distinct_id AS d ON d.project_id = ?1 AND d.distinct_id = wanted.value
    CROSS JOIN person AS p ON p.id = d.person_id`);
  const rows = query.values(projectId, JSON.stringify(distinctIds)) as [string, string, number][];
  return rows.map(([distinctId, personUuid, isIdentified]) => ({
    ...{ distinctId, personUuid, isIdentified: isIdentified === 1 },
  }));
}

export function personByUuid(db: PeopleDb, projectId: number, uuid: string): Person | undefined {
  const found = db
    .select(personFields)
    .from(person)
    .where(and(eq(person.projectId, projectId), eq(person.uuid, uuid)))
    .get();
  return found && readPerson(db, found);
}

/**
 * All persons of a project in pages, by number: go on after the last one's `id` until a page is empty. One of large
 * persons is shorter than the limit.
 */
export function personsPage(
  db: PeopleDb,
  projectId: number,
  { afterId = 0, limit = 1_000 }: { afterId?: number; limit?: number } = {},
): Person[] {
  const isNext = and(eq(person.projectId, projectId), gt(person.id, afterId));
  const sizes = db.select(personSize).from(person).where(isNext).orderBy(asc(person.id)).limit(limit).all();
  return db
    .select(personFields)
    .from(person)
    .where(isNext)
    .orderBy(asc(person.id))
    .limit(fittingCount(sizes.map(({ bytes }) => bytes)))
    .all()
    .map((row) => readPerson(db, row));
}

/** The distinct ids of persons, each person's main id first, then by time of joining. */
export function distinctIdsOf(
  db: PeopleDb,
  persons: readonly Pick<Person, "id" | "mainDistinctId">[],
): Map<number, string[]> {
  const query = db.$client.query<[number, string], [string]>(`
    SELECT d.person_id, d.distinct_id FROM json_each(?) AS wanted
    CROSS JOIN distinct_id AS d ON d.person_id = wanted.value ORDER BY d.person_id, d.joined`);
  const ids = new Map(persons.map(({ id, mainDistinctId }) => [id, [mainDistinctId]]));
  for (const [personId, distinctId] of query.values(JSON.stringify([...ids.keys()])) as [number, string][]) {
    const list = ids.get(personId)!;
    if (distinctId !== list[0]) list.push(distinctId);
  }
  return ids;
}

/** Persons by number; gone ones are left out. */
function personTextsByIds(db: PeopleDb, ids: Iterable<number>): Map<number, PersonText> {
  const query = db.$client.query<PersonRow, [string]>(`
    SELECT ${personColumns} FROM json_each(?) AS wanted CROSS JOIN person AS p ON p.id = wanted.value`);
  const rows = query.values(JSON.stringify([...ids])) as PersonRow[];
  return new Map(rows.map((row) => [row[0], personText(db, row)]));
}

/** A person whose columns were selected. */
export function readPerson(db: PeopleDb, { properties, ...rest }: StoredPerson): Person {
  return {
    ...rest,
    properties: parseExactJson(propertiesJson(db.$client, properties)) as Record<string, unknown>,
  };
}

function personText(db: PeopleDb, row: PersonRow): PersonText {
  const [id, projectId, uuid, mainDistinctId, isIdentified, createdMicros, version, storedProperties] = row;
  return {
    id,
    projectId,
    uuid,
    mainDistinctId,
    isIdentified: isIdentified === 1,
    createdMicros,
    version,
    storedProperties,
    get propertiesText() {
      return propertiesJson(db.$client, storedProperties);
    },
  };
}
