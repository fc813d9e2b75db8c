/** Reads persons from rows in PostgreSQL. */

import type { Sql } from "postgres";
import type { Postgres } from "../../cluster/connection.ts";
import type { MaybePromise } from "../../lib/concurrency.ts";
import { canonicalUuid } from "../../lib/ids.ts";
import { parseExactJson } from "../../lib/json/exact.ts";
import { pendingOverrideMicros, toPendingOverrides } from "../hash-key-overrides.ts";
import { fittingCount, type Person, type PersonJson } from "../person.ts";
import {
  type OverriddenId,
  type PersonReader,
  type StoredId,
  type StoredSubject,
  type SubjectQuery,
  type SubjectSource,
  toSubject,
} from "../person-reader.ts";
import { getValues } from "../property-key-sets.ts";
import type { PageOptions, PersonList } from "../search.ts";
import { searchMatchesMax } from "../search.ts";
import { PostgresGroups } from "./groups.ts";
import { firstHash, hashList, numberList } from "./hashes.ts";

/** A person as `personColumns` selects it. */
type PersonRow = Omit<Person, "properties"> & { properties: string };

interface SubjectRow extends PersonRow {
  cohorts: number[] | null;
  overrides: Record<string, string> | null;
  hashKey: string | null;
  flagKeys: string;
  requestedMicros: number;
}

/** Of `flagkeep.person AS p`. Numbers are exact up to 2^53. */
const personColumns = `p.id::float8 AS id, p.project_id AS "projectId", p.uuid, p.main_distinct_id AS "mainDistinctId",
  p.is_identified AS "isIdentified", p.created_at::float8 AS "createdMicros", p.version, p.properties`;

/** Distinct IDs per statement of a search that ignores case beyond ASCII. */
const sliceIds = 10_000;

export class PostgresPersonReader extends PostgresGroups implements PersonReader, SubjectSource {
  constructor(postgres: Postgres) {
    super(postgres);
  }

  subject(query: SubjectQuery): MaybePromise<StoredSubject> {
    return this.readSubject(query);
  }

  hasHashKeyOverrides(): MaybePromise<boolean> {
    return this.postgres
      .run(
        (sql) =>
          sql`SELECT 1 FROM flagkeep.hash_key_override UNION ALL SELECT 1 FROM flagkeep.pending_override LIMIT 1`,
      )
      .then((rows) => rows.length > 0);
  }

  async storedIds(
    ids: readonly { projectId: number; distinctId: string }[],
    nowMicros: number,
  ): Promise<StoredId[]> {
    if (ids.length === 0) return [];
    // The limit excludes nothing: with it, PostgreSQL expects few rows for any list, and reuses one plan. Planning takes
    // five times as long as reading a person.
    const rows = await this.postgres.run(
      (sql) => sql<SubjectRow[]>`
        SELECT ${sql.unsafe(personColumns)},
          (SELECT json_agg(m.cohort_id) FROM flagkeep.cohort_member m WHERE m.person_id = p.id) AS cohorts,
          (SELECT json_object_agg(o.flag_key, o.hash_key) FROM flagkeep.hash_key_override o
           WHERE o.person_id = p.id) AS overrides,
          q.hash_key AS "hashKey", q.flag_keys AS "flagKeys", q.requested_at::float8 AS "requestedMicros"
        FROM (SELECT * FROM unnest(${numberList(ids.map(({ projectId }) => projectId))}::text::int[],
          ${hashList(ids.map(({ distinctId }) => distinctId))}::text::uuid[])
          WITH ORDINALITY LIMIT ${ids.length}) AS wanted(project_id, hash, position)
        LEFT JOIN flagkeep.distinct_id d ON d.project_id = wanted.project_id AND d.id_hash = wanted.hash
        LEFT JOIN flagkeep.person p ON p.id = d.person_id
        LEFT JOIN flagkeep.pending_override q ON q.project_id = wanted.project_id AND q.id_hash = wanted.hash
          AND q.requested_at >= ${nowMicros - pendingOverrideMicros}
        ORDER BY wanted.position`,
    );
    return ids.map(({ distinctId }, index) => storedId(distinctId, rows[index]!, nowMicros));
  }

