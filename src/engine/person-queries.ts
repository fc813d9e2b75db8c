/** Which persons or groups a condition chooses: counted over the event store's copies, tested as evaluation does. */

import type { DuckDBConnection } from "@duckdb/node-api";
import type { PersonMirror } from "../events/person-mirror.ts";
import { exactly, jsonAt } from "../events/property-sql.ts";
import { type CompiledCohorts, compileCohorts } from "../flags/evaluation/cohorts.ts";
import { clientValue, evaluate } from "../flags/evaluation/evaluate.ts";
import { compileFlagSet } from "../flags/evaluation/flag-set.ts";
import { compileSubjectFilter, type SubjectFilter } from "../flags/evaluation/person-filter.ts";
import { sourceOfInitial } from "../flags/evaluation/person-view.ts";
import type { Json, JsonObject } from "../flags/json.ts";
import { addCohortMembers, cohortsOfPerson } from "../people/cohort-members.ts";
import { listGroups } from "../people/groups.ts";
import { hashKeyOverrides } from "../people/hash-key-overrides.ts";
import type { PeopleDb } from "../people/open.ts";
import type { Person } from "../people/person.ts";
import { personsPage } from "../people/reader.ts";
import { behaviourLists, withBehaviourLists } from "./behaviour.ts";
import type { ConditionRequest, Count, FillByFlagRequest } from "./query-types.ts";

/** Runs a query on a connection of its own. */
export type RunQuery = <Result>(query: (connection: DuckDBConnection) => Promise<Result>) => Promise<Result>;

export interface PersonServices {
  people: PeopleDb;
  mirror: PersonMirror;
  run: RunQuery;
}

const personsAtOnce = 1_000;

/** Counts the persons that a condition chooses. */
export async function countPersons(services: PersonServices, request: ConditionRequest): Promise<Count> {
  await services.mirror.follow();
  const { projectId, filters } = request;
  const total = await services.run((connection) => countRows(connection, `project_id = ${projectId}`));
  if (filters.length === 0) return { affected: total, total };
  const prepared = await prepare(services, request);
  if (prepared.filter.problem !== null)
    return { affected: 0, total, problem: prepared.filter.problem.description };
  if (prepared.needsLists) {
    let affected = 0;
    for await (const person of personsOf(services.people, projectId))
      if (prepared.matches(person)) affected += 1;
    return { affected: Math.min(affected, total), total };
  }
  const affected = await services.run((connection) => countByProperties(connection, request, prepared));
  return { affected: Math.min(affected, total), total };
}

/** Counts the groups of a type that a condition chooses. */
export async function countGroups(
  { people }: PersonServices,
  { projectId, filters, timezone, now, groupTypeIndex }: ConditionRequest & { groupTypeIndex: number },
): Promise<Count> {
  const filter = compileSubjectFilter(filters, { now, timezone, groupTypeIndex });
  if (filter.problem !== null) return { affected: 0, total: 0, problem: filter.problem.description };
  let affected = 0;
  let total = 0;
  let page = listGroups(people, projectId, groupTypeIndex, { limit: personsAtOnce });
  for (;;) {
    for (const group of page.groups) {
      total += 1;
      if (filter.matches({ properties: group.properties as JsonObject, groupKey: group.key })) affected += 1;
    }
    if (page.next === undefined) return { affected, total };
    await nextTurn();
    page = listGroups(people, projectId, groupTypeIndex, { after: page.next, limit: personsAtOnce });
  }
}

