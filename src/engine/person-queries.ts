/** Which persons a condition chooses, and whom a flag is on for: tested one by one, as evaluation does. */

import type { EventSql } from "../events/dialect.ts";
import { type CompiledCohorts, compileCohorts } from "../flags/evaluate/cohorts.ts";
import { clientValue, evaluate } from "../flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../flags/evaluate/flag-set.ts";
import { compileSubjectFilter, type FilterSubject } from "../flags/evaluate/person-filter.ts";
import type { JsonObject } from "../lib/json.ts";
import { addCohortMembers, cohortsOfPerson } from "../people/cohort-members.ts";
import { hashKeyOverrides } from "../people/hash-key-overrides.ts";
import type { PeopleDb } from "../people/open.ts";
import type { Person } from "../people/person.ts";
import { personsPage } from "../people/reader.ts";
import type { PersonCopies } from "./backend.ts";
import { behaviourLists, withBehaviourLists } from "./behaviour.ts";
import type { ConditionRequest, FillByFlagRequest } from "./query-types.ts";

/** Runs a query on a connection of its own. */
export type RunQuery = <Result>(query: (store: EventSql) => Promise<Result>) => Promise<Result>;

export interface PersonServices {
  people: PeopleDb;
  copies: PersonCopies;
  run: RunQuery;
}

/** Rows that are read before other work gets its turn. */
export const personsAtOnce = 1_000;

/** Persons that a condition chooses, by number; goes on after `afterId`. */
export async function findPersons(
  services: PersonServices,
  request: ConditionRequest & { afterId?: number; limit: number },
): Promise<Person[]> {
  await services.copies.follow();
  const { cohorts, subjectOf } = await preparePersons(services, request, request.filters);
  const filter = compileSubjectFilter(request.filters, { ...request, cohorts });
  const found: Person[] = [];
  if (filter.problem !== null) return found;
  for await (const person of personsOf(services.people, request.projectId, request.afterId)) {
    if (filter.matches(subjectOf(person))) found.push(person);
    if (found.length === request.limit) break;
  }
  return found;
}

/**
 * Adds every person for whom a flag is on now to a static cohort.
 *
 * @returns how many persons the flag is on for. Source: contract, management-api 5.11.
 */
export async function fillCohortByFlag(
  { people }: PersonServices,
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
  for await (const person of personsOf(people, projectId)) {
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

/** The cohorts that filters may name, and persons as such filters are tested with. */
export interface PreparedPersons {
  cohorts: CompiledCohorts;
  /** Whether membership depends on lists of persons, and not on properties alone. */
  needsLists: boolean;
  subjectOf: (person: Person) => FilterSubject;
}

/** Reads once what testing many persons needs: who did what cohorts ask for. */
export async function preparePersons(
  { people, run }: PersonServices,
  { projectId, cohorts: stored, now }: Pick<ConditionRequest, "projectId" | "cohorts" | "now">,
  filters: readonly JsonObject[],
): Promise<PreparedPersons> {
  const { cohorts: definitions, behaviours } = withBehaviourLists(stored, filters);
  const cohorts = compileCohorts(definitions);
  const lists = await run((store) => behaviourLists(store, projectId, behaviours, now));
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

/** All persons of a project; gives other work its turn now and then. */
export async function* personsOf(people: PeopleDb, projectId: number, afterId = 0): AsyncGenerator<Person> {
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
