/** The engine's queries: name, request, response. */

import { type Static, Type } from "@sinclair/typebox";
import type { RetentionCutoff } from "../events/duckdb/event-expiry.ts";
import type { PersonLanes, StoredEvent } from "../events/duckdb/known-uuids.ts";
import type { ExportPage, ExportRequest } from "../events/export/page.ts";
import type { InsightResults, TrendsRequest } from "../events/insights/event-source.ts";
import type { FlagCalls, FlagCallsRequest } from "../events/insights/flag-evaluations.ts";
import type { ComputedInsight, Refresh } from "../events/insights/insight-cache.ts";
import type { EventFilter, EventPosition } from "../events/list.ts";
import type { EventSum, MigrationPage, MigrationRequest } from "../events/migration-reader.ts";
import type { DownloadRequest } from "../events/query/download.ts";
import type { QueryRequest, QueryResult, QueryResultWithLists } from "../events/query/run-query.ts";
import type { BlastRadius, BlastRadiusQuery } from "../flags/rules/blast-radius.ts";
import type { CohortDefinition, FlagDefinition, GroupType } from "../flags/rules/types.ts";
import type { Lane } from "../journal/segment.ts";
import type { JsonObject } from "../lib/json/value.ts";
import { DateTime, NonNegativeInt, nullable, strictObject } from "../lib/schema.ts";
import type { NewOverrides } from "../persons/hash-key-overrides.ts";
import type { Person } from "../persons/person.ts";
import type { DistinctIdOwner } from "../persons/reader.ts";

/** Property filters joined by AND, and the cohorts and time they depend on. */
export interface ConditionRequest {
  projectId: number;
  filters: JsonObject[];
  /** All cohorts of the project. */
  cohorts: CohortDefinition[];
  /** IANA name. */
  timezone: string;
  /** Milliseconds since 1970. */
  now: number;
}

export type BlastRadiusRequest = Omit<ConditionRequest, "filters"> & BlastRadiusQuery;

export interface FillByFlagRequest {
  projectId: number;
  cohortId: number;
  flagKey: string;
  flags: FlagDefinition[];
  cohorts: CohortDefinition[];
  groupTypes: GroupType[];
  timezone: string;
  now: number;
}

/** A query and its duration. */
export type SlowQuery = Static<typeof SlowQuery>;
export const SlowQuery = strictObject({
  query: Type.String(),
  project_id: nullable(Type.Integer()),
  ms: NonNegativeInt,
  at: DateTime,
  /** Prefix of an operator's statement. */
  sql: nullable(Type.String()),
});

/** `meta` accompanies a streamed response. */
export interface Queries {
  /** `meta` is the start of the next page. */
  events: { request: EventFilter; answer: JsonObject[]; meta: EventPosition | null };
  /** Trends, funnels, retention, lifecycle. */
  trends: { request: TrendsRequest & { refresh: Refresh }; answer: ComputedInsight };
  /** Exposures and sums of an experiment: `ExperimentRequest` as `query`, `ExperimentSums` as results. */
  experiment: { request: TrendsRequest & { refresh: Refresh }; answer: ComputedInsight };
  /** Gives properties of experiments a column, regardless of their use; replaces the previous ones. */
  pinProperties: { request: { names: string[] }; answer: null };
  /** Adds the persons of an `ExperimentRequest` to a cohort; returns its number of members. */
  fillCohortByExposure: { request: TrendsRequest & { cohortId: number }; answer: number };
  /** Events of surveys: `SurveyRequest` as `query`. */
  survey: { request: TrendsRequest & { refresh: Refresh }; answer: ComputedInsight };
  /** The submissions of a `SurveyRequest` as lines of JSON, streamed while they are read. */
  surveyResponses: { request: TrendsRequest; answer: never; meta: null };
  flagCalls: { request: FlagCallsRequest; answer: FlagCalls };
  blastRadius: { request: BlastRadiusRequest; answer: BlastRadius };
  findPersons: { request: ConditionRequest & { afterId?: number; limit: number }; answer: Person[] };
  /** Returns the number of persons for whom the flag is on. */
  fillCohortByFlag: { request: FillByFlagRequest; answer: number };
  /** Returns the cohort's current number of members. */
  addCohortMembers: {
    request: { projectId: number; cohortId: number; distinctIds: string[] };
    answer: number;
  };
  /** Returns the number of stored overrides. */
  addHashKeyOverrides: {
    request: NewOverrides & { projectId: number };
    answer: number;
  };
  /** The response to a web analytics query of an operator, not cached. */
  web: { request: TrendsRequest; answer: InsightResults };
  /** An operator's SELECT. */
  query: {
    request: QueryRequest;
    /** With lists if requested. */
    answer: QueryResult & Partial<QueryResultWithLists>;
    meta: null;
  };
  /** The result of an operator's SELECT as a file, streamed while it is computed. */
  download: { request: DownloadRequest; answer: never; meta: null };
  exportPage: { request: ExportRequest; answer: ExportPage };
  /** Returns which of these UUIDs are stored. */
  knownUuids: { request: { projectId: number; uuids: string[] }; answer: string[] };
  hasHistory: { request: { projectId: number }; answer: boolean };
  /** Returns names and IDs of stored events. */
  storedEvents: { request: { projectId: number; uuids: string[] }; answer: StoredEvent[] };
  /** Returns the persons with these distinct IDs; IDs without a person are omitted. */
  personsOf: { request: { projectId: number; distinctIds: string[] }; answer: DistinctIdOwner[] };
  /** Returns the lanes of the events of the persons with these distinct IDs. */
  importedPersons: { request: { projectId: number; distinctIds: string[] }; answer: PersonLanes[] };
  /** Returns the last visible sequence number of each lane. */
  loadedSeqs: { request: Record<string, never>; answer: Record<Lane, number> };
  /** Returns raw stored events of all projects. */
  movePage: { request: MigrationRequest; answer: MigrationPage };
  /** Returns counts and sums of all events up to these sequence numbers. */
  eventSums: { request: Record<Lane, number>; answer: EventSum[] };
  /** Deletes events by age; returns the number of deleted events. */
  deleteExpiredEvents: { request: { cutoffs: RetentionCutoff[] }; answer: number };
  /** Reads all stored data, to detect corruption. */
  readEverything: { request: Record<string, never>; answer: null };
  /** Returns the slowest queries of the last hour. */
  slowQueries: { request: Record<string, never>; answer: SlowQuery[] };
  /**
   * Suspends checkpoints of DuckDB for this long while its file is copied; 0 resumes them.
   * @param checkpointFirst checkpoints once before, unless another writer is busy
   */
  holdCheckpoints: { request: { ms: number; checkpointFirst?: boolean }; answer: null };
}