/** Persons that a condition chooses, by number; goes on after `afterId`. */
export async function findPersons(
  services: PersonServices,
  request: ConditionRequest & { afterId?: number; limit: number },
): Promise<Person[]> {
  await services.mirror.follow();
  const { matches, filter } = await prepare(services, request);
  const found: Person[] = [];
  if (filter.problem !== null) return found;
  for await (const person of personsOf(services.people, request.projectId, request.afterId)) {
    if (matches(person)) found.push(person);
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

interface Prepared {
  filter: SubjectFilter;
  cohorts: CompiledCohorts;
  /** Whether membership depends on lists of persons, and not on properties alone. */
  needsLists: boolean;
  matches: (person: Person) => boolean;
}

async function prepare({ people, run }: PersonServices, request: ConditionRequest): Promise<Prepared> {
  const { projectId, timezone, now } = request;
  const { cohorts: definitions, behaviours } = withBehaviourLists(request.cohorts);
  const cohorts = compileCohorts(definitions);
  const lists = await run((connection) => behaviourLists(connection, projectId, behaviours, now));
  const filter = compileSubjectFilter(request.filters, { now, timezone, cohorts });
  const needsLists = request.filters.some(
    ({ type, value }) => type === "cohort" && cohorts.get(Number(value))?.needsMemberLists === true,
  );
  const matches = (person: Person) => {
    const staticCohortIds = new Set(needsLists ? cohortsOfPerson(people, person.id) : []);
    for (const [listId, members] of lists) if (members.has(person.uuid)) staticCohortIds.add(listId);
    return filter.matches({ properties: person.properties as JsonObject, staticCohortIds });
  };
  return { filter, cohorts, needsLists, matches };
}

/** SQL answers the filters it can; for the others persons are grouped by the values that matter and tested once each. */
async function countByProperties(
  connection: DuckDBConnection,
  { projectId, filters, timezone, now }: ConditionRequest,
  { cohorts }: Prepared,
): Promise<number> {
  const conditions = [`project_id = ${projectId}`];
  const others: JsonObject[] = [];
  for (const filter of filters) {
    const isPlain =
      (filter.type ?? "person") === "person" && sourceOfInitial(String(filter.key)) === undefined;
    const sql = isPlain ? exactly("properties", filter) : undefined;
    if (sql !== undefined) conditions.push(sql);
    else if (filter.type !== "flag") others.push(filter);
  }
  const names = [...new Set(others.flatMap((filter) => keysOf(filter, cohorts)))];
  const where = conditions.join(" AND ");
  const rest = compileSubjectFilter(others, { now, timezone, cohorts });
  if (names.length === 0) return rest.matches({ properties: {} }) ? await countRows(connection, where) : 0;
  const result = await connection.stream(
    `SELECT count(*), ${names.map((name) => `${jsonAt("properties", name)}::VARCHAR`).join(", ")}
     FROM person WHERE ${where} GROUP BY ALL`,
  );
  let affected = 0;
  for (;;) {
    const chunk = await result.fetchChunk();
    if (chunk === null || chunk.rowCount === 0) return affected;
    for (const [count, ...texts] of chunk.getRows()) {
      const properties: JsonObject = Object.create(null);
      names.forEach((name, index) => {
        if (texts[index] !== null) properties[name] = JSON.parse(texts[index] as string) as Json;
      });
      if (rest.matches({ properties })) affected += Number(count);
    }
  }
}

/** The person properties that a filter looks at. */
function keysOf(filter: JsonObject, cohorts: CompiledCohorts): string[] {
  if (filter.type === "flag") return [];
  const keys =
    filter.type === "cohort"
      ? [...(cohorts.get(Number(filter.value))?.personKeys ?? [])]
      : [String(filter.key)];
  return keys.flatMap((key) => {
    const source = sourceOfInitial(key);
    return source === undefined ? [key] : [key, source];
  });
}

async function countRows(connection: DuckDBConnection, conditions: string): Promise<number> {
  const rows = await connection.runAndReadAll(`SELECT count(*) FROM person WHERE ${conditions}`);
  return Number(rows.getRows()[0]![0]);
}

/** All persons of a project; gives other work its turn now and then. */
async function* personsOf(people: PeopleDb, projectId: number, afterId = 0): AsyncGenerator<Person> {
  let last = afterId;
  for (;;) {
    const page = personsPage(people, projectId, { afterId: last, limit: personsAtOnce });
    yield* page;
    if (page.length < personsAtOnce) return;
    last = page.at(-1)!.id;
    await nextTurn();
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
