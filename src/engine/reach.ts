/**
 * How many persons or groups condition sets reach, each by itself and together, without and with their rollouts.
 *
 * Persons are counted over the event store's copies: SQL answers the filters it can, and for the others persons are
 * grouped by the values that matter and tested once each, as evaluation does.
 * Source: contract, management-api 5.17; decision 18.
 */

import type { Dialect, EventSql } from "../events/dialect.ts";
import { exactly } from "../events/property-sql.ts";
import { isEveryone, isWithin, rolloutPlace } from "../flags/evaluate/bucketing.ts";
import type { CompiledCohorts } from "../flags/evaluate/cohorts.ts";
import { compileSubjectFilter, type SubjectFilter } from "../flags/evaluate/person-filter.ts";
import { sourceOfInitial } from "../flags/evaluate/person-view.ts";
import type { Reach } from "../flags/rules/blast-radius.ts";
import { parseExactJson } from "../lib/exact-json.ts";
import type { Json, JsonObject } from "../lib/json.ts";
import { listGroups } from "../people/groups.ts";
import type { PeopleDb } from "../people/open.ts";
import { type PersonServices, personsAtOnce, personsOf, preparePersons } from "./person-queries.ts";
import type { ReachRequest } from "./query-types.ts";

/** Counts persons, or the groups of one type. */
export async function computeReach(services: PersonServices, request: ReachRequest): Promise<Reach> {
  return request.groupTypeIndex === null
    ? await reachOfPersons(services, request)
    : await reachOfGroups(services.people, request, request.groupTypeIndex);
}

async function reachOfPersons(services: PersonServices, request: ReachRequest): Promise<Reach> {
  const { projectId, sets, flagKey } = request;
  await services.copies.follow();
  const { cohorts, needsLists, subjectOf } = await preparePersons(
    services,
    request,
    sets.flatMap(({ filters }) => filters),
  );
  const filters = sets.map((set) => compileSubjectFilter(set.filters, { ...request, cohorts }));
  const tally = new Tally(request, filters);
  if (tally.problem !== undefined) return tally.reach();
  if (needsLists) {
    for await (const person of personsOf(services.people, projectId)) {
      const subject = subjectOf(person);
      tally.add(
        filters.map((filter) => filter.matches(subject)),
        rolloutPlace(flagKey, person.mainDistinctId),
        1,
      );
    }
  } else {
    await services.run((store) => countByProperties(store, request, cohorts, tally));
  }
  return tally.reach();
}

async function reachOfGroups(
  people: PeopleDb,
  request: ReachRequest,
  groupTypeIndex: number,
): Promise<Reach> {
  const { projectId, sets, flagKey, timezone, now } = request;
  const filters = sets.map((set) => compileSubjectFilter(set.filters, { timezone, now, groupTypeIndex }));
  const tally = new Tally(request, filters);
  if (tally.problem !== undefined) return tally.reach();
  let page = listGroups(people, projectId, groupTypeIndex, { limit: personsAtOnce });
  for (;;) {
    for (const { key, properties } of page.groups) {
      const subject = { properties: properties as JsonObject, groupKey: key };
      tally.add(
        filters.map((filter) => filter.matches(subject)),
        rolloutPlace(flagKey, key),
        1,
      );
    }
    if (page.next === undefined) return tally.reach();
    await new Promise((resolve) => setImmediate(resolve));
    page = listGroups(people, projectId, groupTypeIndex, { after: page.next, limit: personsAtOnce });
  }
}

/** Adds subjects up. */
class Tally {
  readonly problem: string | undefined;
  private readonly counts: Reach;

  constructor(
    private readonly request: ReachRequest,
    filters: readonly SubjectFilter[],
  ) {
    this.problem = filters.find(({ problem }) => problem !== null)?.problem?.description;
    const sets = request.sets.map(() => ({ matching: 0, reached: 0 }));
    this.counts = { total: 0, matching: 0, reached: 0, sets, problem: this.problem };
  }