  private async readSubject(query: SubjectQuery): Promise<StoredSubject> {
    const { projectId } = query;
    const [ids, groups] = await Promise.all([
      this.storedIds(
        query.distinctIds.map((distinctId) => ({ projectId, distinctId })),
        query.nowMicros,
      ),
      this.storedGroups(query.groups.map((group) => ({ projectId, ...group }))),
    ]);
    return toSubject(query, ids, groups);
  }

  async personByDistinctId(projectId: number, distinctId: string) {
    return toPerson([...(await this.personsByDistinctIds(projectId, [distinctId])).values()][0]);
  }

  async personByUuid(projectId: number, uuid: string) {
    const canonical = canonicalUuid(uuid);
    if (canonical === undefined) return undefined;
    const rows = await this.persons((sql) => sql`p.project_id = ${projectId} AND p.uuid = ${canonical}`);
    return rows.map(readPerson)[0];
  }

  async listPersons(projectId: number, { limit = 100, offset = 0 }: PageOptions = {}): Promise<PersonList> {
    return await this.newest((sql) => sql`p.project_id = ${projectId}`, limit, offset);
  }

  async searchPersons(
    projectId: number,
    search: string,
    { limit = 100, offset = 0 }: PageOptions = {},
  ): Promise<PersonList> {
    const found = await this.findMatches(projectId, search.toLowerCase());
    return await this.newest((sql) => sql`p.id = ANY(${numberList(found)}::text::bigint[])`, limit, offset);
  }

  async personsByDistinctIds(projectId: number, distinctIds: Iterable<string>) {
    const rows = await this.postgres.run(
      (sql) => sql<(PersonRow & { distinctId: string })[]>`
        SELECT d.distinct_id AS "distinctId", ${sql.unsafe(personColumns)}
        FROM unnest(${hashList(new Set(distinctIds))}::text::uuid[]) AS wanted(hash)
        JOIN flagkeep.distinct_id d ON d.project_id = ${projectId} AND d.id_hash = wanted.hash
        JOIN flagkeep.person p ON p.id = d.person_id`,
    );
    const persons = new Map(rows.map((row) => [row.id, personJson(row)]));
    return new Map(rows.map(({ distinctId, id }) => [distinctId, persons.get(id)!]));
  }

  async distinctIdOwners(projectId: number, distinctIds: readonly string[]) {
    const persons = await this.personsByDistinctIds(projectId, distinctIds);
    return [...persons].map(([distinctId, { uuid, isIdentified }]) => ({
      distinctId,
      personUuid: uuid,
      isIdentified,
    }));
  }

  async personsWithIds(projectId: number, distinctIds: readonly string[]) {
    const persons = [...new Set((await this.personsByDistinctIds(projectId, distinctIds)).values())];
    const ids = await this.distinctIds(persons);
    return persons.map(({ id, uuid }) => ({ uuid, distinctIds: ids.get(id)! }));
  }

  async personPage(projectId: number, { afterId = 0, limit = 1_000 } = {}): Promise<Person[]> {
    const sizes = await this.postgres.run(
      (sql) => sql<{ id: number; bytes: number }[]>`
        SELECT id::float8 AS id, octet_length(properties) AS bytes FROM flagkeep.person
        WHERE project_id = ${projectId} AND id > ${afterId} ORDER BY id LIMIT ${limit}`,
    );
    return await this.personsWith(sizes.slice(0, fittingCount(sizes.map(({ bytes }) => bytes))));
  }

