/**
 * Blast radius of condition sets: matching persons or groups per set and in total, with and without rollouts. Counts
 * run on the event store's replicas: SQL evaluates supported filters; for the others, persons are grouped by the
 * relevant values and tested once each, as in evaluation. Source: contract, management-api 5.17; decision 18.
 */

import { exactly } from "../events/property-sql.ts";
import type { EventSql, SqlDialect } from "../events/sql-dialect.ts";
import { isEveryone, isWithin, rolloutPosition } from "../flags/evaluate/bucketing.ts";
import type { CompiledCohorts } from "../flags/evaluate/cohorts.ts";
import {
  compileSubjectFilter,
  type FilterSubject,
  type SubjectFilter,
} from "../flags/evaluate/person-filter.ts";
import { sourceOfInitial } from "../flags/evaluate/person-view.ts";
import type { BlastRadius } from "../flags/rules/blast-radius.ts";
import { parseExactJson } from "../lib/json/exact.ts";
import type { Json, JsonObject } from "../lib/json/value.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import { getPersonPages, type PersonQueryDeps, personsAtOnce, preparePersons } from "./person-queries.ts";
import type { BlastRadiusRequest } from "./query-types.ts";

/** Counts persons, or groups of one type. */
export async function computeBlastRadius(
  deps: PersonQueryDeps,
  request: BlastRadiusRequest,
): Promise<BlastRadius> {
  return request.groupTypeIndex === null
    ? await blastRadiusOfPersons(deps, request)
    : await blastRadiusOfGroups(deps.persons, request, request.groupTypeIndex);
}

async function blastRadiusOfPersons(
  deps: PersonQueryDeps,
  request: BlastRadiusRequest,
): Promise<BlastRadius> {
  const { projectId, sets, flagKey } = request;
  await deps.copies.follow();
  const {
    cohorts,
    needsLists,
    subjectsOf: getSubjects,
  } = await preparePersons(
    deps,
    request,
    sets.flatMap(({ filters }) => filters),
  );
  const filters = sets.map((set) => compileSubjectFilter(set.filters, { ...request, cohorts }));
  const tally = new Counts(request, filters);
  if (tally.problem !== undefined) return tally.result();
  if (needsLists) {
    for await (const page of getPersonPages(deps.persons, projectId)) {
      for (const [index, subject] of (await getSubjects(page)).entries()) {
        tally.add(
          filters.map((filter) => filter.matches(subject)),
          rolloutPosition(flagKey, page[index]!.mainDistinctId),
          1,
        );
      }
    }
  } else {
    await deps.run((store) => countByProperties(store, request, cohorts, tally));
  }
  return tally.result();
}

async function blastRadiusOfGroups(
  persons: PersonReader,
  request: BlastRadiusRequest,
  groupTypeIndex: number,
): Promise<BlastRadius> {
  const { projectId, sets, flagKey, timezone, now } = request;
  const filters = sets.map((set) => compileSubjectFilter(set.filters, { timezone, now, groupTypeIndex }));
  const tally = new Counts(request, filters);
  if (tally.problem !== undefined) return tally.result();
  let page = await persons.listGroups(projectId, groupTypeIndex, { limit: personsAtOnce });
  for (;;) {
    for (const { key, properties } of page.groups) {
      const subject = { properties: properties as JsonObject, groupKey: key };
      tally.add(
        filters.map((filter) => filter.matches(subject)),
        rolloutPosition(flagKey, key),
        1,
      );
    }
    if (page.next === undefined) return tally.result();
    await new Promise((resolve) => setImmediate(resolve));
    page = await persons.listGroups(projectId, groupTypeIndex, { after: page.next, limit: personsAtOnce });
  }
}

class Counts {
  readonly problem: string | undefined;
  private readonly counts: BlastRadius;

  constructor(
    private readonly request: BlastRadiusRequest,
    filters: readonly SubjectFilter[],
  ) {
    this.problem = filters.find(({ problem }) => problem !== null)?.problem?.description;
    const sets = request.sets.map(() => ({ matching: 0, reached: 0 }));
    this.counts = { total: 0, matching: 0, reached: 0, sets, problem: this.problem };
  }

