/** Members of static cohorts, by cohort ID; cohorts themselves are in the metadata store. */

import { and, asc, count, eq, gt } from "drizzle-orm";
import type { PersonsDb } from "./open.ts";
import type { Person } from "./person.ts";
import { personFields, readPerson } from "./reader.ts";
import { cohortMember, person } from "./schema.ts";

/** Persons of a project, by distinct IDs or UUIDs. */
export type PersonNames = { distinctIds: readonly string[] } | { uuids: readonly string[] };

/** Adds persons to a static cohort; unknown names are ignored. @returns the number of new members */
export function addCohortMembers(
  db: PersonsDb,
  projectId: number,
  cohortId: number,
  names: PersonNames,
): number {
  const { select, list } = personsNamed(names);
  return db.$client
    .query(`INSERT OR IGNORE INTO cohort_member (person_id, cohort_id) SELECT person_id, ?3 FROM (${select})`)
    .run(projectId, list, cohortId).changes;
}

/** Current number of members of a static cohort; 0 if it does not exist. */
export function countCohortMembers(db: PersonsDb, cohortId: number): number {
  return db.select({ members: count() }).from(cohortMember).where(eq(cohortMember.cohortId, cohortId)).get()!
    .members;
}

/** Members of a cohort in pages ordered by ID: continue with the last `id`. */
export function cohortMembersPage(
  db: PersonsDb,
  cohortId: number,
  { afterId = 0, limit = 100 }: { afterId?: number; limit?: number } = {},
): Person[] {
  return db
    .select(personFields)
    .from(cohortMember)
    .innerJoin(person, eq(person.id, cohortMember.personId))
    .where(and(eq(cohortMember.cohortId, cohortId), gt(cohortMember.personId, afterId)))
    .orderBy(asc(cohortMember.personId))
    .limit(limit)
    .all()
    .map((row) => readPerson(db, row));
}

/** The static cohorts of a person. */
export function cohortsOfPerson(db: PersonsDb, personId: number): Set<number> {
  const query = db.$client.query<[number], [number]>(
    "SELECT cohort_id FROM cohort_member WHERE person_id = ?",
  );
  return new Set((query.values(personId) as [number][]).map(([cohortId]) => cohortId));
}

/** The static cohorts of each person. */
export function cohortsOfPersons(db: PersonsDb, personIds: readonly number[]): Map<number, Set<number>> {
  const query = db.$client.query<[number, number], [string]>(
    "SELECT person_id, cohort_id FROM cohort_member WHERE person_id IN (SELECT value FROM json_each(?))",
  );
  const cohorts = new Map(personIds.map((id) => [id, new Set<number>()]));
  for (const [id, cohortId] of query.values(JSON.stringify(personIds)) as [number, number][])
    cohorts.get(id)!.add(cohortId);
  return cohorts;
}

/** SQL that selects `person_id`; ?1 is the project and ?2 the list as JSON. */
function personsNamed(names: PersonNames): { select: string; list: string } {
  if ("distinctIds" in names) {
    return {
      select: `SELECT d.person_id FROM json_each(?2) AS wanted
               CROSS JOIN distinct_id AS d ON d.project_id = ?1 AND d.distinct_id = wanted.value`,
      list: JSON.stringify(names.distinctIds),
    };
  }
  return {
    select: `SELECT p.id AS person_id FROM json_each(?2) AS wanted
             CROSS JOIN person AS p ON p.project_id = ?1 AND p.uuid = wanted.value`,
    list: JSON.stringify(names.uuids),
  };
}