  async distinctIds(persons: readonly Pick<Person, "id" | "mainDistinctId">[]) {
    const ids = new Map(persons.map(({ id, mainDistinctId }) => [id, [mainDistinctId]]));
    const rows = await this.postgres.run(
      (sql) => sql<{ personId: number; distinctId: string }[]>`
        SELECT person_id::float8 AS "personId", distinct_id AS "distinctId" FROM flagkeep.distinct_id
        WHERE person_id = ANY(${numberList(ids.keys())}::text::bigint[]) ORDER BY person_id, joined`,
    );
    for (const { personId, distinctId } of rows) {
      const list = ids.get(personId)!;
      if (distinctId !== list[0]) list.push(distinctId);
    }
    return ids;
  }

  async cohortMembers(cohortId: number, { afterId = 0, limit = 100 } = {}): Promise<Person[]> {
    const rows = await this.postgres.run(
      (sql) => sql<PersonRow[]>`
        SELECT ${sql.unsafe(personColumns)} FROM flagkeep.cohort_member m JOIN flagkeep.person p ON p.id = m.person_id
        WHERE m.cohort_id = ${cohortId} AND m.person_id > ${afterId} ORDER BY m.person_id LIMIT ${limit}`,
    );
    return rows.map(readPerson);
  }

  async cohortSizes(cohortIds: readonly number[]) {
    const rows = await this.postgres.run(
      (sql) => sql<{ cohortId: number; members: number }[]>`
        SELECT cohort_id AS "cohortId", count(*)::float8 AS members FROM flagkeep.cohort_member
        WHERE cohort_id = ANY(${numberList(cohortIds)}::text::int[]) GROUP BY cohort_id`,
    );
    const sizes = new Map(rows.map(({ cohortId, members }) => [cohortId, members]));
    return new Map(cohortIds.map((id) => [id, sizes.get(id) ?? 0]));
  }

  async cohortsOfPersons(personIds: readonly number[]) {
    const cohorts = new Map(personIds.map((id) => [id, new Set<number>()]));
    const rows = await this.postgres.run(
      (sql) => sql<{ personId: number; cohortId: number }[]>`
        SELECT person_id::float8 AS "personId", cohort_id AS "cohortId" FROM flagkeep.cohort_member
        WHERE person_id = ANY(${numberList(personIds)}::text::bigint[])`,
    );
    for (const { personId, cohortId } of rows) cohorts.get(personId)!.add(cohortId);
    return cohorts;
  }

  async hashKeyOverrides(projectId: number, distinctIds: readonly string[]) {
    const rows = await this.postgres.run(
      (sql) => sql<{ distinctId: string; overrides: Record<string, string> }[]>`
        SELECT d.distinct_id AS "distinctId", json_object_agg(o.flag_key, o.hash_key) AS overrides
        FROM flagkeep.distinct_id d JOIN flagkeep.hash_key_override o ON o.person_id = d.person_id
        WHERE d.project_id = ${projectId} AND d.id_hash = ANY(${hashList(distinctIds)}::text::uuid[])
        GROUP BY d.distinct_id`,
    );
    return new Map(rows.map(({ distinctId, overrides }) => [distinctId, new Map(Object.entries(overrides))]));
  }

  /** IDs of persons with a string in their names, addresses or distinct IDs. @param wanted in lower case */
  private async findMatches(projectId: number, wanted: string): Promise<Set<number>> {
    const byText = await this.postgres.run(
      (sql) => sql<{ id: number }[]>`
        SELECT id::float8 AS id FROM flagkeep.person
        WHERE project_id = ${projectId} AND position(${wanted} IN search_text) > 0 LIMIT ${searchMatchesMax}`,
    );
    const found = new Set(byText.map(({ id }) => id));
    // PostgreSQL lowercases by the locale of the database: strings beyond ASCII are compared here.
    const isAscii = Buffer.byteLength(wanted) === wanted.length;
    for (let after = firstHash; found.size < searchMatchesMax; ) {
      const rows = await this.postgres.run(
        (sql) => sql<{ hash: string; distinctId: string; id: number }[]>`
          SELECT id_hash AS hash, distinct_id AS "distinctId", person_id::float8 AS id FROM flagkeep.distinct_id
          WHERE project_id = ${projectId} AND id_hash > ${after} AND
            ${isAscii ? sql`position(${wanted} IN lower(distinct_id COLLATE "C")) > 0` : sql`octet_length(distinct_id) > length(distinct_id)`}
          ORDER BY id_hash LIMIT ${sliceIds}`,
      );
      for (const { distinctId, id } of rows) {
        if (found.size < searchMatchesMax && distinctId.toLowerCase().includes(wanted)) found.add(id);
      }
      if (rows.length < sliceIds) break;
      after = rows.at(-1)!.hash;
    }
    return found;
  }

