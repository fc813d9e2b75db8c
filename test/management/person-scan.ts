/**
 * The ports about persons, answered in this process by looking at each person. The appliance asks the engine;
 * this is what its answers must agree with.
 */

import type { CohortDefinition } from "../../src/flags/definition/types.ts";
import { compileCohorts } from "../../src/flags/evaluation/cohorts.ts";
import { evaluate } from "../../src/flags/evaluation/evaluate.ts";
import { compileSubjectFilter, type SubjectFilter } from "../../src/flags/evaluation/person-filter.ts";
import { isJsonObject, type Json, type JsonObject } from "../../src/flags/json.ts";
import type { CohortFiller, PersonCounter } from "../../src/management/ports.ts";
import { cohortIdsIn } from "../../src/metadata/cohort-filters.ts";
import { InvalidField, NotFound } from "../../src/metadata/errors.ts";
import { findFlag } from "../../src/metadata/flag.ts";
import type { FlagSets } from "../../src/metadata/flag-sets.ts";
import type { Metadata } from "../../src/metadata/metadata.ts";
import {
  cohortMembersPage,
  cohortsOfPerson,
  countCohortMembers,
  type PersonNames,
} from "../../src/people/cohort-members.ts";
import { type GroupCursor, listGroups } from "../../src/people/groups.ts";
import { hashKeyOverrides } from "../../src/people/hash-key-overrides.ts";
import type { PeopleDb } from "../../src/people/open.ts";
import type { Person } from "../../src/people/person.ts";
import { personsPage } from "../../src/people/reader.ts";

const PAGE = 500;

export interface PersonScanDeps {
  metadata: Metadata;
  flagSets: FlagSets;
  people: PeopleDb;
  /** Writes to the people store: adds persons to a static cohort, passing over names that nobody has. */
  addMembers: (projectId: number, cohortId: number, names: PersonNames) => Promise<unknown>;
  /** Uuids of the persons who did what a behavioural condition of a cohort asks for. */
  personsWhoDid: (
    projectId: number,
    condition: JsonObject,
    timezone: string,
    now: Date,
  ) => Promise<ReadonlySet<string>>;
  now?: () => Date;
}

type Test = (person: Person) => boolean;

export class PersonScan implements PersonCounter, CohortFiller {
  constructor(private readonly deps: PersonScanDeps) {}

  async count(projectId: number, condition: JsonObject, groupTypeIndex: number | null) {
    const properties = Array.isArray(condition.properties) ? condition.properties.filter(isJsonObject) : [];
    if (groupTypeIndex !== null) return this.#countGroups(projectId, properties, groupTypeIndex);
    const test = await this.#testOf(projectId, properties);
    let [affected, total] = [0, 0];
    for await (const person of this.#persons(projectId)) {
      total++;
      if (test(person)) affected++;
    }
    return { affected, total };
  }

  async addPersonsWithFlag(projectId: number, cohortId: number, flagId: number): Promise<number> {
    const { metadata, people } = this.deps;
    const flag = findFlag(metadata.db, projectId, flagId);
    const { set } = this.deps.flagSets.of(projectId);
    const isAboutGroups = typeof flag?.filters.aggregation_group_type_index === "number";
    if (!flag || flag.deleted || !flag.active || isAboutGroups) return 0;
    const clock = { now: this.#now().getTime(), timezone: this.#timezone(projectId) };
    let uuids: string[] = [];
    for await (const person of this.#persons(projectId)) {
      const { results } = evaluate(set, {
        ...clock,
        distinctId: person.mainDistinctId,
        person: {
          uuid: person.uuid,
          properties: person.properties as JsonObject,
          staticCohortIds: set.needs.staticCohorts ? cohortsOfPerson(people, person.id) : undefined,
        },
        hashKeyOverrides: set.needs.continuity
          ? hashKeyOverrides(people, projectId, [person.mainDistinctId])
          : undefined,
        selection: { flagKeys: [flag.key] },
      });
      if (results.get(flag.key)?.enabled) uuids.push(person.uuid);
      if (uuids.length < PAGE) continue;
      await this.deps.addMembers(projectId, cohortId, { uuids });
      uuids = [];
    }
    if (uuids.length > 0) await this.deps.addMembers(projectId, cohortId, { uuids });
    return countCohortMembers(people, cohortId);
  }

  async addDistinctIds(projectId: number, cohortId: number, distinctIds: readonly string[]): Promise<number> {
    await this.deps.addMembers(projectId, cohortId, { distinctIds });
    return countCohortMembers(this.deps.people, cohortId);
  }

  async countMembers(projectId: number, cohortId: number): Promise<number> {
    const test = await this.#testOf(projectId, [inCohort(cohortId)]);
    let count = 0;
    for await (const person of this.#persons(projectId)) if (test(person)) count++;
    return count;
  }

  async members(
    projectId: number,
    cohortId: number,
    { afterId, limit }: { afterId?: number; limit: number },
  ): Promise<Person[]> {
    const definition = this.deps.flagSets.of(projectId).cohorts.find(({ id }) => id === cohortId);
    if (!definition) throw new NotFound();
    if (definition.isStatic) return cohortMembersPage(this.deps.people, cohortId, { afterId, limit });
    return this.find(projectId, [inCohort(cohortId)], { afterId, limit });
  }

  async find(
    projectId: number,
    filters: readonly JsonObject[],
    { afterId, limit }: { afterId?: number; limit: number },
  ): Promise<Person[]> {
    const test = await this.#testOf(projectId, [...filters]);
    const found: Person[] = [];
    for await (const person of this.#persons(projectId, afterId)) {
      if (test(person)) found.push(person);
      if (found.length === limit) break;
    }
    return found;
  }

  async #countGroups(projectId: number, properties: JsonObject[], typeIndex: number) {
    const { people } = this.deps;
    const filter = compileSubjectFilter(properties, {
      now: this.#now().getTime(),
      timezone: this.#timezone(projectId),
      groupTypeIndex: typeIndex,
    });
    refuseProblem(filter);
    let [affected, total] = [0, 0];
    let after: GroupCursor | undefined;
    do {
      const page = listGroups(people, projectId, typeIndex, { after, limit: PAGE });
      for (const group of page.groups) {
        total++;
        if (filter.matches({ properties: group.properties as JsonObject, groupKey: group.key })) affected++;
      }
      after = page.next;
      await giveWay();
    } while (after);
    return { affected, total };
  }

  /** A test of persons against conditions joined by AND. @throws {InvalidField} they can not be evaluated. */
  async #testOf(projectId: number, properties: JsonObject[]): Promise<Test> {
    const { people, flagSets } = this.deps;
    const needed = reachable(properties, flagSets.of(projectId).cohorts);
    const { definitions, doers } = await this.#withoutBehaviour(projectId, needed);
    const filter = compileSubjectFilter(properties, {
      now: this.#now().getTime(),
      timezone: this.#timezone(projectId),
      cohorts: compileCohorts(definitions),
    });
    refuseProblem(filter);
    const usesCohorts = properties.some(({ type }) => type === "cohort");
    return (person) => {
      const staticCohortIds = usesCohorts ? cohortsOfPerson(people, person.id) : undefined;
      for (const [id, uuids] of doers) if (uuids.has(person.uuid)) staticCohortIds?.add(id);
      const own = person.properties as JsonObject;
      const properties = { distinct_id: person.mainDistinctId, ...own };
      return filter.matches({ properties, staticCohortIds });
    };
  }

