/** Persons that match a condition or have a flag on, tested one by one as in evaluation. */

import type { EventSql } from "../events/sql-dialect.ts";
import { type CompiledCohorts, compileCohorts } from "../flags/evaluate/cohorts.ts";
import { clientValue, evaluate } from "../flags/evaluate/evaluate.ts";
import { compileFlagSet } from "../flags/evaluate/flag-set.ts";
import { compileSubjectFilter, type FilterSubject } from "../flags/evaluate/person-filter.ts";
import type { JsonObject } from "../lib/json/value.ts";
import type { Person } from "../persons/person.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import type { PersonWriter } from "../persons/person-writer.ts";
import type { PersonCopies } from "./backend.ts";
import { behaviorLists, withBehaviorLists } from "./behavior.ts";
import type { ConditionRequest, FillByFlagRequest } from "./query-types.ts";

/** Runs a query on a separate connection. */
export type RunQuery = <Result>(query: (store: EventSql) => Promise<Result>) => Promise<Result>;

export interface PersonQueryDeps {
  persons: PersonReader;
  copies: PersonCopies;
  run: RunQuery;
}

/** Rows per batch; other work runs between batches. */
export const personsAtOnce = 1_000;

/** Persons that match a condition, ordered by ID; continues after `afterId`. */
export async function findPersons(
  deps: PersonQueryDeps,
  request: ConditionRequest & { afterId?: number; limit: number },
): Promise<Person[]> {
  await deps.copies.follow();
  const { cohorts, subjectsOf: getSubjects } = await preparePersons(deps, request, request.filters);
  const filter = compileSubjectFilter(request.filters, { ...request, cohorts });
  const found: Person[] = [];
  if (filter.problem !== null) return found;
  for await (const page of getPersonPages(deps.persons, request.projectId, request.afterId)) {
    const subjects = await getSubjects(page);
    for (const [index, person] of page.entries()) {
      if (filter.matches(subjects[index]!)) found.push(person);
      if (found.length === request.limit) return found;
    }
  }
  return found;
}

/**
 * Adds every person for whom a flag is currently on to a static cohort.
 * @returns the number of persons for whom the flag is on. Source: contract, management-api 5.11.
 */
export async function fillCohortByFlag(
  { persons, personWriter }: PersonQueryDeps & { personWriter: PersonWriter },
  request: FillByFlagRequest,
): Promise<number> {
  const { projectId, cohortId, flagKey, timezone, now } = request;
  const set = compileFlagSet(request.flags, request.cohorts, request.groupTypes);
  let count = 0;
  for await (const page of getPersonPages(persons, projectId)) {
    const staticCohorts = set.needs.staticCohorts
      ? await persons.cohortsOfPersons(page.map(({ id }) => id))
      : undefined;
    const mainIds = page.map(({ mainDistinctId }) => mainDistinctId);
    const overrides = set.needs.continuity ? await persons.hashKeyOverrides(projectId, mainIds) : undefined;
    const uuids: string[] = [];
    for (const person of page) {
      const { results } = evaluate(set, {
        distinctId: person.mainDistinctId,
        person: {
          uuid: person.uuid,
          properties: person.properties as JsonObject,
          staticCohortIds: staticCohorts?.get(person.id),
        },
        hashKeyOverrides: overrides?.get(person.mainDistinctId),
        now,
        timezone,
        selection: { flagKeys: [flagKey], runtime: "all" },
      });
      const result = results.get(flagKey);
      if (result !== undefined && clientValue(result) !== false) uuids.push(person.uuid);
    }
    if (uuids.length > 0) await personWriter.addCohortMembers(projectId, cohortId, { uuids });
    count += uuids.length;
  }
  return count;
}

/** Cohorts that filters may reference, and persons in the form that such filters are tested with. */
export interface PreparedPersons {
  cohorts: CompiledCohorts;
  /** Whether membership depends on lists of persons, and not on properties alone. */
  needsLists: boolean;
  subjectsOf: (persons: readonly Person[]) => Promise<FilterSubject[]>;
}

/** Reads once what testing many persons needs: the lists for behavioral conditions. */
export async function preparePersons(
  { persons: reader, run }: PersonQueryDeps,
  { projectId, cohorts: stored, now }: Pick<ConditionRequest, "projectId" | "cohorts" | "now">,
  filters: readonly JsonObject[],
): Promise<PreparedPersons> {
  const { cohorts: definitions, behaviors } = withBehaviorLists(stored, filters);
  const cohorts = compileCohorts(definitions);
  const lists = await run((store) => behaviorLists(store, projectId, behaviors, now));
  const needsLists = filters.some(
    ({ type, value }) => type === "cohort" && cohorts.get(Number(value))?.needsMemberLists === true,
  );
  const getSubjects = async (persons: readonly Person[]) => {
    const staticCohorts = needsLists
      ? await reader.cohortsOfPersons(persons.map(({ id }) => id))
      : new Map<number, ReadonlySet<number>>();
    return persons.map((person) => {
      const staticCohortIds = new Set(staticCohorts.get(person.id));
      for (const [listId, members] of lists) if (members.has(person.uuid)) staticCohortIds.add(listId);
      return {
        properties: person.properties as JsonObject,
        distinctId: person.mainDistinctId,
        staticCohortIds,
      };
    });
  };
  return { cohorts, needsLists, subjectsOf: getSubjects };
}

/** All persons of a project in pages; yields to other work between them. */
export async function* getPersonPages(
  reader: PersonReader,
  projectId: number,
  afterId = 0,
): AsyncGenerator<Person[]> {
  let last = afterId;
  for (;;) {
    const page = await reader.personPage(projectId, { afterId: last, limit: personsAtOnce });
    if (page.length === 0) return;
    yield page;
    last = page.at(-1)!.id;
    await nextTurn();
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