  /** Newest first; fewer than the limit if they are large. */
  private async newest(
    where: (sql: Sql) => ReturnType<Sql>,
    limit: number,
    offset: number,
  ): Promise<PersonList> {
    const page = await this.postgres.run(
      (sql) => sql<{ id: number; bytes: number }[]>`
        SELECT p.id::float8 AS id, octet_length(p.properties) AS bytes FROM flagkeep.person p WHERE ${where(sql)}
        ORDER BY p.created_at DESC, p.id DESC LIMIT ${limit + 1} OFFSET ${offset}`,
    );
    const count = fittingCount(page.slice(0, limit).map(({ bytes }) => bytes));
    return { persons: await this.personsWith(page.slice(0, count)), hasMore: page.length > count };
  }

  /** The persons with these IDs, in their order. */
  private async personsWith(rows: readonly { id: number }[]): Promise<Person[]> {
    const ids = rows.map(({ id }) => id);
    const found = await this.persons((sql) => sql`p.id = ANY(${numberList(ids)}::text::bigint[])`);
    const persons = new Map(found.map((row) => [row.id, row]));
    return ids.flatMap((id) => (persons.has(id) ? [readPerson(persons.get(id)!)] : []));
  }

  private async persons(where: (sql: Sql) => ReturnType<Sql>): Promise<PersonRow[]> {
    return await this.postgres.run(
      (sql) =>
        sql<PersonRow[]>`SELECT ${sql.unsafe(personColumns)} FROM flagkeep.person p WHERE ${where(sql)}`,
    );
  }
}

function storedId(distinctId: string, row: SubjectRow, nowMicros: number): StoredId {
  const person = row.id === null ? undefined : personJson(row);
  return {
    person,
    staticCohortIds: new Set(row.cohorts),
    overridden: distinctId === "" ? undefined : overriddenId(distinctId, row, nowMicros),
  };
}

function overriddenId(distinctId: string, row: SubjectRow, nowMicros: number): OverriddenId {
  const { hashKey, flagKeys, requestedMicros } = row;
  const { isOld, overrides } = toPendingOverrides(
    hashKey === null ? undefined : { hashKey, flagKeys, requestedMicros },
    nowMicros,
  );
  if (row.id === null) return { distinctId, hasPerson: false, isOld, overrides };
  const all = new Map([...overrides, ...Object.entries(row.overrides ?? {})]);
  return { distinctId, hasPerson: true, isOld: false, overrides: all };
}

function personJson({
  id,
  projectId,
  uuid,
  mainDistinctId,
  isIdentified,
  createdMicros,
  version,
  properties,
}: PersonRow): PersonJson {
  return {
    id,
    projectId,
    uuid,
    mainDistinctId,
    isIdentified,
    createdMicros,
    version,
    propertiesText: properties,
    storedProperties: properties,
    propertiesWith: (names) => ({ json: properties, values: getValues(properties, names) }),
  };
}

function readPerson({
  id,
  projectId,
  uuid,
  mainDistinctId,
  isIdentified,
  createdMicros,
  version,
  properties,
}: PersonRow): Person {
  return {
    id,
    projectId,
    uuid,
    mainDistinctId,
    isIdentified,
    createdMicros,
    version,
    properties: parseExactJson(properties) as Record<string, unknown>,
  };
}

function toPerson(person: PersonJson | undefined): Person | undefined {
  return person && readPerson({ ...person, properties: person.propertiesText });
}