  /**
   * @param matches whether the subjects match each set, rollouts aside.
   * @param place   where they fall in rollouts, 0 to 1; any place with the same answers does.
   */
  add(matches: readonly boolean[], place: number, subjects: number): void {
    const { counts } = this;
    let isReached = false;
    for (const [index, { rolloutPercentage }] of this.request.sets.entries()) {
      if (!matches[index]) continue;
      counts.sets[index]!.matching += subjects;
      if (!isWithin(rolloutPercentage, place)) continue;
      counts.sets[index]!.reached += subjects;
      isReached = true;
    }
    counts.total += subjects;
    if (matches.includes(true)) counts.matching += subjects;
    if (isReached) counts.reached += subjects;
  }

  reach(): Reach {
    return this.counts;
  }
}

/** Which of `bounds` (rising, 0 to 1) a place lies within first, as its index; behind all of them their number. */
function boundSql(bounds: readonly number[]): string {
  if (bounds.length === 0) return "0";
  const cases = bounds.map((bound, index) => `WHEN place <= ${bound} THEN ${index}`);
  return `CASE ${cases.join(" ")} ELSE ${bounds.length} END`;
}

async function countByProperties(
  store: EventSql,
  { projectId, sets, flagKey, timezone, now }: ReachRequest,
  cohorts: CompiledCohorts,
  tally: Tally,
): Promise<void> {
  const { dialect } = store;
  const split = sets.map(({ filters }) => splitFilters(dialect, filters));
  const names = [
    ...new Set(split.flatMap(({ others }) => others.flatMap((filter) => keysOf(filter, cohorts)))),
  ];
  const rests = split.map(({ others }) => compileSubjectFilter(others, { now, timezone, cohorts }));
  const bounds = [
    ...new Set(sets.flatMap(({ rolloutPercentage: wanted }) => (isEveryone(wanted) ? [] : [wanted / 100]))),
  ].sort((one, other) => one - other);
  const columns = [
    boundSql(bounds),
    ...split.map(({ conditions }) => (conditions.length === 0 ? "true" : conditions.join(" AND "))),
    ...names.map((name) => dialect.memberJson("properties", name)),
  ];
  const place =
    bounds.length === 0 ? "0" : dialect.hashPlace(`${dialect.text(`${flagKey}.`)} || main_distinct_id`);
  const portions = store.portions(
    `SELECT count(*), ${columns.join(", ")}
     FROM (SELECT properties, ${place} AS place FROM ${dialect.persons(projectId)} AS p) AS placed GROUP BY ALL`,
  );
  for await (const rows of portions) {
    for (const [count, within, ...values] of rows) {
      const properties: JsonObject = Object.create(null);
      names.forEach((name, index) => {
        const text = values[sets.length + index];
        if (text !== null) properties[name] = parseExactJson(text as string) as Json;
      });
      const matches = rests.map((rest, index) => Boolean(values[index]) && rest.matches({ properties }));
      // Within a bound counts as being at it; behind all of them only "everybody" takes somebody in.
      tally.add(matches, bounds[Number(within)] ?? Number.POSITIVE_INFINITY, Number(count));
    }
  }
}

/** What SQL answers exactly, and the rest; filters about other flags say nothing about a person. */
function splitFilters(
  dialect: Dialect,
  filters: readonly JsonObject[],
): { conditions: string[]; others: JsonObject[] } {
  const conditions: string[] = [];
  const others: JsonObject[] = [];
  for (const filter of filters) {
    const isPlain =
      (filter.type ?? "person") === "person" && sourceOfInitial(String(filter.key)) === undefined;
    const sql = isPlain ? exactly(dialect, "properties", filter) : undefined;
    if (sql !== undefined) conditions.push(sql);
    else if (filter.type !== "flag") others.push(filter);
  }
  return { conditions, others };
}

/** The person properties that a filter looks at. */
function keysOf(filter: JsonObject, cohorts: CompiledCohorts): string[] {
  const keys =
    filter.type === "cohort"
      ? [...(cohorts.get(Number(filter.value))?.personKeys ?? [])]
      : [String(filter.key)];
  return keys.flatMap((key) => {
    const source = sourceOfInitial(key);
    return source === undefined ? [key] : [key, source];
  });
}