  /**
   * @param matches whether the subjects match each set, ignoring rollouts
   * @param memberIndex hash position in rollouts, 0 to 1; any position with the same results will do
   */
  add(matches: readonly boolean[], memberIndex: number, subjects: number): void {
    const { counts } = this;
    let isInRollout = false;
    for (const [index, { rolloutPercentage }] of this.request.sets.entries()) {
      if (!matches[index]) continue;
      counts.sets[index]!.matching += subjects;
      if (!isWithin(rolloutPercentage, memberIndex)) continue;
      counts.sets[index]!.reached += subjects;
      isInRollout = true;
    }
    counts.total += subjects;
    if (matches.includes(true)) counts.matching += subjects;
    if (isInRollout) counts.reached += subjects;
  }

  result(): BlastRadius {
    return this.counts;
  }
}

/**
 * SQL for the index of the first of `bounds` (ascending, 0 to 1) that is at least the position; their number if none
 * is.
 */
function boundSql(bounds: readonly number[]): string {
  if (bounds.length === 0) return "0";
  const cases = bounds.map((bound, index) => `WHEN position <= ${bound} THEN ${index}`);
  return `CASE ${cases.join(" ")} ELSE ${bounds.length} END`;
}

async function countByProperties(
  store: EventSql,
  { projectId, sets, flagKey, timezone, now }: BlastRadiusRequest,
  cohorts: CompiledCohorts,
  tally: Counts,
): Promise<void> {
  const { dialect } = store;
  const split = sets.map(({ filters }) => splitFilters(dialect, filters));
  const names = [
    ...new Set(split.flatMap(({ others }) => others.flatMap((filter) => getKeys(filter, cohorts)))),
  ];
  const rests = split.map(({ others }) => compileSubjectFilter(others, { now, timezone, cohorts }));
  const bounds = [
    ...new Set(sets.flatMap(({ rolloutPercentage: wanted }) => (isEveryone(wanted) ? [] : [wanted / 100]))),
  ].sort((a, b) => a - b);
  const columns = [
    boundSql(bounds),
    ...split.map(({ conditions }) => (conditions.length === 0 ? "true" : conditions.join(" AND "))),
    ...names.map((name) =>
      name === idProperty ? "main_distinct_id" : dialect.memberJson("properties", name),
    ),
  ];
  const memberIndex =
    bounds.length === 0 ? "0" : dialect.hashPosition(`${dialect.text(`${flagKey}.`)} || main_distinct_id`);
  const portions = store.portions(
    `SELECT count(*), ${columns.join(", ")}
     FROM (SELECT properties, main_distinct_id, ${memberIndex} AS position FROM ${dialect.persons(projectId)} AS p) AS s GROUP BY ALL`,
  );
  for await (const rows of portions) {
    for (const [count, within, ...values] of rows) {
      const subject = toSubject(names, values.slice(sets.length));
      const matches = rests.map((rest, index) => Boolean(values[index]) && rest.matches(subject));
      // Any position below a bound is equivalent to the bound; above all bounds only sets without a rollout match.
      tally.add(matches, bounds[Number(within)] ?? Number.POSITIVE_INFINITY, Number(count));
    }
  }
}

/** The property that evaluation reads from the request, not from the person. */
const idProperty = "distinct_id";

function toSubject(names: readonly string[], values: readonly unknown[]): FilterSubject {
  const properties: JsonObject = Object.create(null);
  let distinctId: string | undefined;
  for (const [index, name] of names.entries()) {
    const text = values[index] as string | null;
    if (name === idProperty) distinctId = text ?? undefined;
    else if (text !== null) properties[name] = parseExactJson(text) as Json;
  }
  return { properties, distinctId };
}

/** Splits filters into those that SQL evaluates exactly and the rest; filters on flags do not depend on the person. */
function splitFilters(
  dialect: SqlDialect,
  filters: readonly JsonObject[],
): { conditions: string[]; others: JsonObject[] } {
  const conditions: string[] = [];
  const others: JsonObject[] = [];
  for (const filter of filters) {
    const isPlain =
      (filter.type ?? "person") === "person" &&
      filter.key !== idProperty &&
      sourceOfInitial(String(filter.key)) === undefined;
    const sql = isPlain ? exactly(dialect, "properties", filter) : undefined;
    if (sql !== undefined) conditions.push(sql);
    else if (filter.type !== "flag") others.push(filter);
  }
  return { conditions, others };
}

/** The person properties that a filter reads. */
function getKeys(filter: JsonObject, cohorts: CompiledCohorts): string[] {
  const keys =
    filter.type === "cohort"
      ? [...(cohorts.get(Number(filter.value))?.personKeys ?? [])]
      : [String(filter.key)];
  return keys.flatMap((key) => {
    const source = sourceOfInitial(key);
    return source === undefined ? [key] : [key, source];
  });
}
