/** The queries that the front may ask the engine: name, request, answer. */

import { type Static, Type } from "@sinclair/typebox";
import type { StoredEvent } from "../events/duckdb/known-uuids.ts";
import type { RetentionCutoff } from "../events/duckdb/old-events.ts";
import type { ExportPage, ExportRequest } from "../events/export/page.ts";
import type { FlagCalls, FlagCallsRequest } from "../events/insights/flag-calls.ts";
import type { TrendsRequest } from "../events/insights/found-events.ts";
import type { ComputedInsight, Refresh } from "../events/insights/insight-cache.ts";
import type { EventFilter, EventPosition } from "../events/list.ts";
import type { EventSum, MovePage, MoveRequest } from "../events/move.ts";
import type { DownloadRequest } from "../events/query/download.ts";
import type { QueryRequest, QueryResult, QueryResultWithLists } from "../events/query/run-query.ts";
import type { Reach, ReachQuestion } from "../flags/rules/blast-radius.ts";
import type { CohortDefinition, FlagDefinition, GroupType } from "../flags/rules/types.ts";
import type { Lane } from "../journal/segment.ts";
import type { JsonObject } from "../lib/json.ts";
import { Count, exactly, Instant, orNull } from "../lib/schema.ts";
import type { NewOverrides } from "../people/hash-key-overrides.ts";
import type { Person } from "../people/person.ts";
import type { DistinctIdOwner } from "../people/reader.ts";

/** Property filters joined by AND, and what they refer to. */
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

export type ReachRequest = Omit<ConditionRequest, "filters"> & ReachQuestion;

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

/** A question and how long its answer took. */
export type SlowQuery = Static<typeof SlowQuery>;
export const SlowQuery = exactly({
  query: Type.String(),
  project_id: orNull(Type.Integer()),
  ms: Count,
  at: Instant,
  /** The beginning of an operator's statement. */
  sql: orNull(Type.String()),
});

/** `meta` goes beside an answer that is streamed. */
export interface Queries {
  /** `meta` is where the next page starts. */
  events: { request: EventFilter; answer: JsonObject[]; meta: EventPosition | null };
  /** Trends, funnels, retention, lifecycle. */
  trends: { request: TrendsRequest & { refresh: Refresh }; answer: ComputedInsight };
  flagCalls: { request: FlagCallsRequest; answer: FlagCalls };
  reach: { request: ReachRequest; answer: Reach };
  findPersons: { request: ConditionRequest & { afterId?: number; limit: number }; answer: Person[] };
  /** Answers how many persons the flag is on for. */
  fillCohortByFlag: { request: FillByFlagRequest; answer: number };
  /** Answers how many members the cohort has now. */
  addCohortMembers: {
    request: { projectId: number; cohortId: number; distinctIds: string[] };
    answer: number;
  };
  /** Answers how many overrides were stored. */
  addHashKeyOverrides: {
    request: NewOverrides & { projectId: number };
    answer: number;
  };
  /** An operator's SELECT. */
  query: {
    request: QueryRequest;
    /** With lists where the request says so. */
    answer: QueryResult & Partial<QueryResultWithLists>;
    meta: null;
  };
  /** The same as a file, while it is computed. */
  download: { request: DownloadRequest; answer: never; meta: null };
  exportPage: { request: ExportRequest; answer: ExportPage };
  /** Answers which of these uuids are stored. */
  knownUuids: { request: { projectId: number; uuids: string[] }; answer: string[] };
  hasHistory: { request: { projectId: number }; answer: boolean };
  /** Answers the names and ids of stored events. */
  storedEvents: { request: { projectId: number; uuids: string[] }; answer: StoredEvent[] };
  /** Answers which persons have these distinct ids; those without one are left out. */
  personsOf: { request: { projectId: number; distinctIds: string[] }; answer: DistinctIdOwner[] };
  /** Answers up to which sequence number each lane can be read. */
  loadedSeqs: { request: Record<string, never>; answer: Record<Lane, number> };
  /** Answers stored events as they are, of all projects. */
  movePage: { request: MoveRequest; answer: MovePage };
  /** Answers counts and sums of all events up to these numbers. */
  eventSums: { request: Record<Lane, number>; answer: EventSum[] };
  /** Removes events by age; answers how many went. */
  removeOldEvents: { request: { cutoffs: RetentionCutoff[] }; answer: number };
  /** Reads everything that is stored, so that damage shows. */
  readEverything: { request: Record<string, never>; answer: null };
  /** Answers the slowest questions of the last hour. */
  slowQueries: { request: Record<string, never>; answer: SlowQuery[] };
  /**
   * Lets DuckDB write its file no more for so long, because it is copied; 0 ends that.
   *
   * @param checkpointFirst writes it once before, if no other writer is busy.
   */
  holdCheckpoints: { request: { ms: number; checkpointFirst?: boolean }; answer: null };
}
