/** What management asks of persons and events as a whole, answered by the engine. */

import type { Metadata } from "../accounts/metadata.ts";
import type { CohortFiller } from "../cohorts/cohort-filling.ts";
import { findCohort, membership } from "../cohorts/cohorts.ts";
import type { InsightOutcome, InsightQueries, InsightRun } from "../dashboards/api/insights.ts";
import type { EngineClient } from "../engine/client.ts";
import type { ConditionRequest } from "../engine/query-types.ts";
import type { FlagCalls, FlagCallsRequest } from "../events/insights/flag-calls.ts";
import { QueryRefused, StatementsBarred } from "../events/port.ts";
import { statementOf } from "../events/query/hogql.ts";
import { rowsDefault } from "../events/query/run-query.ts";
import type { ReachCounter } from "../flags/api/flag-reach.ts";
import type { FlagCallCounter } from "../flags/api/flag-usage.ts";
import type { Reach, ReachQuestion } from "../flags/rules/blast-radius.ts";
import { groupsOf, groupTypeOf } from "../flags/rules/types.ts";
import { findFlag } from "../flags/store/flag.ts";
import type { FlagSets } from "../flags/store/flag-sets.ts";
import { InvalidField, NotFound } from "../lib/errors.ts";
import type { Json, JsonObject } from "../lib/json.ts";
import type { PersonFinder } from "../people/api/people.ts";
import { cohortMembersPage, countCohortMembers } from "../people/cohort-members.ts";
import type { PeopleDb } from "../people/open.ts";
import type { Person } from "../people/person.ts";

/** Of the rows of one insight: a dashboard has many, and their JSON is parsed. */
const statementBytesMax = 4 * 1024 * 1024;

export interface EnginePortsDeps {
  engine: Pick<EngineClient, "ask">;
  metadata: Metadata;
  flagSets: FlagSets;
  people: PeopleDb;
  now?: () => Date;
}

export class EnginePorts
  implements PersonFinder, ReachCounter, FlagCallCounter, CohortFiller, InsightQueries
{
  constructor(private readonly deps: EnginePortsDeps) {}

  async reach(projectId: number, question: ReachQuestion): Promise<Reach> {
    const { filters: _, ...condition } = this.condition(projectId, []);
    const reach = await this.deps.engine.ask("reach", { ...condition, ...question });
    if (reach.problem !== undefined) throw new InvalidField("filters", "invalid_input", reach.problem);
    return reach;
  }

  async flagCalls(request: FlagCallsRequest): Promise<FlagCalls> {
    return await this.deps.engine.ask("flagCalls", request);
  }

  async find(
    projectId: number,
    filters: readonly JsonObject[],
    page: { afterId?: number; limit: number },
  ): Promise<Person[]> {
    return await this.deps.engine.ask("findPersons", {
      ...this.condition(projectId, [...filters]),
      ...page,
    });
  }

  async addPersonsWithFlag(projectId: number, cohortId: number, flagId: number): Promise<number> {
    const { engine, metadata, flagSets, people } = this.deps;
    const flag = findFlag(metadata.db, projectId, flagId);
    if (flag === undefined) throw new NotFound();
    const { cohorts, definitions, groupTypes } = flagSets.of(projectId);
    const isByGroup = [{}, ...groupsOf(flag.filters)].every((set) => groupTypeOf(set, flag.filters) !== null);
    if (flag.active && !flag.deleted && !isByGroup) {
      const { timezone, now } = this.condition(projectId, []);
      await engine.ask("fillCohortByFlag", {
        ...{ projectId, cohortId, timezone, now },
        flagKey: flag.key,
        flags: definitions.length > 0 ? [...definitions] : [flag],
        cohorts: [...cohorts],
        groupTypes: [...groupTypes],
      });
    }
    return countCohortMembers(people, cohortId);
  }

  async addDistinctIds(projectId: number, cohortId: number, distinctIds: readonly string[]): Promise<number> {
    return await this.deps.engine.ask("addCohortMembers", {
      projectId,
      cohortId,
      distinctIds: [...distinctIds],
    });
  }

  async countMembers(projectId: number, cohortId: number): Promise<number> {
    if (this.isStatic(projectId, cohortId)) return countCohortMembers(this.deps.people, cohortId);
    const sets = [{ filters: membership(cohortId), rolloutPercentage: null }];
    return (await this.reach(projectId, { sets, groupTypeIndex: null, flagKey: "" })).matching;
  }

  async members(
    projectId: number,
    cohortId: number,
    page: { afterId?: number; limit: number },
  ): Promise<Person[]> {
    if (this.isStatic(projectId, cohortId)) return cohortMembersPage(this.deps.people, cohortId, page);
    return await this.find(projectId, membership(cohortId), page);
  }

  async run(projectId: number, query: JsonObject, how: InsightRun): Promise<InsightOutcome> {
    const { timezone, weekStartDay, now, refresh } = how;
    const sql = statementOf(query);
    try {
      if (sql !== undefined) return await this.runStatement(projectId, sql, how);
      return await this.deps.engine.ask("trends", {
        projectId,
        query,
        timezone,
        weekStartDay,
        refresh,
        now: now.getTime(),
      });
    } catch (error) {
      if (error instanceof StatementsBarred) throw new InvalidField("query", error.code, error.message);
      if (!(error instanceof QueryRefused) || error.code === "query_busy") throw error;
      throw new InvalidField("query", "invalid_input", error.message);
    }
  }

  /** The statement of an insight; its rows are never cached. */
  private async runStatement(
    projectId: number,
    sql: Json,
    { now, refresh }: InsightRun,
  ): Promise<InsightOutcome> {
    if (typeof sql !== "string")
      throw new QueryRefused("invalid_input", "`query` must be a SELECT statement.");
    if (refresh === "force_cache") return { results: null, computedAt: null, isCached: false };
    const request = { projectId, sql, limit: rowsDefault, hasLists: true, bytesMax: statementBytesMax };
    const {
      results = [],
      columns,
      types = [],
      hasMore = false,
    } = await this.deps.engine.ask("query", request);
    return { results, computedAt: now.getTime(), isCached: false, table: { columns, types, hasMore } };
  }

  private isStatic(projectId: number, cohortId: number): boolean {
    return findCohort(this.deps.metadata.db, projectId, cohortId)?.isStatic ?? false;
  }

  private condition(projectId: number, filters: JsonObject[]): ConditionRequest {
    const { flagSets, metadata } = this.deps;
    return {
      projectId,
      filters,
      cohorts: flagSets
        .of(projectId)
        .cohorts.map(({ id, name, isStatic, filters: own }) => ({ id, name, isStatic, filters: own })),
      timezone: metadata.projects.find(projectId)?.timezone ?? "UTC",
      now: (this.deps.now?.() ?? new Date()).getTime(),
    };
  }
}
