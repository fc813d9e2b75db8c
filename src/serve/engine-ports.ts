/** Management operations on persons and events that the engine performs. */

import type { Metadata } from "../accounts/metadata.ts";
import type { CohortCalculator } from "../cohorts/cohort-calculation.ts";
import { findCohort, membership } from "../cohorts/cohorts.ts";
import type { InsightQueries, InsightResult, InsightRun } from "../dashboards/api/compute-insight.ts";
import type { EngineClient } from "../engine/client.ts";
import type { ConditionRequest } from "../engine/query-types.ts";
import { StatementBlockedError } from "../events/api/query-port.ts";
import { QueryRejectedError } from "../events/event-filters.ts";
import type { TrendsRequest } from "../events/insights/event-source.ts";
import type { ExperimentRequest, ExperimentSums } from "../events/insights/experiment.ts";
import type { FlagCalls, FlagCallsRequest } from "../events/insights/flag-evaluations.ts";
import type { Refresh } from "../events/insights/insight-cache.ts";
import type { SurveyRequest } from "../events/insights/survey.ts";
import type { Submission } from "../events/insights/survey-tally.ts";
import { toHogqlOptions, toStatement } from "../events/query/hogql.ts";
import { rowsDefault } from "../events/query/run-query.ts";
import { findWebQuery } from "../events/web/web-query.ts";
import type { ExperimentQueries } from "../experiments/compute.ts";
import type { BlastRadiusCounter } from "../flags/api/blast-radius.ts";
import type { FlagCallCounter } from "../flags/api/flag-usage.ts";
import type { BlastRadius, BlastRadiusQuery } from "../flags/rules/blast-radius.ts";
import { getGroups, getGroupType } from "../flags/rules/types.ts";
import { findFlag } from "../flags/store/flag.ts";
import type { FlagSets } from "../flags/store/flag-sets.ts";
import { InvalidFieldError, NotFoundError } from "../lib/errors.ts";
import type { JsonObject } from "../lib/json/value.ts";
import type { PersonFinder } from "../persons/api/person-pages.ts";
import type { Person } from "../persons/person.ts";
import type { PersonReader } from "../persons/person-reader.ts";
import type { SurveyEvents } from "../surveys/results.ts";

/** Limit for the rows of one insight: a dashboard parses many of them. */
const statementBytesMax = 4 * 1024 * 1024;

export interface EnginePortsDeps {
  engine: Pick<EngineClient, "ask" | "stream">;
  metadata: Metadata;
  flagSets: FlagSets;
  persons: PersonReader;
  now?: () => Date;
}

