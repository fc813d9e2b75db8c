/** Reads persons on a read-only connection, outside of transactions. */

import { and, asc, eq, gt, sql } from "drizzle-orm";
import type { Lane } from "../journal/segment.ts";
import { parseExactJson } from "../lib/json/exact.ts";
import type { PersonsDb } from "./open.ts";
import { fittingCount, type Person, type PersonJson } from "./person.ts";
import { propertiesJson, propertiesWith } from "./property-key-sets.ts";
import { laneCursor, person } from "./schema.ts";

/** The columns of a person, in the order of the raw queries; see `readPerson`. */
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

/** Size of the properties, without reading them. */
export const personSize = { bytes: sql<number>`octet_length(${person.properties})` };

/** A row of `personFields`. */
export type StoredPerson = Omit<Person, "properties"> & { properties: string };

type PersonRow = [number, number, string, string, number, number, number, string];

/** `personFields` of table alias `p`. */
const personColumns =
  "p.id, p.project_id, p.uuid, p.main_distinct_id, p.is_identified, p.created_at, p.version, p.properties";

/** A subquery: SQLite is slower with a join. */
const personByDistinctIdSql = `SELECT ${personColumns} FROM person AS p
  WHERE p.id = (SELECT person_id FROM distinct_id WHERE project_id = ? AND distinct_id = ?)`;

/** The last applied sequence number of each lane. */
export function laneCursors(db: PersonsDb): Record<Lane, number> {
  const cursors: Record<Lane, number> = { realtime: 0, historical: 0 };
  for (const { lane, seq } of db.select().from(laneCursor).all()) cursors[lane] = seq;
  return cursors;
}

/** The person with a distinct ID. */
export function personByDistinctId(db: PersonsDb, projectId: number, distinctId: string): Person | undefined {
  const found = personJsonByDistinctId(db, projectId, distinctId);
  if (found === undefined) return undefined;
  const { propertiesText, storedProperties: _, propertiesWith: __, ...rest } = found;
  return { ...rest, properties: parseExactJson(propertiesText) as Record<string, unknown> };
}

/** Like `personByDistinctId`, with serialized properties. */
export function personJsonByDistinctId(
  db: PersonsDb,
  projectId: number,
  distinctId: string,
): PersonJson | undefined {
  // Raw SQL: hot path of flag evaluation.
  const query = db.$client.query<PersonRow, [number, string]>(personByDistinctIdSql);
  const [row] = query.values(projectId, distinctId) as PersonRow[];
  return row === undefined ? undefined : personJson(db, row);
}

/**
 * The persons with these distinct IDs; unknown IDs are omitted. Properties stay serialized: used to join persons to up
 * to 10,000 events.
 */
export function personJsonByDistinctIds(
  db: PersonsDb,
  projectId: number,
  distinctIds: Iterable<string>,
): Map<string, PersonJson> {
  const query = db.$client.query<[string, number], [number, string]>(`
    SELECT d.distinct_id, d.person_id FROM json_each(?2) AS wanted
    CROSS JOIN distinct_id AS d ON d.project_id = ?1 AND d.distinct_id = wanted.value`);
  const owners = query.values(projectId, JSON.stringify([...new Set(distinctIds)])) as [string, number][];
  const persons = personJsonByIds(db, new Set(owners.map(([, id]) => id)));
  return new Map(
    owners.flatMap(([distinctId, id]) => (persons.has(id) ? [[distinctId, persons.get(id)!]] : [])),
  );
}

/** The person of a distinct ID. */
export interface DistinctIdOwner {
  distinctId: string;
  personUuid: string;
  isIdentified: boolean;
}

/** The persons of these distinct IDs; IDs without a person are omitted. */
export function distinctIdOwners(
  db: PersonsDb,
  projectId: number,
  distinctIds: readonly string[],
): DistinctIdOwner[] {
  const query = db.$client.query<[string, string, number], [number, string]>(`
    SELECT d.distinct_id, p.uuid, p.is_identified FROM json_each(?2) AS wanted
    CROSS JOIN distinct_id AS d ON d.project_id = ?1 AND d.distinct_id = wanted.value
    CROSS JOIN person AS p ON p.id = d.person_id`);
  const rows = query.values(projectId, JSON.stringify(distinctIds)) as [string, string, number][];
  return rows.map(([distinctId, personUuid, isIdentified]) => ({
    distinctId,
    personUuid,
    isIdentified: isIdentified === 1,
  }));
}

export interface PersonWithIds {
  uuid: string;
  distinctIds: string[];
}

/** The persons with any of these distinct IDs, each with all distinct IDs. */
export function personsWithIds(
  db: PersonsDb,
  projectId: number,
  distinctIds: readonly string[],
): PersonWithIds[] {
  const query = db.$client.query<[string, string], [number, string]>(`
    SELECT p.uuid, d.distinct_id FROM person AS p JOIN distinct_id AS d ON d.person_id = p.id
    WHERE p.id IN (
      SELECT o.person_id FROM json_each(?2) AS wanted
      CROSS JOIN distinct_id AS o ON o.project_id = ?1 AND o.distinct_id = wanted.value
    )`);
  const persons = new Map<string, string[]>();
  for (const [uuid, id] of query.values(projectId, JSON.stringify(distinctIds)) as [string, string][]) {
    const ids = persons.get(uuid) ?? [];
    persons.set(uuid, ids);
    ids.push(id);
  }
  return [...persons].map(([uuid, ids]) => ({ uuid, distinctIds: ids }));
}

export function personByUuid(db: PersonsDb, projectId: number, uuid: string): Person | undefined {
  const found = db
    .select(personFields)
    .from(person)
    .where(and(eq(person.projectId, projectId), eq(person.uuid, uuid)))
    .get();
  return found && readPerson(db, found);
}

/**
 * All persons of a project in pages ordered by ID: continue with the last `id` until a page is empty. Pages of large
 * persons are shorter than the limit.
 */
export function personsPage(
  db: PersonsDb,
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

/** The distinct IDs of persons, main ID first, then by order of joining. */
export function getDistinctIds(
  db: PersonsDb,
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

/** Persons by ID; unknown ones are omitted. */
function personJsonByIds(db: PersonsDb, ids: Iterable<number>): Map<number, PersonJson> {
  const query = db.$client.query<PersonRow, [string]>(`
    SELECT ${personColumns} FROM json_each(?) AS wanted CROSS JOIN person AS p ON p.id = wanted.value`);
  const rows = query.values(JSON.stringify([...ids])) as PersonRow[];
  return new Map(rows.map((row) => [row[0], personJson(db, row)]));
}

/** Parses a selected row. */
export function readPerson(db: PersonsDb, { properties, ...rest }: StoredPerson): Person {
  return {
    ...rest,
    properties: parseExactJson(propertiesJson(db.$client, properties)) as Record<string, unknown>,
  };
}

function personJson(db: PersonsDb, row: PersonRow): PersonJson {
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
    propertiesWith: (names) => propertiesWith(db.$client, storedProperties, names),
  };
}