  /** Conditions about events become static cohorts that exist for this question only, with ids below zero. */
  async #withoutBehaviour(projectId: number, cohorts: CohortDefinition[]) {
    const questions: JsonObject[] = [];
    const replaced = (value: Json): Json => {
      if (Array.isArray(value)) return value.map(replaced);
      if (!isJsonObject(value)) return value;
      if (value.type !== "behavioral") {
        return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, replaced(inner)]));
      }
      questions.push(value);
      return { ...inCohort(-questions.length), negation: value.negation ?? false };
    };
    const definitions = cohorts.map((cohort) =>
      cohort.isStatic || !cohort.filters
        ? cohort
        : { ...cohort, filters: replaced(cohort.filters) as JsonObject },
    );
    const timezone = this.#timezone(projectId);
    const answers = await Promise.all(
      questions.map((question) => this.deps.personsWhoDid(projectId, question, timezone, this.#now())),
    );
    const doers = new Map(answers.map((uuids, index) => [-(index + 1), uuids]));
    for (const id of doers.keys()) definitions.push({ id, name: "", isStatic: true, filters: null });
    return { definitions, doers };
  }

  async *#persons(projectId: number, afterId = 0): AsyncGenerator<Person> {
    for (let last = afterId; ; ) {
      const page = personsPage(this.deps.people, projectId, { afterId: last, limit: PAGE });
      yield* page;
      if (page.length < PAGE) return;
      last = page.at(-1)!.id;
      await giveWay();
    }
  }

  #now(): Date {
    return this.deps.now?.() ?? new Date();
  }

  #timezone(projectId: number): string {
    return this.deps.metadata.projects.find(projectId)?.timezone ?? "UTC";
  }
}

/** The cohorts that conditions name, directly or through other cohorts. */
function reachable(properties: readonly JsonObject[], cohorts: readonly CohortDefinition[]) {
  const byId = new Map(cohorts.map((cohort) => [cohort.id, cohort]));
  const found = new Map<number, CohortDefinition>();
  const open = properties.flatMap(cohortIdsIn);
  for (let id = open.pop(); id !== undefined; id = open.pop()) {
    const cohort = byId.get(id);
    if (!cohort || found.has(id)) continue;
    found.set(id, cohort);
    if (cohort.filters && !cohort.isStatic) open.push(...cohortIdsIn(cohort.filters));
  }
  return [...found.values()];
}

const inCohort = (id: number): JsonObject => ({ key: "id", type: "cohort", operator: "in", value: id });

/** @throws {InvalidField} e.g. a cohort that does not exist. */
function refuseProblem(filter: SubjectFilter): void {
  if (filter.problem) throw new InvalidField("filters", "invalid_input", filter.problem.description);
}

/** Lets waiting requests be served before the next page. */
const giveWay = () => new Promise<void>((resolve) => setImmediate(resolve));