export class EngineAdapters
  implements
    PersonFinder,
    BlastRadiusCounter,
    FlagCallCounter,
    CohortCalculator,
    InsightQueries,
    ExperimentQueries,
    SurveyEvents
{
  constructor(private readonly deps: EnginePortsDeps) {}

  async blastRadius(projectId: number, question: BlastRadiusQuery): Promise<BlastRadius> {
    const { filters: _, ...condition } = this.condition(projectId, []);
    const blastRadius = await this.deps.engine.ask("blastRadius", { ...condition, ...question });
    if (blastRadius.problem !== undefined)
      throw new InvalidFieldError("filters", "invalid_input", blastRadius.problem);
    return blastRadius;
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
    const { engine, metadata, flagSets } = this.deps;
    const flag = findFlag(metadata.db, projectId, flagId);
    if (flag === undefined) throw new NotFoundError();
    const { cohorts, definitions, groupTypes } = flagSets.get(projectId);
    const isByGroup = [{}, ...getGroups(flag.filters)].every(
      (set) => getGroupType(set, flag.filters) !== null,
    );
    if (flag.active && !flag.deleted && !isByGroup) {
      const { timezone, now } = this.condition(projectId, []);
      await engine.ask("fillCohortByFlag", {
        projectId,
        cohortId,
        timezone,
        now,
        flagKey: flag.key,
        flags: definitions.length > 0 ? [...definitions] : [flag],
        cohorts: [...cohorts],
        groupTypes: [...groupTypes],
      });
    }
    return await this.memberCount(cohortId);
  }

  async addExposedPersons(projectId: number, cohortId: number, request: ExperimentRequest): Promise<number> {
    const { timezone, now } = this.condition(projectId, []);
    const query = request as unknown as JsonObject;
    return await this.deps.engine.ask("fillCohortByExposure", { projectId, cohortId, query, timezone, now });
  }

  async addDistinctIds(projectId: number, cohortId: number, distinctIds: readonly string[]): Promise<number> {
    return await this.deps.engine.ask("addCohortMembers", {
      projectId,
      cohortId,
      distinctIds: [...distinctIds],
    });
  }

  async countMembers(projectId: number, cohortId: number): Promise<number> {
    if (this.isStatic(projectId, cohortId)) return await this.memberCount(cohortId);
    const sets = [{ filters: membership(cohortId), rolloutPercentage: null }];
    return (await this.blastRadius(projectId, { sets, groupTypeIndex: null, flagKey: "" })).matching;
  }

  async members(
    projectId: number,
    cohortId: number,
    page: { afterId?: number; limit: number },
  ): Promise<Person[]> {
    if (this.isStatic(projectId, cohortId)) return await this.deps.persons.cohortMembers(cohortId, page);
    return await this.find(projectId, membership(cohortId), page);
  }

  async run(projectId: number, query: JsonObject, how: InsightRun): Promise<InsightResult> {
    const { timezone, weekStartDay, web, now, refresh } = how;
    const sql = toStatement(query);
    try {
      if (sql !== undefined) return await this.runStatement(projectId, query, how);
      return await this.deps.engine.ask("trends", {
        projectId,
        query,
        timezone,
        weekStartDay,
        ...(findWebQuery(query) === undefined ? {} : { web }),
        refresh,
        now: now.getTime(),
      });
    } catch (error) {
      if (error instanceof StatementBlockedError)
        throw new InvalidFieldError("query", error.code, error.message);
      if (!(error instanceof QueryRejectedError) || error.code === "query_busy") throw error;
      throw new InvalidFieldError("query", "invalid_input", error.message);
    }
  }

  /** Runs the statement of an insight; its rows are never cached. */
  private async runStatement(
    projectId: number,
    query: JsonObject,
    { timezone, weekStartDay, now, refresh }: InsightRun,
  ): Promise<InsightResult> {
    const sql = toStatement(query);
    if (typeof sql !== "string")
      throw new QueryRejectedError("invalid_input", "`query` must be a SELECT statement.");
    if (refresh === "force_cache") return { results: null, computedAt: null, isCached: false };
    const hogql = toHogqlOptions(query, { timezone, weekStartDay, now: now.getTime() });
    const request = { projectId, sql, limit: rowsDefault, hogql, bytesMax: statementBytesMax };
    const {
      results = [],
      columns,
      types = [],
      hasMore = false,
    } = await this.deps.engine.ask("query", request);
    return { results, computedAt: now.getTime(), isCached: false, table: { columns, types, hasMore } };
  }

  async experimentSums(
    projectId: number,
    request: ExperimentRequest,
    { timezone, now, refresh }: { timezone: string; now: Date; refresh: Refresh },
  ) {
    const query = request as unknown as JsonObject;
    const requested = { projectId, query, timezone, refresh, now: now.getTime() };
    const { results, ...found } = await this.compute("experiment", requested, "metrics");
    return { sums: results as unknown as ExperimentSums, ...found };
  }

  async surveyResults(
    projectId: number,
    request: SurveyRequest,
    { now, ...how }: Parameters<SurveyEvents["surveyResults"]>[2],
  ) {
    const query = request as unknown as JsonObject;
    return await this.compute("survey", { projectId, query, now: now.getTime(), ...how }, null);
  }

  async *surveyResponses(
    projectId: number,
    request: SurveyRequest,
    { now, timezone, weekStartDay }: Parameters<SurveyEvents["surveyResponses"]>[2],
  ): AsyncGenerator<Submission> {
    const query = request as unknown as JsonObject;
    const asked = { projectId, query, timezone, weekStartDay, now: now.getTime() };
    const { body } = await this.deps.engine.stream("surveyResponses", asked);
    for await (const line of readLines(body)) yield JSON.parse(line) as Submission;
  }

  /** @throws {InvalidFieldError} the query is rejected, or nothing is cached. */
  private async compute(
    kind: "experiment" | "survey",
    request: TrendsRequest & { refresh: Refresh },
    field: string | null,
  ): Promise<{ results: JsonObject; computedAt: number; isCached: boolean }> {
    try {
      const { results, computedAt, isCached } = await this.deps.engine.ask(kind, request);
      if (results === null || computedAt === null)
        throw new InvalidFieldError("refresh", "invalid_input", "Nothing is cached; use another `refresh`.");
      return { results: results as JsonObject, computedAt, isCached };
    } catch (error) {
      if (!(error instanceof QueryRejectedError) || error.code === "query_busy") throw error;
      throw new InvalidFieldError(field, "invalid_input", error.message);
    }
  }

  private async memberCount(cohortId: number): Promise<number> {
    return (await this.deps.persons.cohortSizes([cohortId])).get(cohortId)!;
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
        .get(projectId)
        .cohorts.map(({ id, name, isStatic, filters: own }) => ({ id, name, isStatic, filters: own })),
      timezone: metadata.projects.find(projectId)?.timezone ?? "UTC",
      now: (this.deps.now?.() ?? new Date()).getTime(),
    };
  }
}

/** Lines without their breaks; a last line may have none. Stopping early cancels the stream. */
export async function* readLines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of body) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
  if (rest !== "") yield rest;
}
