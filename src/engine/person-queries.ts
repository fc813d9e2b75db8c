/** Persons that match a condition or have a flag on, tested one by one as in evaluation. */

import type { EventSql } from "../events/sql-dialect.ts";
import { type CompiledCohorts, compileCohorts } from "../flags/evaluate/cohorts.ts";
import { clientValue, evaluate } from "../flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../flags/evaluate/flag-set.ts";
import { compileSubjectFilter, type FilterSubject } from "../flags/evaluate/person-filter.ts";
import type { JsonObject } from "../lib/json.ts";
import { addCohortMembers, cohortsOfPerson } from "../persons/cohort-members.ts";
import { hashKeyOverrides } from "../persons/hash-key-overrides.ts";
import type { PeopleDb } from "../persons/open.ts";
import type { Person } from "../persons/person.ts";
import { personsPage } from "../persons/reader.ts";
import type { PersonCopies } from "./backend.ts";
import { behaviorLists, withBehaviorLists } from "./behavior.ts";
import type { ConditionRequest, FillByFlagRequest } from "./query-types.ts";

/** Runs a query on a separate connection. */
export type RunQuery = <Result>(query: (store: EventSql) => Promise<Result>) => Promise<Result>;

export interface PersonReaderDeps {
  people: PeopleDb;
  copies: PersonCopies;
  run: RunQuery;
}

/** Rows per batch; other work runs between batches. */
export const personsAtOnce = 1_000;

/** Persons that match a condition, ordered by ID; continues after `afterId`. */
export async function findPersons(
  services: PersonReaderDeps,
  request: ConditionRequest & { afterId?: number; limit: number },
): Promise<Person[]> {
  await services.copies.follow();
  const { cohorts, subjectOf } = await preparePersons(services, request, request.filters);
  const filter = compileSubjectFilter(request.filters, { ...request, cohorts });
  const found: Person[] = [];
  if (filter.problem !== null) return found;
  for await (const person of getPersons(services.people, request.projectId, request.afterId)) {
    if (filter.matches(subjectOf(person))) found.push(person);
    if (found.length === request.limit) break;
  }
  return found;
}

/**
 * Adds every person for whom a flag is currently on to a static cohort.
 * @returns the number of persons for whom the flag is on. Source: contract, management-api 5.11.
 */
export async function fillCohortByFlag(
  { people }: PersonReaderDeps,
  request: FillByFlagRequest,
): Promise<number> {
  const { projectId, cohortId, flagKey, timezone, now } = request;
  const set = compileFlagSet(request.flags, request.cohorts, request.groupTypes);
  let count = 0;
  let uuids: string[] = [];
  const add = () => {
    addCohortMembers(people, projectId, cohortId, { uuids });
    count += uuids.length;
    uuids = [];
  };
  for await (const person of getPersons(people, projectId)) {
    const { results } = evaluate(set, {
      distinctId: person.mainDistinctId,
      person: {
        uuid: person.uuid,
        properties: person.properties as JsonObject,
        staticCohortIds: set.needs.staticCohorts ? cohortsOfPerson(people, person.id) : undefined,
      },
      hashKeyOverrides: set.needs.continuity
        ? hashKeyOverrides(people, projectId, [person.mainDistinctId])
        : undefined,
      now,
      timezone,
      selection: { flagKeys: [flagKey], runtime: "all" },
    });
    const result = results.get(flagKey);
    if (result !== undefined && clientValue(result) !== false) uuids.push(person.uuid);
    if (uuids.length === personsAtOnce) add();
  }
  if (uuids.length > 0) add();
  return count;
}

/** Cohorts that filters may reference, and persons in the form that such filters are tested with. */
export interface PreparedPersons {
  cohorts: CompiledCohorts;
  /** Whether membership depends on lists of persons, and not on properties alone. */
  needsLists: boolean;
  subjectOf: (person: Person) => FilterSubject;
}

/** Reads once what testing many persons needs: the lists for behavioral conditions. */
export async function preparePersons(
  { people, run }: PersonReaderDeps,
  { projectId, cohorts: stored, now }: Pick<ConditionRequest, "projectId" | "cohorts" | "now">,
  filters: readonly JsonObject[],
): Promise<PreparedPersons> {
  const { cohorts: definitions, behaviors } = withBehaviorLists(stored, filters);
  const cohorts = compileCohorts(definitions);
  const lists = await run((store) => behaviorLists(store, projectId, behaviors, now));
  const needsLists = filters.some(
    ({ type, value }) => type === "cohort" && cohorts.get(Number(value))?.needsMemberLists === true,
  );
  const subjectOf = (person: Person) => {
    const staticCohortIds = new Set(needsLists ? cohortsOfPerson(people, person.id) : []);
    for (const [listId, members] of lists) if (members.has(person.uuid)) staticCohortIds.add(listId);
    return { properties: person.properties as JsonObject, staticCohortIds };
  };
  return { cohorts, needsLists, subjectOf };
}

/** All persons of a project; yields to other work between batches. */
export async function* getPersons(people: PeopleDb, projectId: number, afterId = 0): AsyncGenerator<Person> {
  let last = afterId;
  for (;;) {
    const page = personsPage(people, projectId, { afterId: last, limit: personsAtOnce });
    yield* page;
    if (page.length === 0) return;
    last = page.at(-1)!.id;
    await nextTurn();
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
